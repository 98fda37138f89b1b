package example.paybell;

import static example.paybell.PaybellException.throwIf;
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import example.paybell.Contract.Table;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** One POST: its sender and time are verified, it is decrypted, and if that fails, the cause is searched. */
record Opening(byte[] body, UnaryOperator<String> header, Keys keys) {
    /** Longer bodies are not tried with other settings: refusing a body must not cost more than sending it. */
    private static final int TRIED_BYTES_MAX = 1 << 20;

    private static final Pattern ONLY_DATA = Pattern.compile("\\s*\\{\\s*\"data\"\\s*:\\s*(\"[^\"\\\\]*\")\\s*}\\s*");

    Received open(long nowSeconds) {
        throwIf(body.length > Paybell.BODY_BYTES_MAX, "too_large");
        checkHeaders(nowSeconds);
        String named = hint("paybell-key");
        try {
            var content = Content.open(body, keys);
            boolean isOutOfOrder = hint("paybell-out-of-order").equals("1");
            String command = hint("paybell-command"), original = hint("paybell-original-transaction");
            var hints = new Received.Headers(hint("paybell-attempt"), command, original, isOutOfOrder);
            String keyId = content.keyId().isEmpty() ? named : content.keyId();
            return new Received(content.typed(), content.wire(), hint("webhook-id"), keyId, hints);
        } catch (PaybellException refused) {
            String code = Objects.requireNonNullElseGet(mistake(), () -> explained(refused.code()));
            if (!code.equals("decryption") || named.isEmpty()) throw new PaybellException(code);
            String version = named.substring(0, Math.min(64, named.length())).replaceAll("[^ -~]", "?");
            throw new PaybellException(code, "The message names the version \"" + version + "\".");
        }
    }

    private String hint(String name) {
        return Objects.requireNonNullElse(header.apply(name), "");
    }

    /** Standard Webhooks v1. Before anything is decrypted: a sender without the secret gets no further. */
    private void checkHeaders(long nowSeconds) {
        String id = hint("webhook-id"), timestamp = hint("webhook-timestamp");
        for (String name : List.of("webhook-id", "webhook-timestamp", "webhook-signature"))
            throwIf(header.apply(name) == null, "missing_headers");
        throwIf(!id.matches("[^.\\s]{1,256}") || !timestamp.matches("[0-9]{1,12}"), "webhook_signature");
        if (!isSigned(body, "webhookSecret")) throw new PaybellException(forgery());
        long age = nowSeconds - Long.parseLong(timestamp);
        boolean isFresh = Math.abs(age) <= Paybell.FRESHNESS_SECONDS;
        throwIf(!isFresh, "not_fresh", "It is", Long.toString(age), "s old by this clock:");
    }

    private boolean isSigned(byte[] text, String... kinds) {
        var entries = List.of(hint("webhook-signature").split(" "));
        return Stream.of(kinds)
                .flatMap(kind -> keys.all(kind).stream())
                .map(key -> Seal.signature(key, hint("webhook-id"), hint("webhook-timestamp"), text))
                .anyMatch(expected -> entries.stream().anyMatch(entry -> Seal.equal(expected, entry)));
    }

    /** Explains a wrong signature that may be no forgery. */
    private String forgery() {
        String mistake = mistake();
        if (mistake != null) return mistake;
        if (body.length > TRIED_BYTES_MAX) return "webhook_signature";
        var data = ONLY_DATA.matcher(new String(body, UTF_8));
        if (data.matches() && isSigned(("{\"data\":" + data.group(1) + "}").getBytes(UTF_8), "webhookSecret"))
            return "rewritten_body";
        return isSigned(body, "encryptionKey", "signingKey") ? "swapped_keys" : "webhook_signature";
    }

    /** The mistake that the body itself shows, whoever sent it; else null. */
    private String mistake() {
        if (body.length == 0) return "empty_body";
        // Not strip(): U+001F, with which gzip begins, is white space there.
        String start = new String(body, 0, Math.min(64, body.length), ISO_8859_1).replaceFirst("^[ \t\r\n]+", "");
        var found = Contract.IT.starts().keySet().stream().filter(start::startsWith);
        return found.findFirst().map(Contract.IT.starts()::get).orElse(null);
    }

    /** Other settings are tried: only for the holder of the webhook secret. */
    private String explained(String code) {
        boolean isDecrypted = code.equals("signature");
        for (var tried : Contract.IT.tries().get(isDecrypted ? "signature" : "body")) {
            if (body.length > TRIED_BYTES_MAX) break;
            try {
                Content.open(body, keys.with(tried));
                return tried.get("code").toString();
            } catch (PaybellException refused) {
                if (!isDecrypted && refused.code().equals("signature"))
                    return tried.get("code").toString();
            }
        }
        return code;
    }

    /** An IPN by the tables' names, and as it was sent. */
    record Content(boolean settles, Map<String, Object> ipn, Map<String, Object> wire, String keyId) {
        /** Decrypts a body and verifies the IPN's own signature. */
        static Content open(byte[] body, Keys keys) {
            Seal seal = Seal.of(keys.agreed, dataOf(body));
            String code = "unknown_key";
            for (var one : keys.all("encryptionKey")) {
                if (seal.isJwe() && !one.id().isEmpty() && !one.id().equals(seal.keyId())) continue;
                String keyId = one.id().isEmpty() ? seal.keyId() : one.id();
                try { // A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
                    return verified(Contract.parse(seal.decrypt(one.key())), keyId, keys);
                } catch (PaybellException refused) {
                    boolean saysMore = !refused.code().equals("decryption") || code.equals("unknown_key");
                    if (saysMore) code = refused.code();
                }
            }
            throw new PaybellException(code);
        }

        private static String dataOf(byte[] body) {
            var envelope = Contract.parse(body, "envelope");
            if (envelope.size() == 1 && envelope.get("data") instanceof String data) return data;
            throw new PaybellException("envelope");
        }

        private static Content verified(Map<String, Object> wire, String keyId, Keys keys) {
            boolean settles = wire.containsKey("saleQuantity")
                    || "SETTLE".equals(wire.get("transaction_type")) && wire.containsKey("settlementList");
            throwIf(!isTextsOnly(wire), "wrong_type");
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
            throw new PaybellException("signature");
        }

        /**
         * By each signing key: section 5.1. The extended fields follow the agreed list, unless it names them. If the
         * receiver accepts IPNs without them too, a list that names them skips them there.
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
                throwIf(found.size() > 1, "two_names");
                boolean isList = names.get(0).equals("settlementList");
                Object value = !found.isEmpty() ? wire.get(found.get(0)) : isList ? List.of() : "";
                throwIf(!(isList ? value instanceof List : value instanceof String), "wrong_type");
                if (value instanceof List<?> rows)
                    value = rows.stream().map(Content::row).toList();
                ipn.put(names.get(0), value);
            }
            return ipn;
        }

        private static Map<String, Object> row(Object row) {
            if (row instanceof Map<?, ?> entry) return byTableNames(entry, Contract.IT.entry());
            throw new PaybellException("wrong_type");
        }

        /** Section 2: all scalars are strings. This applies to unknown fields as well. */
        private static boolean isTextsOnly(Object value) {
            if (value instanceof Map<?, ?> map) return map.values().stream().allMatch(Content::isTextsOnly);
            return value instanceof List<?> list
                    ? list.stream().allMatch(Content::isTextsOnly)
                    : value instanceof String;
        }

        Ipn typed() {
            Class<? extends Ipn> type = settles ? SettlementIpn.class : CardIpn.class;
            return Contract.JSON.convertValue(ipn, type);
        }
    }
}
