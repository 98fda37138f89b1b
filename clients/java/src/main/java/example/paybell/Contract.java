package example.paybell;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.util.List;
import java.util.Map;

/** The tables of the specification, generated from Paybell's own code, and its JSON. */
record Contract(
        Map<String, Map<String, Table>> tables,
        List<List<String>> entry,
        Map<String, Object> defaults,
        Map<String, List<String>> settings,
        Map<String, Mistake> errors,
        Map<String, String> starts,
        Map<String, List<Map<String, Object>>> tries,
        Map<String, Object> sampleKeys,
        Map<String, Example> samples) {
    /**
     * Names are not kept by the reader: those of a stranger could be made to collide. By itself, Jackson 2.15.0 refuses
     * texts of more than 5,000,000 characters, and a settlement may be longer.
     */
    private static final JsonFactory FACTORY = JsonFactory.builder()
            .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
            .disable(JsonWriteFeature.WRITE_HEX_UPPER_CASE)
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxNestingDepth(64)
                    .maxStringLength(Paybell.BODY_BYTES_MAX)
                    .build())
            .build();

    static final JsonMapper JSON = JsonMapper.builder(FACTORY)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS, DeserializationFeature.ACCEPT_SINGLE_VALUE_AS_ARRAY)
            .enable(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS)
            .build();
    static final TypeReference<Map<String, Object>> OBJECT = new TypeReference<>() {};
    static final Contract IT = read();

    /**
     * Fields are lists of the names that a field may have, the table's first. {@code signed} is the list without
     * another agreement; {@code added} follows any other.
     */
    record Table(List<List<String>> fields, List<String> signed, List<String> added) {}

    record Mistake(String finding, String remedy, boolean refused) {}

    record Example(Map<String, String> headers, Map<String, Object> ipn) {}

    Table table(boolean settles, String setting) {
        return tables.get(settles ? "settlement" : "card").get(setting);
    }

    private static Contract read() {
        try (var text = Contract.class.getResourceAsStream("contract.json")) {
            return JSON.readValue(text, Contract.class);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** One JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels. */
    static Map<String, Object> parse(byte[] raw) {
        String code = "not_text";
        try {
            String text = UTF_8.newDecoder().decode(ByteBuffer.wrap(raw)).toString();
            code = "not_json";
            var read = JSON.readValue(text, OBJECT);
            code = "duplicate_key";
            JSON.readerFor(OBJECT)
                    .with(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .readValue(text);
            if (read != null && UTF_8.newEncoder().canEncode(JSON.writeValueAsString(read))) return read;
            code = "not_json"; // A surrogate without the other half is no text.
        } catch (CharacterCodingException | JsonProcessingException error) {
            // Refused.
        }
        throw new PaybellException(code);
    }

    /** The same, with one code for each mistake. */
    static Map<String, Object> parse(byte[] raw, String code) {
        try {
            return parse(raw);
        } catch (PaybellException error) {
            throw new PaybellException(code);
        }
    }

    /** RFC 8785, for strings, lists and objects. Keys are in the order of UTF-16, which is String's own. */
    static byte[] canonical(Map<String, Object> value) {
        try {
            return JSON.writeValueAsString(value).getBytes(UTF_8);
        } catch (JsonProcessingException error) {
            throw new UncheckedIOException(error);
        }
    }
}
