package shop;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import example.paybell.Keys;
import example.paybell.Paybell;
import example.paybell.PaybellException;
import example.paybell.Received;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Objects;

/** Holds the installed package to test vectors: {@code java shop.Vectors vectors.json}. */
final class Vectors {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Vectors() {}

    public static void main(String[] args) throws IOException {
        boolean passed = true;
        for (var vector : JSON.readTree(Path.of(args[0]).toFile()).get("vectors")) {
            boolean isRight = isRight(vector);
            System.out.println(
                    (isRight ? "ok   " : "FAIL ") + vector.get("name").asText());
            passed &= isRight;
        }
        System.exit(passed ? 0 : 1);
    }

    private static boolean isRight(JsonNode vector) {
        var clock = Clock.fixed(Instant.ofEpochSecond(vector.get("nowSeconds").asLong()), ZoneOffset.UTC);
        var headers = vector.get("headers");
        Received received;
        try {
            byte[] body = vector.get("body").asText().getBytes(UTF_8);
            var keys = Keys.of(vector.toString());
            received = Paybell.open(body, name -> headers.path(name).textValue(), keys, clock);
        } catch (PaybellException error) {
            String code = vector.path("code").asText(error.code());
            if (code.equals(error.code())) return error.isRefusal() && !vector.has("ipn");
            System.err.println(error.code() + " instead of " + code + ": "
                    + vector.get("name").asText());
            return false;
        }
        boolean isSameKey = received.keyId().equals(vector.path("keyId").asText(received.keyId()));
        return isSameKey && Objects.equals(JSON.valueToTree(received.ipn()), vector.get("ipn"));
    }
}
