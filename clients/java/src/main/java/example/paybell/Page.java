package example.paybell;

import static example.paybell.PaybellException.throwIf;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNullElse;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A page of the pull API. Store the cursor once all items are processed, and start from it the next time. */
public record Page(List<Received> items, String cursor) {
    private static final Pattern SECURE =
            Pattern.compile("https://.*|http://(localhost|127\\.[0-9.]+|\\[::1])(:\\d+)?(/.*)?");
    /** It follows no redirection: that would be sent the API key. */
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    private record Answer(List<Item> items, String next, String code, String detail, String remedy) {}

    private record Item(String data, Map<String, String> headers) {
        Received open(Keys keys) {
            var named = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
            named.putAll(headers);
            return Paybell.open(Contract.canonical(Map.of("data", data)), named::get, keys);
        }
    }

    /** The next page is fetched when it is asked for. An answer that is not whole after {@code limit} is given up. */
    static Stream<Page> pages(String cursor, Supplier<Keys> keys, Duration wait, Duration limit) {
        UnaryOperator<Page> next = page -> page.items.isEmpty() ? null : pull(page.cursor, keys.get(), wait, limit);
        return Stream.iterate(pull(cursor, keys.get(), wait, limit), Objects::nonNull, next);
    }

    private static Page pull(String cursor, Keys keys, Duration wait, Duration limit) {
        String base = requireNonNullElse(keys.agreed.baseUrl(), "").replaceFirst("/+$", "");
        boolean isSecure = SECURE.matcher(base).matches();
        throwIf(!isSecure, "wrong_option", "baseUrl is not https://; http:// is for localhost alone.");
        String after = cursor == null ? "" : "&after=" + URLEncoder.encode(cursor, UTF_8);
        String address = base + "/v1/notifications?limit=100" + after;
        if (!wait.isZero()) address += "&wait=" + wait.toSeconds();
        HttpResponse<byte[]> response;
        try {
            var request = HttpRequest.newBuilder(URI.create(address)).timeout(Duration.ofSeconds(60));
            request.header("authorization", "Bearer " + keys.agreed.apiKey());
            var coming = CLIENT.sendAsync(request.build(), BodyHandlers.ofByteArray());
            try { // The timeout above ends with the headers.
                response = coming.get(limit.toMillis(), TimeUnit.MILLISECONDS);
            } finally {
                coming.cancel(true);
            }
        } catch (IllegalArgumentException error) { // Its text could quote the API key.
            throw new PaybellException("wrong_option", "baseUrl is no URL, or apiKey cannot be sent.");
        } catch (ExecutionException | InterruptedException | TimeoutException error) {
            if (error instanceof InterruptedException) Thread.currentThread().interrupt();
            throw new PaybellException("no_answer");
        }
        Answer answer = read(response.body());
        boolean isPage = response.statusCode() == 200 && answer.items != null;
        if (isPage)
            return new Page(answer.items.stream().map(item -> item.open(keys)).toList(), answer.next);
        boolean isOther = response.statusCode() == 200 || answer.code == null;
        throwIf(isOther, "not_paybell", "HTTP " + response.statusCode() + ":");
        var unknown = new Contract.Mistake("", requireNonNullElse(answer.remedy, ""), false);
        var known = Contract.IT.errors().getOrDefault(answer.code, unknown);
        throw new PaybellException(known, answer.code, requireNonNullElse(answer.detail, ""));
    }

    private static Answer read(byte[] text) {
        try {
            return Contract.JSON.readValue(text, Answer.class);
        } catch (IOException error) {
            return new Answer(null, null, null, null, null);
        }
    }
}
