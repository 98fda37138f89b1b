package example.paybell;

import static example.paybell.PaybellException.refused;
import static java.nio.charset.StandardCharsets.UTF_8;

import example.paybell.Contract.Table;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** An IPN by the tables' names, and as it was sent. */
record Content(boolean settles, Map<String, Object> ipn, Map<String, Object> wire, String keyId) {
    /** Decrypts a body and verifies the IPN's own signature. */
    static Content open(byte[] body, Keys keys) {
        Seal seal = Seal.of(keys.agreed, dataOf(body));
        String code = "unknown_key";
        for (var one : keys.all("encryptionKey")) {
            if (seal.keyId() != null && !one.id().isEmpty() && !one.id().equals(seal.keyId())) continue;
            String keyId = one.id().isEmpty() ? Objects.requireNonNullElse(seal.keyId(), "") : one.id();
            try { // A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
                return verified(Contract.parse(seal.decrypt(one.key())), keyId, keys);
            } catch (PaybellException refused) {
                boolean saysMore = !refused.code().equals("decryption") || code.equals("unknown_key");
                if (saysMore) code = refused.code();
            }
        }
        throw refused(code);
    }

    private static String dataOf(byte[] body) {
        try {
            var envelope = Contract.parse(body);
            if (envelope.size() == 1 && envelope.get("data") instanceof String data) return data;
        } catch (PaybellException error) {
            // It is no envelope.
        }
        throw refused("envelope");
    }

    private static Content verified(Map<String, Object> wire, String keyId, Keys keys) {
        boolean settles = wire.containsKey("saleQuantity")
                || "SETTLE".equals(wire.get("transaction_type")) && wire.containsKey("settlementList");
        if (!isTextsOnly(wire)) throw refused("wrong_type");
        for (String setting : Contract.IT.settings().get("fields")) {
            Table table = Contract.IT.table(settles, setting);
            // With the whole IPN signed, one without these fields has the same signed string.
            if (!keys.agreed.fields().contains(setting) || !wire.keySet().containsAll(table.added())) continue;
            var ipn = byTableNames(wire, table.fields());
            var content = new Content(settles, ipn, wire, keyId);
            String signature = ipn.get("signature").toString().toLowerCase(Locale.ROOT);
            if (content.signatures(keys, setting).noneMatch(one -> Seal.equal(one, signature))) continue;
            ipn.computeIfPresent(
                    "cardScheme", (name, scheme) -> scheme.toString().toUpperCase(Locale.ROOT));
            return content;
        }
        throw refused("signature");
    }

    /**
     * By each signing key: section 5.1. The extended fields follow the agreed list, unless it names them. If the receiver
     * accepts IPNs without them too, a list that names them skips them there.
     */
    Stream<String> signatures(Keys keys, String setting) {
        byte[] text = signed(keys.agreed.signing(), setting);
        return keys.all("signingKey").stream().map(key -> Seal.encode(Seal.hmac(key, text), "hex"));
    }

    private byte[] signed(Keys.Signing signing, String setting) {
        if (signing.mode().equals("whole")) {
            var signed = new LinkedHashMap<>(wire);
            signed.remove("signature");
            return Contract.canonical(signed);
        }
        Table table = Contract.IT.table(settles, setting);
        var agreed = settles ? signing.settlement() : signing.card();
        var names = new ArrayList<>(agreed == null ? table.signed() : agreed);
        table.added().stream().filter(name -> !names.contains(name)).forEach(names::add);
        return names.stream()
                .filter(ipn::containsKey)
                .map(name -> name + "=" + ipn.get(name))
                .collect(Collectors.joining("&"))
                .getBytes(UTF_8);
    }

    static Map<String, Object> byTableNames(Map<?, ?> wire, List<List<String>> fields) {
        var ipn = new LinkedHashMap<String, Object>();
        for (var names : fields) {
            var found = names.stream().filter(wire::containsKey).toList();
            if (found.size() > 1) throw refused("two_names");
            boolean isList = names.get(0).equals("settlementList");
            Object value = !found.isEmpty() ? wire.get(found.get(0)) : isList ? List.of() : "";
            if (!(isList ? value instanceof List : value instanceof String)) throw refused("wrong_type");
            if (value instanceof List<?> rows)
                value = rows.stream().map(Content::row).toList();
            ipn.put(names.get(0), value);
        }
        return ipn;
    }

    private static Map<String, Object> row(Object row) {
        if (row instanceof Map<?, ?> entry) return byTableNames(entry, Contract.IT.entry());
        throw refused("wrong_type");
    }

    /** Section 2: all scalars are strings. This applies to unknown fields as well. */
    private static boolean isTextsOnly(Object value) {
        if (value instanceof Map<?, ?> map) return map.values().stream().allMatch(Content::isTextsOnly);
        return value instanceof List<?> list ? list.stream().allMatch(Content::isTextsOnly) : value instanceof String;
    }

    Ipn typed() {
        Class<? extends Ipn> type = settles ? SettlementIpn.class : CardIpn.class;
        return Contract.JSON.convertValue(ipn, type);
    }
}
