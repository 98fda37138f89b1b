import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Objects;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Runs the test vectors on the receiver. */
final class Vectors {
    public static void main(String[] args) throws IOException {
        // The receiver's JSON has strings only: the numbers become strings. A quote inside a string has a \ before it.
        String text = Files.readString(Path.of(args[0])).replaceAll("(?<!\\\\)(\":\\s*)(\\d+)", "$1\"$2\"");
        boolean passed = true;
        for (Object one : Receiver.list(new Receiver.Json(text).read().get("vectors"))) {
            var vector = Receiver.object(one);
            boolean isRight = Objects.equals(open(vector), vector.get("ipn"));
            System.out.println((isRight ? "ok   " : "FAIL ") + vector.get("name"));
            passed &= isRight;
        }
        System.exit(passed ? 0 : 1);
    }

    private static Map<String, Object> open(Map<String, Object> vector) {
        var headers = Receiver.object(vector.get("headers"));
        var now = Instant.ofEpochSecond(Long.parseLong((String) vector.get("nowSeconds")));
        try {
            byte[] body = ((String) vector.get("body")).getBytes(UTF_8);
            return Receiver.verify(Receiver.Agreement.read(vector), body, name -> (String) headers.get(name), now);
        } catch (Receiver.Refused why) {
            return null;
        }
    }
}
