package example.paybell;

import static example.paybell.PaybellException.throwIf;

import example.paybell.Opening.Content;
import java.time.Instant;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/** A POST of Paybell's, for tests. */
public record Sample(byte[] body, Map<String, String> headers, Ipn ipn) {
    static Sample of(String kind, Keys keys, Map<String, ?> fields) {
        var example = Contract.IT.samples().get(kind);
        throwIf(
                example == null,
                "wrong_option",
                "The samples are " + Contract.IT.samples().keySet() + ".");
        boolean settles = kind.equals("settlement");
        String setting = Collections.min(keys.agreed.fields()); // "extended" if it is one of them
        var ipn = Content.byTableNames(
                example.ipn(), Contract.IT.table(settles, setting).fields());
        ipn.putAll(Map.of("id", newId(), "reqId", newId()));
        for (String name : fields.keySet())
            throwIf(!ipn.containsKey(name), "wrong_option", "A", kind, "has no field", name + ".");
        ipn.putAll(fields);
        var content = new Content(settles, ipn, ipn, "");
        var signatures = content.signatures(keys, setting);
        ipn.put("signature", signatures.findFirst().orElseThrow());
        String data = Seal.data(keys.agreed, keys.all("encryptionKey").get(0), Contract.canonical(ipn));
        byte[] body = Contract.canonical(Map.of("data", data));
        String id = newId(), timestamp = Long.toString(Instant.now().getEpochSecond());
        String signature = Seal.signature(keys.all("webhookSecret").get(0), id, timestamp, body);
        var headers = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
        headers.putAll(example.headers());
        headers.putAll(Map.of("webhook-id", id, "webhook-timestamp", timestamp, "webhook-signature", signature));
        return new Sample(body, headers, content.typed());
    }

    private static String newId() {
        return UUID.randomUUID().toString();
    }
}
