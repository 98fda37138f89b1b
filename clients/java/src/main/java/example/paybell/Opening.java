package example.paybell;

import static example.paybell.PaybellException.refused;
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** One POST: its sender and time are verified, it is decrypted, and if that fails, the cause is searched. */
record Opening(byte[] body, UnaryOperator<String> header, Keys keys) {
    /** Longer bodies are not tried with other settings: refusing a body must not cost more than sending it. */
    private static final int TRIED_BYTES_MAX = 1 << 20;

    private static final Pattern ONLY_DATA = Pattern.compile("\\s*\\{\\s*\"data\"\\s*:\\s*(\"[^\"\\\\]*\")\\s*}\\s*");

    Received open(long nowSeconds) {
        if (body.length > Paybell.BODY_BYTES_MAX) throw refused("too_large");
        checkHeaders(nowSeconds);
        String named = hint("paybell-key");
        try {
            var content = Content.open(body, keys);
            boolean isOutOfOrder = hint("paybell-out-of-order").equals("1");
            String command = hint("paybell-command"), original = hint("paybell-original-transaction");
            var hints = new Received.Headers(hint("paybell-attempt"), command, original, isOutOfOrder);
            String keyId = content.keyId().isEmpty() ? named : content.keyId();
            return new Received(content.typed(), content.wire(), hint("webhook-id"), keyId, hints);
        } catch (PaybellException refused) {
            String code = Objects.requireNonNullElseGet(mistake(), () -> explained(refused.code()));
            if (!code.equals("decryption") || named.isEmpty()) throw refused(code);
            String version = named.substring(0, Math.min(64, named.length())).replaceAll("[^ -~]", "?");
            throw refused(code, "No encryptionKey decrypts it; the message names the version \"" + version + "\".");
        }
    }

    private String hint(String name) {
        return Objects.requireNonNullElse(header.apply(name), "");
    }

    /** Standard Webhooks v1. Before anything is decrypted: a sender without the secret gets no further. */
    private void checkHeaders(long nowSeconds) {
        String id = hint("webhook-id"), timestamp = hint("webhook-timestamp");
        if (header.apply("webhook-id") == null
                || header.apply("webhook-timestamp") == null
                || header.apply("webhook-signature") == null) throw refused("missing_headers");
        boolean isWellFormed = id.matches("[^.\\s]{1,256}") && timestamp.matches("[0-9]{1,12}");
        if (!isWellFormed || !isSigned(body, "webhookSecret"))
            throw refused(isWellFormed ? forgery() : "webhook_signature");
        long age = nowSeconds - Long.parseLong(timestamp);
        String finding =
                "webhook-timestamp is " + Math.abs(age) + " s " + (age > 0 ? "old" : "ahead") + " by this clock.";
        if (Math.abs(age) > Paybell.FRESHNESS_SECONDS) throw refused("not_fresh", finding);
    }

    private boolean isSigned(byte[] text, String... kinds) {
        byte[] start = (hint("webhook-id") + "." + hint("webhook-timestamp") + ".").getBytes(UTF_8);
        var entries = List.of(hint("webhook-signature").split(" "));
        return Stream.of(kinds)
                .flatMap(kind -> keys.all(kind).stream())
                .map(key -> "v1," + Seal.encode(Seal.hmac(key, start, text), "base64"))
                .anyMatch(expected -> entries.stream().anyMatch(entry -> Seal.equal(expected, entry)));
    }

    /** Explains a wrong signature that may be no forgery. */
    private String forgery() {
        String mistake = mistake();
        if (mistake != null) return mistake;
        if (body.length > TRIED_BYTES_MAX) return "webhook_signature";
        var data = ONLY_DATA.matcher(new String(body, UTF_8));
        if (data.matches() && isSigned(("{\"data\":" + data.group(1) + "}").getBytes(UTF_8), "webhookSecret"))
            return "rewritten_body";
        return isSigned(body, "encryptionKey", "signingKey") ? "swapped_keys" : "webhook_signature";
    }

    /** The mistake that the body itself shows, whoever sent it; else null. */
    private String mistake() {
        if (body.length == 0) return "empty_body";
        // Not strip(): U+001F, with which gzip begins, is white space there.
        String start = new String(body, 0, Math.min(64, body.length), ISO_8859_1).replaceFirst("^[ \t\r\n]+", "");
        var found = Contract.IT.starts().keySet().stream().filter(start::startsWith);
        return found.findFirst().map(Contract.IT.starts()::get).orElse(null);
    }

    /** Other settings are tried: only for the holder of the webhook secret. */
    private String explained(String code) {
        boolean isDecrypted = code.equals("signature");
        for (var one : Contract.IT.tries().get(isDecrypted ? "signature" : "body")) {
            if (body.length > TRIED_BYTES_MAX) break;
            try {
                Content.open(body, keys.with(one));
                return one.code();
            } catch (PaybellException refused) {
                if (!isDecrypted && refused.code().equals("signature")) return one.code();
            }
        }
        return code;
    }
}
