package example.paybell;

import static example.paybell.PaybellException.throwIf;
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

    /** The keys of one kind that are tried in the place of another's. */
    private record Swaps(Map<String, List<String>> keys) {}

    record Agreement(
            String cipher, String encoding, Signing signing, List<String> fields, String baseUrl, String apiKey) {}

    final Agreement agreed;
    private final Map<String, Object> settings;
    private final Map<String, List<Version>> versions;

    /** Reads the content of one file of keys or several: their versions are put together. */
    public static Keys of(String... contents) {
        return of(Stream.of(contents)
                .map(one -> KeyFile.modern(parse("The keys", one)))
                .toList());
    }

    static Keys of(List<Map<String, Object>> files) {
        var settings = new HashMap<>(Contract.IT.defaults());
        var versions = new HashMap<String, List<Version>>();
        var owners = new HashMap<ByteBuffer, String>();
        for (var file : files) {
            settings.putAll(file);
            for (String kind : KINDS) {
                var given = file.get(kind);
                for (var one : given instanceof List<?> list ? list : given == null ? List.of() : List.of(given)) {
                    var version = one instanceof Map<?, ?> map ? map : Map.of("key", one);
                    byte[] key = bytes(kind, version.get("key"));
                    String owner = owners.computeIfAbsent(ByteBuffer.wrap(key), any -> kind);
                    throwIf(!owner.equals(kind), "shared_key", kind);
                    String id = version.get("id") instanceof String text ? text : "";
                    versions.computeIfAbsent(kind, any -> new ArrayList<>()).add(new Version(id, key));
                }
            }
        }
        for (String kind : KINDS) throwIf(!versions.containsKey(kind), "missing_key", kind);
        return new Keys(settings, versions);
    }

    private Keys(Map<String, Object> settings, Map<String, List<Version>> versions) {
        this.settings = settings;
        this.versions = versions;
        try {
            agreed = Contract.JSON.convertValue(settings, Agreement.class);
        } catch (IllegalArgumentException error) { // It would quote the file.
            throw new PaybellException("wrong_option", "A member of the file of the keys has another type.");
        }
        check("cipher", List.of(agreed.cipher));
        check("encoding", List.of(agreed.encoding));
        check("signing", List.of(agreed.signing.mode));
        check("fields", agreed.fields);
    }

    private static void check(String name, List<String> given) {
        var allowed = Contract.IT.settings().get(name);
        boolean isWrong = given.isEmpty() || !allowed.containsAll(given);
        throwIf(isWrong, "wrong_option", name, "must be one of", String.join(", ", allowed) + ".");
    }

    /** The same with what is tried. */
    Keys with(Map<String, Object> tried) {
        var changed = new HashMap<>(settings);
        changed.putAll(tried);
        var swapped = new HashMap<>(versions);
        var swaps = Contract.JSON.convertValue(tried, Swaps.class).keys();
        requireNonNullElse(swaps, Map.<String, List<String>>of()).forEach((kind, kinds) -> {
            var those = kinds.stream().flatMap(one -> all(one).stream());
            swapped.put(kind, those.map(one -> new Version("", one.key)).toList());
        });
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
        throw new PaybellException("wrong_option", name, "is not a JSON object.");
    }

    /** A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning. */
    private static byte[] bytes(String kind, Object written) {
        String text = written instanceof String one ? one : "";
        String prefix = kind.equals("webhookSecret") ? "whsec_" : "";
        throwIf(text.isEmpty(), "missing_key", kind);
        throwIf(!text.startsWith(prefix), "no_whsec_prefix", kind);
        byte[] raw = Seal.decode(text.substring(prefix.length()), "base64", "key_not_base64", kind);
        throwIf(raw.length != 32, "key_length", kind);
        return raw;
    }
}
