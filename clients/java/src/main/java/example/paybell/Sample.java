package example.paybell;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Instant;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/** A POST of Paybell's, for tests. */
public record Sample(byte[] body, Map<String, String> headers, Ipn ipn) {
    static Sample of(String kind, Keys keys, Map<String, ?> fields) {
        var example = Contract.IT.samples().get(kind);
        if (example == null)
            throw new PaybellException(
                    "wrong_option", "The samples are " + Contract.IT.samples().keySet() + ".");
        boolean settles = kind.equals("settlement");
        String setting = Collections.min(keys.agreed.fields()); // "extended" if it is one of them
        var ipn = Content.byTableNames(
                example.ipn(), Contract.IT.table(settles, setting).fields());
        ipn.putAll(Map.of("id", newId(), "reqId", newId()));
        for (String name : fields.keySet())
            if (!ipn.containsKey(name))
                throw new PaybellException("wrong_option", "A " + kind + " has no field " + name + ".");
        ipn.putAll(fields);
        var content = new Content(settles, ipn, ipn, "");
        var signatures = content.signatures(keys, setting);
        ipn.put("signature", signatures.findFirst().orElseThrow());
        String data = Seal.data(keys.agreed, keys.all("encryptionKey").get(0), Contract.canonical(ipn));
        byte[] body = Contract.canonical(Map.of("data", data));
        String id = newId(), timestamp = Long.toString(Instant.now().getEpochSecond());
        byte[] start = (id + "." + timestamp + ".").getBytes(UTF_8);
        String mac = Seal.encode(Seal.hmac(keys.all("webhookSecret").get(0), start, body), "base64");
        var headers = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
        headers.putAll(example.headers());
        headers.putAll(Map.of("webhook-id", id, "webhook-timestamp", timestamp, "webhook-signature", "v1," + mac));
        return new Sample(body, headers, content.typed());
    }

    private static String newId() {
        return UUID.randomUUID().toString();
    }
}
