package example.paybell;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

final class PaybellTest {
    private static final String NEW = "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ=";
    private static final String OLD = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    private static final Keys USUAL = Keys.of(Keys.SAMPLE);
    private static final Keys EXTENDED = with("{\"fields\": \"extended\"}");

    private static Keys with(String settings) {
        return Keys.of(Keys.SAMPLE, settings);
    }

    private static Sample sample(String kind, Keys keys) {
        return Paybell.sample(kind, keys, Map.of());
    }

    private static Received open(Sample sample, Supplier<Keys> keys) {
        return Paybell.open(sample.body(), sample.headers()::get, keys);
    }

    private static String refusal(byte[] body, Map<String, String> headers, Supplier<Keys> keys) {
        var error = assertThrows(PaybellException.class, () -> Paybell.open(body, headers::get, keys));
        assertTrue(error.isRefusal());
        assertEquals("The IPN is not authentic.", error.getMessage());
        assertNotEquals("", error.remedy());
        return error.code();
    }

    private static String mistake(Runnable action) {
        var error = assertThrows(PaybellException.class, action::run);
        assertFalse(error.isRefusal());
        for (String key : List.of(NEW, OLD, "AgIC", "AwMD"))
            assertFalse(error.getMessage().contains(key));
        return error.code();
    }

    @Test
    void everySampleOpensInEveryCipherEncodingAndWayOfSigning() {
        for (String kind : Contract.IT.samples().keySet()) {
            for (String cipher : Contract.IT.settings().get("cipher")) {
                for (String encoding : Contract.IT.settings().get("encoding")) {
                    for (String mode : Contract.IT.settings().get("signing")) {
                        var keys = with("{\"cipher\": \"%s\", \"encoding\": \"%s\", \"signing\": {\"mode\": \"%s\"}}"
                                .formatted(cipher, encoding, mode));
                        var sample = sample(kind, keys);
                        assertEquals(sample.ipn(), open(sample, keys).ipn());
                        assertEquals(kind.equals("settlement"), sample.ipn() instanceof SettlementIpn);
                    }
                }
            }
        }
        assertEquals(8, Contract.IT.samples().size());
        assertEquals("wrong_option", mistake(() -> Paybell.sample("sail")));
        assertEquals("wrong_option", mistake(() -> Paybell.sample("sale", USUAL, Map.of("ammount", "1"))));
        var named = (CardIpn)
                Paybell.sample("sale", USUAL, Map.of("amount", "12.50")).ipn();
        assertEquals("12.50", named.amount());
    }

    @Test
    void theLongestTextIsThatOfTheLongestBodyWhateverJacksonAllowsByItself() {
        var limits = Contract.JSON.getFactory().streamReadConstraints();
        assertEquals(Paybell.BODY_BYTES_MAX, limits.getMaxStringLength());
    }

    @Test
    void theSettingDecidesWhichFieldsAreReadAndSigned() {
        var sample = sample("void", EXTENDED);
        for (var keys : List.of(EXTENDED, with("{\"fields\": [\"specification\", \"extended\"]}"))) {
            var received = open(sample, keys);
            assertEquals("VOID", received.ipn().command());
            assertEquals(received.headers().originalTransactionId(), ((CardIpn) received.ipn()).originalId());
        }
        assertEquals("wrong_fields", refusal(sample.body(), sample.headers(), USUAL));
        var settlement =
                (SettlementIpn) open(sample("settlement", EXTENDED), EXTENDED).ipn();
        assertEquals("VND", settlement.currency());
        assertNull(open(sample("sale", USUAL), USUAL).ipn().command());
    }

    @Test
    void anUnknownFieldIsKept() {
        var sample = sample("sale", with("{\"fields\": \"extended\", \"signing\": {\"mode\": \"whole\"}}"));
        var received = open(sample, with("{\"signing\": {\"mode\": \"whole\"}}"));
        assertNull(received.ipn().command());
        assertEquals("SALE", received.wire().get("command"));
    }

    @Test
    void eachRefusalHasItsCodeAndTheSameText() {
        var made = Paybell.sample("sale");
        var spaced = (new String(made.body(), StandardCharsets.UTF_8) + " ").getBytes(StandardCharsets.UTF_8);
        var late = new java.util.TreeMap<>(made.headers());
        late.put("webhook-timestamp", "1");
        var headers = made.headers();
        assertEquals("missing_headers", refusal(made.body(), Map.of(), USUAL));
        assertEquals("webhook_signature", refusal(made.body(), late, USUAL));
        assertEquals("wrong_cipher", refusal(made.body(), headers, with("{\"cipher\": \"jwe\"}")));
        assertEquals("wrong_encoding", refusal(made.body(), headers, with("{\"encoding\": \"hex\"}")));
        assertEquals("wrong_signing", refusal(made.body(), headers, with("{\"signing\": {\"mode\": \"whole\"}}")));
        assertEquals("rewritten_body", refusal(spaced, headers, USUAL));
        assertEquals("empty_body", refusal(new byte[0], headers, USUAL));
        assertEquals("compressed_body", refusal(new byte[] {0x1f, (byte) 0x8b, 8, 0}, headers, USUAL));
        assertEquals("too_large", refusal(new byte[Paybell.BODY_BYTES_MAX + 1], headers, USUAL));
        var other = Keys.of(Keys.SAMPLE.replace(OLD, NEW));
        assertEquals("decryption", refusal(made.body(), headers, other));
    }

