package example.paybell;

import static example.paybell.PaybellException.mistake;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNullElse;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** The keys and the agreement of a registration. Several versions of a key are those of a rotation: each is accepted. */
public final class Keys implements Supplier<Keys> {
    /** Keys that everybody knows, as JSON: for tests only. */
    public static final String SAMPLE = new String(Contract.canonical(Contract.IT.sampleKeys()), UTF_8);

    static final List<String> KINDS = List.of("encryptionKey", "signingKey", "webhookSecret");

    record Version(String id, byte[] key) {}

    record Signing(String mode, List<String> card, List<String> settlement) {}

    record Agreement(
            String cipher, String encoding, Signing signing, List<String> fields, String baseUrl, String apiKey) {}

    final Agreement agreed;
    private final Map<String, List<Version>> versions;

    /** Reads the content of one file of keys or several: their versions are put together. */
    public static Keys of(String... contents) {
        return new Keys(Stream.of(contents)
                .map(one -> KeyFile.modern(parse("The keys", one)))
                .toList());
    }

    Keys(List<Map<String, Object>> files) {
        var merged = new HashMap<>(Contract.IT.defaults());
        versions = new HashMap<>();
        for (var file : files) {
            merged.putAll(file);
            for (String kind : KINDS)
                versions.computeIfAbsent(kind, name -> new ArrayList<>()).addAll(versions(kind, file.get(kind)));
        }
        var owners = new HashMap<ByteBuffer, String>();
        for (String kind : KINDS) {
            if (all(kind).isEmpty()) throw mistake(kind, "missing_key");
            for (var one : all(kind))
                if (!owners.computeIfAbsent(ByteBuffer.wrap(one.key), key -> kind)
                        .equals(kind)) throw mistake(kind, "shared_key");
        }
        agreed = checked(merged);
    }

    private Keys(Agreement agreed, Map<String, List<Version>> versions) {
        this.agreed = agreed;
        this.versions = versions;
    }

    /** The same with another setting. */
    Keys with(Contract.Try other) {
        var swapped = new HashMap<>(versions);
        if (other.keys() != null)
            other.keys()
                    .forEach((kind, kinds) -> swapped.put(
                            kind,
                            kinds.stream()
                                    .flatMap(one -> all(one).stream())
                                    .map(one -> new Version("", one.key))
                                    .toList()));
        var changed = new Agreement(
                requireNonNullElse(other.cipher(), agreed.cipher),
                requireNonNullElse(other.encoding(), agreed.encoding),
                requireNonNullElse(other.signing(), agreed.signing),
                requireNonNullElse(other.fields(), agreed.fields),
                "",
                "");
        return new Keys(changed, swapped);
    }

    @Override
    public Keys get() {
        return this;
    }

    List<Version> all(String kind) {
        return versions.get(kind);
    }

    /** Its error does not quote the text. */
    static Map<String, Object> parse(String name, String text) {
        try {
            var read = Contract.JSON.readValue(text, Contract.OBJECT);
            if (read != null) return read;
        } catch (JsonProcessingException error) {
            // As null.
        }
        throw new PaybellException("wrong_option", name + " is not a JSON object.");
    }

    private static Agreement checked(Map<String, Object> merged) {
        Agreement agreed;
        try {
            agreed = Contract.JSON.convertValue(merged, Agreement.class);
        } catch (IllegalArgumentException error) { // It would quote the file.
            throw new PaybellException("wrong_option", "A member of the file of the keys has another type.");
        }
        var given = new HashMap<>(Map.of("cipher", List.of(agreed.cipher), "encoding", List.of(agreed.encoding)));
        given.put("signing", List.of(agreed.signing.mode));
        given.put("fields", agreed.fields);
        Contract.IT.settings().forEach((name, allowed) -> {
            if (given.get(name).isEmpty() || !allowed.containsAll(given.get(name)))
                throw new PaybellException(
                        "wrong_option", name + " must be one of " + String.join(", ", allowed) + ".");
        });
        return agreed;
    }

    private static List<Version> versions(String kind, Object given) {
        List<?> list = given instanceof List<?> several ? several : given == null ? List.of() : List.of(given);
        return list.stream()
                .map(one -> one instanceof Map<?, ?> version ? version : Map.of("key", one))
                .map(one -> new Version(one.get("id") instanceof String id ? id : "", bytes(kind, one.get("key"))))
                .toList();
    }

    /** A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning. */
    private static byte[] bytes(String kind, Object written) {
        String text = written instanceof String one ? one : "";
        String prefix = kind.equals("webhookSecret") ? "whsec_" : "";
        if (text.isEmpty()) throw mistake(kind, "missing_key");
        if (!text.startsWith(prefix)) throw mistake(kind, "no_whsec_prefix");
        byte[] raw = Seal.decode(text.substring(prefix.length()), "base64");
        if (raw == null) throw mistake(kind, "key_not_base64");
        if (raw.length != 32) throw mistake(kind, "key_length");
        return raw;
    }
}
