package example.paybell;

import static example.paybell.PaybellException.mistake;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** The keys and the agreement of a registration. Several versions of a key are those of a rotation: each is accepted. */
public final class Keys implements Supplier<Keys> {
    /** Keys that everybody knows, as JSON: for tests only. */
    public static final String SAMPLE =
            """
            {"encryptionKey": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
             "signingKey": "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=",
             "webhookSecret": "whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="}""";

    static final List<String> KINDS = List.of("encryptionKey", "signingKey", "webhookSecret");
    static final List<String> CIPHERS = List.of("aes-256-gcm", "aes-256-cbc", "jwe");
    static final List<String> ENCODINGS = List.of("base64", "base64url", "hex");
    static final List<String> MODES = List.of("whole", "fields");
    /** The extended ones first: they say more of the same IPN. */
    static final List<String> FIELDS = List.of("extended", "specification");

    record Version(String kind, String id, byte[] key) {
        /** An empty id matches any. */
        Version anonymous() {
            return new Version(kind, "", key);
        }
    }

    record Signing(String mode, List<String> card, List<String> settlement) {}

    record Agreement(String cipher, String encoding, Signing signing, List<String> fields) {}

    final Agreement agreed;
    final String baseUrl;
    final String apiKey;
    private final List<Version> versions;

    /** Reads the content of one file of keys or several: their versions are put together. */
    public static Keys of(String... contents) {
        return new Keys(Stream.of(contents)
                .map(one -> KeyFile.modern(parse("The keys", one)))
                .toList());
    }

    Keys(List<Map<String, Object>> files) {
        var merged = new HashMap<String, Object>(Map.of("cipher", "aes-256-gcm", "encoding", "base64"));
        merged.putAll(Map.of("signing", Map.of("mode", "fields"), "fields", "specification"));
        files.forEach(merged::putAll);
        versions = KINDS.stream()
                .flatMap(kind -> files.stream().flatMap(file -> versions(kind, file)))
                .toList();
        var owners = new HashMap<ByteBuffer, String>();
        for (var one : versions) {
            String owner = owners.putIfAbsent(ByteBuffer.wrap(one.key), one.kind);
            if (owner != null && !owner.equals(one.kind))
                throw mistake("shared_key", one.kind + " is the same key as " + owner + ".");
        }
        for (String kind : KINDS) if (all(kind).isEmpty()) throw mistake("missing_key", kind + " is missing.");
        agreed = checked(merged);
        baseUrl = merged.getOrDefault("baseUrl", "").toString().replaceFirst("/+$", "");
        apiKey = merged.getOrDefault("apiKey", "").toString();
    }

    @Override
    public Keys get() {
        return this;
    }

    List<Version> all(String... kinds) {
        return versions.stream()
                .filter(one -> List.of(kinds).contains(one.kind))
                .toList();
    }

    /** Its error does not quote the text. */
    static Map<String, Object> parse(String name, String text) {
        try {
            var read = Contract.JSON.readValue(text, Contract.OBJECT);
            if (read != null) return read;
        } catch (JsonProcessingException error) {
            // As null.
        }
        throw mistake("wrong_option", name + " is not a JSON object.");
    }

    private static Agreement checked(Map<String, Object> merged) {
        try {
            var agreed = Contract.JSON.convertValue(merged, Agreement.class);
            allowed("cipher", List.of(agreed.cipher), CIPHERS);
            allowed("encoding", List.of(agreed.encoding), ENCODINGS);
            allowed("signing.mode", List.of(agreed.signing.mode), MODES);
            allowed("fields", agreed.fields, FIELDS);
            return agreed;
        } catch (IllegalArgumentException | NullPointerException error) {
            throw mistake("wrong_option", "cipher, encoding, signing or fields has another type.");
        }
    }

    private static void allowed(String name, List<String> given, List<String> allowed) {
        if (given.isEmpty() || !allowed.containsAll(given))
            throw mistake("wrong_option", name + " must be one of " + String.join(", ", allowed) + ".");
    }

    private static Stream<Version> versions(String kind, Map<String, Object> file) {
        Object given = file.getOrDefault(kind, List.of());
        return (given instanceof List<?> list ? list.stream() : Stream.of(given))
                .map(one -> one instanceof Map<?, ?> version ? version : Map.of("key", one))
                .map(one ->
                        new Version(kind, one.get("id") instanceof String id ? id : "", bytes(kind, one.get("key"))));
    }

    /** A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning. */
    private static byte[] bytes(String kind, Object written) {
        if (!(written instanceof String text) || text.isEmpty()) throw mistake("missing_key", kind + " is missing.");
        String prefix = kind.equals("webhookSecret") ? "whsec_" : "";
        if (!text.startsWith(prefix)) throw mistake("no_whsec_prefix", kind + " does not begin with whsec_.");
        byte[] raw = Seal.decode(text.substring(prefix.length()), "base64");
        if (raw == null) throw mistake("key_not_base64", kind + " is not base64.");
        if (raw.length != 32) throw mistake("key_length", kind + " has " + raw.length + " bytes instead of 32.");
        return raw;
    }
}