    @Test
    void aWrongKeyIsNamedButNeverShown() {
        String good = "\"encryptionKey\": \"" + NEW + "\", \"webhookSecret\": \"whsec_" + OLD + "\"";
        var cases = Map.ofEntries(
                Map.entry("{" + good + "}", "missing_key"),
                Map.entry("{" + good + ", \"signingKey\": \"QUJD\"}", "key_length"),
                Map.entry(
                        "{" + good + ", \"signingKey\": \"CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ\"}",
                        "key_length"),
                Map.entry("{" + good + ", \"signingKey\": \"é!\"}", "key_not_base64"),
                Map.entry("{" + good + ", \"signingKey\": \"" + NEW + "\"}", "shared_key"),
                Map.entry("{\"webhookSecret\": \"" + NEW + "\"}", "no_whsec_prefix"),
                Map.entry("[\"" + NEW, "wrong_option"),
                Map.entry("null", "wrong_option"));
        cases.forEach((text, code) -> assertEquals(code, mistake(() -> Keys.of(text))));
        for (String settings : List.of("cipher\": \"aes-128", "cipher\": [\"jwe\"], \"fields\": \"x", "fields\": \"x"))
            assertEquals("wrong_option", mistake(() -> with("{\"" + settings + "\"}")));
        assertEquals("wrong_option", mistake(() -> with("{\"fields\": []}")));
    }

    @Test
    void filesAreReadAgainAndOlderShapesRewritten(@TempDir Path folder) throws IOException {
        Path first = folder.resolve("paybell.json"), rotation = folder.resolve("rotation.json");
        Files.writeString(
                first,
                """
                {"encryptionKeys": [{"id": "1", "key": "%s"}],
                 "signingKeys": ["AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="],
                 "webhookSecrets": ["whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="]}"""
                        .formatted(OLD));
        Files.setPosixFilePermissions(first, PosixFilePermissions.fromString("rw-r-----"));
        Files.writeString(
                rotation,
                "{\"id\": \"2\", \"kind\": \"encryptionKey\", \"secret\": \"" + NEW
                        + "\", \"activeFrom\": \"2026-01-01T00:00:00Z\"}");
        var keys = new KeyFile(first, rotation);
        var json = new ObjectMapper();
        assertEquals(
                json.readTree(
                        "{\"encryptionKey\": [{\"id\": \"2\", \"activeFrom\": \"2026-01-01T00:00:00Z\", \"key\": \""
                                + NEW + "\"}]}"),
                json.readTree(rotation.toFile()));
        var rewritten = json.readTree(first.toFile());
        assertEquals(OLD, rewritten.at("/encryptionKey/0/key").asText());
        assertFalse(rewritten.has("signingKeys"));
        assertEquals("rw-r-----", PosixFilePermissions.toString(Files.getPosixFilePermissions(first)));
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(2, files.count());
        }
        var made = Paybell.sample("sale");
        assertEquals("1", open(made, keys).keyId());
        Files.writeString(first, "{");
        assertEquals("1", open(made, keys).keyId());
        Files.writeString(first, Keys.SAMPLE.replace(OLD, NEW));
        assertEquals("decryption", refusal(made.body(), made.headers(), keys));
        // Of the same length, as the next key is.
        Files.writeString(first, Keys.SAMPLE);
        Files.setLastModifiedTime(first, FileTime.fromMillis(System.currentTimeMillis() + 1_000));
        assertEquals(made.ipn(), open(made, keys).ipn());
        // As one that only root could read, until its rights were changed: that changes no time.
        var time = FileTime.fromMillis(System.currentTimeMillis() + 2_000);
        for (String content : List.of(" ".repeat(Keys.SAMPLE.length()), Keys.SAMPLE.replace(OLD, NEW))) {
            assertEquals(made.ipn(), open(made, keys).ipn());
            Files.writeString(first, content);
            Files.setLastModifiedTime(first, time);
        }
        assertEquals("decryption", refusal(made.body(), made.headers(), keys));
    }

    /** As Spring users write it, and as a servlet of its own. */
    @RestController
    @EnableAutoConfiguration
    static final class Shop {
        static final AtomicReference<Exception> FAILURE = new AtomicReference<>();

        private final IpnServlet ipns = new IpnServlet(USUAL, Shop::store);

        @RequestMapping("/spring")
        void receive(HttpServletRequest request, HttpServletResponse response) throws IOException {
            ipns.service(request, response);
        }

        @Bean
        ServletRegistrationBean<IpnServlet> servlet() {
            return new ServletRegistrationBean<>(new IpnServlet(USUAL, Shop::store), "/servlet");
        }

        private static void store(Received received) throws Exception {
            if (FAILURE.get() != null) throw FAILURE.get();
        }
    }

    @Test
    void theHandlersAnswer2xxOnlyWhenTheFunctionHasReturned() throws Exception {
        try (var context = SpringApplication.run(Shop.class, "--server.port=0", "--server.address=127.0.0.1")) {
            String address = "http://127.0.0.1:" + context.getEnvironment().getProperty("local.server.port");
            for (String path : List.of("/spring", "/servlet")) {
                var made = Paybell.sample("sale");
                var target = URI.create(address + path);
                Shop.FAILURE.set(null);
                var statuses = new ArrayList<>(List.of(
                        ask(target, "POST", made.body(), made.headers()),
                        ask(target, "GET", new byte[0], Map.of()),
                        ask(target, "POST", made.body(), Map.of()),
                        ask(target, "POST", new byte[Paybell.BODY_BYTES_MAX + 1], made.headers())));
                Shop.FAILURE.set(new IOException("the database is away"));
                statuses.add(ask(target, "POST", made.body(), made.headers()));
                assertEquals(List.of(204, 405, 400, 413, 500), statuses);
            }
        }
    }

    private static int ask(URI target, String method, byte[] body, Map<String, String> headers) throws Exception {
        var request = HttpRequest.newBuilder(target).method(method, BodyPublishers.ofByteArray(body));
        headers.forEach(request::header);
        return HttpClient.newHttpClient()
                .send(request.build(), BodyHandlers.discarding())
                .statusCode();
    }

    @Test
    void catchUpGivesPageAfterPage() throws IOException {
        var answers = new ArrayDeque<String>();
        var asked = new ArrayList<String>();
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            asked.add(exchange.getRequestURI() + " "
                    + exchange.getRequestHeaders().getFirst("authorization"));
            byte[] answer = answers.remove().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(answers.isEmpty() ? 410 : 200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        var keys = with(
                "{\"baseUrl\": \"http://127.0.0.1:" + server.getAddress().getPort() + "/\", \"apiKey\": \"pb_x\"}");
        var json = new ObjectMapper();
        var made = List.of(Paybell.sample("sale"), Paybell.sample("settlement"));
        for (var sample : made) {
            var data = json.readTree(sample.body()).get("data");
            var item = json.writeValueAsString(Map.of("data", data, "headers", sample.headers()));
            answers.add("{\"items\": [" + item + "], \"next\": \"" + answers.size() + "\"}");
        }
        answers.add("{\"code\": \"cursor_expired\", \"detail\": \"It is gone.\"}");
        try {
            var pages = Paybell.catchUp("start", keys).iterator();
            assertEquals(made.get(0).ipn(), pages.next().items().get(0).ipn());
            assertEquals(1, asked.size());
            assertEquals("1", pages.next().cursor());
            assertEquals(
                    List.of(
                            "/v1/notifications?limit=100&after=start Bearer pb_x",
                            "/v1/notifications?limit=100&after=0 Bearer pb_x"),
                    asked);
            var expired = assertThrows(PaybellException.class, pages::hasNext);
            assertEquals("cursor_expired", expired.code());
            assertTrue(expired.remedy().contains("reconcile the gap"));
            answers.addAll(List.of("{\"items\": [], \"next\": \"2\"}", "not asked for"));
            var last = Paybell.catchUp("2", keys, Duration.ofSeconds(30)).iterator();
            assertEquals("2", last.next().cursor());
            assertFalse(last.hasNext());
            assertEquals("/v1/notifications?limit=100&after=2&wait=30 Bearer pb_x", asked.get(3));
        } finally {
            server.stop(0);
        }
        var gone = assertThrows(
                PaybellException.class, () -> Paybell.catchUp(null, keys).iterator());
        assertEquals("no_answer", gone.code());
        Thread.currentThread().interrupt();
        assertThrows(PaybellException.class, () -> Paybell.catchUp(null, keys).iterator());
        assertTrue(Thread.interrupted(), "a thread that is told to end notices it");
        for (String settings : List.of(
                "{\"baseUrl\": \"http://paybell.example\"}",
                "{\"baseUrl\": \"http://localhost.example\"}",
                "{\"baseUrl\": \"https://x\", \"apiKey\": \"AwMD\\n\"}"))
            assertEquals("wrong_option", mistake(() -> Paybell.catchUp(null, with(settings))
                    .iterator()));
    }

    @Test
    void catchUpEndsAlsoIfTheAnswerStops() throws IOException {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 100);
            exchange.getResponseBody().write('{');
            exchange.getResponseBody().flush();
        });
        server.start();
        var keys =
                with("{\"baseUrl\": \"http://127.0.0.1:" + server.getAddress().getPort() + "\", \"apiKey\": \"pb_x\"}");
        var limit = Duration.ofMillis(500);
        assertEquals("no_answer", mistake(() -> Page.pages(null, keys, Duration.ZERO, limit)));
        server.stop(0);
    }
}
