import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.CharacterCodingException;
import java.nio.file.*;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.*;
import java.util.concurrent.Executors;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Receives Paybell's notifications (IPNs): verifies the sender, decrypts, stores each IPN once, answers.
 *
 * <pre>
 * java Receiver.java agreement.json      # listens on PORT, or 8080; stores in the folder inbox
 * javac -d classes *.java &amp;&amp; java -cp classes Vectors ../../vectors.json  # runs the test vectors
 * </pre>
 */
public final class Receiver {
    static final int FRESHNESS_SECONDS = 300;
    static final int BODY_BYTES_MAX = 16 << 20;

    // The tables of the specification, section 2. After a slash: a second name of the field.
    static final List<String> CARD = List.of("""
        aid amount appName approveCode/approve_code batchNo billId cardHolder cardNumber cardScheme currency \
        deviceId/device_id expDate extraData id invoiceNo isoResponseCode merchantAddress merchantId merchantName \
        merchantTransId mid paymentType/payment_type refId reqId status swipeType tc tid traceNo transDateTime \
        transaction_type signature""".split(" "));
    static final List<String> SETTLEMENT = List.of("""
        batchNo callbackUrl deviceId/deviceID extraData id merchantTransId mid quantity reqId saleQuantity \
        saleTotalAmount status tid totalAmount transaction_time transaction_type voidQuantity voidTotalAmount \
        settlementList signature""".split(" "));
    static final List<String> ENTRY = List.of("reqId/reqID", "refNo");
    static final List<String> CARD_SIGNED = List.of("""
        aid amount approveCode isoResponseCode merchantTransId isoResponseCode cardScheme tid mid traceNo \
        batchNo""".split(" "));
    static final List<String> SETTLEMENT_SIGNED = List.of("""
        batchNo quantity saleQuantity saleTotalAmount voidQuantity voidTotalAmount totalAmount tid mid""".split(" "));

    /** A message that is not authentic or not as agreed. The message is for your log, never for the sender. */
    @SuppressWarnings("serial")
    static final class Refused extends RuntimeException {
        Refused(String why) {
            super(why, null, false, false);
        }
    }

    static void require(boolean isSo, String otherwise) {
        if (!isSo) throw new Refused(otherwise);
    }

    record Key(String id, byte[] bytes) {}

    /** What was agreed with the operator: never taken from a message. Several keys are the versions of a rotation. */
    record Agreement(String cipher, String encoding, Map<String, Object> signing,
            List<Key> encryptionKeys, List<byte[]> signingKeys, List<byte[]> webhookSecrets) {

        static Agreement read(Map<String, Object> written) {
            return new Agreement((String) written.get("cipher"), (String) written.get("encoding"),
                object(written.get("signing")),
                list(written.get("encryptionKeys")).stream().map(Receiver::object)
                    .map(one -> new Key((String) one.get("id"), key(one.get("key")))).toList(),
                list(written.get("signingKeys")).stream().map(Agreement::key).toList(),
                list(written.get("webhookSecrets")).stream().map(Agreement::key).toList());
        }

        static byte[] key(Object text) {
            byte[] raw = decode(((String) text).replaceFirst("^whsec_", ""), "base64");
            if (raw.length != 32) throw new IllegalArgumentException("a key is the base64 of 32 bytes");
            return raw;
        }
    }

    /**
     * The IPN by the tables' names, or Refused.
     *
     * @param body the bytes as they came
     * @param header gives a request header by its name, null if it is not there
     */
    static Map<String, Object> verify(Agreement agreed, byte[] body, UnaryOperator<String> header, Instant now) {
        checkHeaders(agreed, body, header, now);
        var envelope = parse(body);
        require(envelope.size() == 1 && envelope.get("data") instanceof String, "the body is not {data}");
        var sealed = takeApart(agreed, (String) envelope.get("data"));
        var refused = new Refused("no key has this kid");
        for (var key : agreed.encryptionKeys) {
            if (sealed.keyId != null && !key.id.isEmpty() && !key.id.equals(sealed.keyId)) continue;
            try { // A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
                return checkContent(agreed, decrypt(agreed.cipher, key.bytes, sealed));
            } catch (Refused why) {
                refused = why;
            }
        }
        throw refused;
    }

    /** Standard Webhooks v1. Comes first: a sender without the secret must not learn how decryption ends. */
    static void checkHeaders(Agreement agreed, byte[] body, UnaryOperator<String> header, Instant now) {
        String id = header.apply("webhook-id"), timestamp = header.apply("webhook-timestamp");
        String signatures = header.apply("webhook-signature");
        require(id != null && timestamp != null && signatures != null, "a webhook header is missing");
        require(id.matches("[^.\\s]{1,256}") && timestamp.matches("[0-9]{1,12}"), "a webhook header is malformed");
        byte[] lead = (id + "." + timestamp + ".").getBytes(UTF_8);
        boolean isRight = agreed.webhookSecrets.stream()
            .map(secret -> ("v1," + Base64.getEncoder().encodeToString(hmac(secret, lead, body))).getBytes(UTF_8))
            .anyMatch(expected -> Stream.of(signatures.split(" "))
                .anyMatch(entry -> MessageDigest.isEqual(expected, entry.getBytes(UTF_8))));
        require(isRight, "webhook-signature does not match the body");
        long age = now.getEpochSecond() - Long.parseLong(timestamp);
        require(Math.abs(age) <= FRESHNESS_SECONDS, "webhook-timestamp is too far from this clock");
    }

    static byte[] hmac(byte[] key, byte[]... parts) {
        try {
            var mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            for (byte[] part : parts) mac.update(part);
            return mac.doFinal();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** keyId: where the message names it, else null. authenticated: what GCM's tag covers beside the content. */
    record Sealed(String keyId, byte[] iv, byte[] content, byte[] authenticated) {}

    static Sealed takeApart(Agreement agreed, String data) {
        if (!agreed.cipher.equals("jwe")) {
            byte[] raw = decode(data, agreed.encoding);
            int ivBytes = agreed.cipher.equals("aes-256-cbc") ? 16 : 12;
            require(raw.length > ivBytes, "data is too short");
            return new Sealed(null, Arrays.copyOf(raw, ivBytes), Arrays.copyOfRange(raw, ivBytes, raw.length),
                new byte[0]);
        }
        String[] parts = data.split("\\.", -1);
        require(parts.length == 5 && parts[1].isEmpty(), "the JWE does not have the five parts of dir");
        byte[] iv = decode(parts[2], "base64url"), content = decode(parts[3], "base64url");
        byte[] tag = decode(parts[4], "base64url");
        var header = parse(decode(parts[0], "base64url"));
        boolean isUsual = "dir".equals(header.get("alg")) && "A256GCM".equals(header.get("enc"))
            && header.get("kid") instanceof String && iv.length == 12 && tag.length == 16;
        require(isUsual && !header.containsKey("zip") && !header.containsKey("crit"), "the JWE is not as agreed");
        var both = ByteBuffer.allocate(content.length + tag.length).put(content).put(tag).array();
        return new Sealed((String) header.get("kid"), iv, both, parts[0].getBytes(UTF_8));
    }

    static byte[] decrypt(String name, byte[] key, Sealed sealed) {
        boolean isCbc = name.equals("aes-256-cbc");
        try {
            var cipher = Cipher.getInstance(isCbc ? "AES/CBC/PKCS5Padding" : "AES/GCM/NoPadding");
            var iv = isCbc ? new IvParameterSpec(sealed.iv) : new GCMParameterSpec(128, sealed.iv);
            cipher.init(Cipher.DECRYPT_MODE, new SecretKeySpec(key, "AES"), iv);
            if (!isCbc) cipher.updateAAD(sealed.authenticated);
            return cipher.doFinal(sealed.content);
        } catch (GeneralSecurityException error) {
            throw new Refused("decryption failed");
        }
    }

    static Map<String, Object> checkContent(Agreement agreed, byte[] plain) {
        var wire = parse(plain);
        boolean settles = wire.containsKey("saleQuantity")
            || "SETTLE".equals(wire.get("transaction_type")) && wire.containsKey("settlementList");
        var ipn = byTableNames(wire, settles ? SETTLEMENT : CARD);
        String text;
        if (agreed.signing.get("mode").equals("whole")) {
            wire.remove("signature");
            text = canonical(wire);
        } else {
            var usual = settles ? SETTLEMENT_SIGNED : CARD_SIGNED;
            var names = (List<?>) agreed.signing.getOrDefault(settles ? "settlement" : "card", usual);
            text = names.stream().map(name -> name + "=" + ipn.get(name)).collect(Collectors.joining("&"));
        }
        byte[] signed = text.getBytes(UTF_8), signature = decode((String) ipn.get("signature"), "hex");
        require(agreed.signingKeys.stream().anyMatch(key -> MessageDigest.isEqual(hmac(key, signed), signature)),
            "signature does not match the signed string");
        ipn.computeIfPresent("cardScheme", (name, scheme) -> ((String) scheme).toUpperCase(Locale.ROOT));
        return ipn;
    }

    static Map<String, Object> byTableNames(Map<String, Object> wire, List<String> table) {
        var ipn = new LinkedHashMap<String, Object>();
        for (String field : table) {
            String[] names = field.split("/");
            var found = Stream.of(names).filter(wire::containsKey).map(wire::get).toList();
            require(found.size() <= 1, names[0] + " appears under two names");
            boolean isList = names[0].equals("settlementList");
            Object value = !found.isEmpty() ? found.get(0) : isList ? List.of() : "";
            require(isList ? value instanceof List : value instanceof String, names[0] + " has another type");
            ipn.put(names[0], !isList ? value : list(value).stream().map(entry -> {
                require(entry instanceof Map, "settlementList is not a list of objects");
                return byTableNames(object(entry), ENTRY);
            }).toList());
        }
        return ipn;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    static List<?> list(Object value) {
        return (List<?>) value;
    }

    /** One JSON object in UTF-8 whose scalars are strings, without duplicate keys or lone surrogates. */
    static Map<String, Object> parse(byte[] raw) {
        try {
            return new Json(UTF_8.newDecoder().decode(ByteBuffer.wrap(raw)).toString()).read();
        } catch (CharacterCodingException | IllegalArgumentException | IndexOutOfBoundsException error) {
            throw new Refused("not valid JSON");
        }
    }

    /** As strict as the contract. With Jackson: STRICT_DUPLICATE_DETECTION, and refuse values that are not strings. */
    static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Map<String, Object> read() {
            check(peek() == '{', "not an object");
            var read = object(value(0));
            peek();
            check(at == text.length(), "something follows");
            return read;
        }

        private Object value(int depth) {
            char open = peek();
            if (open == '"') return string();
            check(depth < 64 && (open == '{' || open == '['), "no text, list or object, or too deep");
            at++;
            var fields = new LinkedHashMap<String, Object>();
            var items = new ArrayList<Object>();
            while (peek() != (open == '{' ? '}' : ']')) {
                if (!fields.isEmpty() || !items.isEmpty()) take(',');
                if (open == '[') {
                    items.add(value(depth + 1));
                    continue;
                }
                String name = string();
                take(':');
                check(fields.put(name, value(depth + 1)) == null, "a key appears twice");
            }
            at++;
            return open == '{' ? fields : items;
        }

        private String string() {
            var string = new StringBuilder();
            take('"');
            for (char next = text.charAt(at++); next != '"'; next = text.charAt(at++)) {
                check(next >= ' ', "a control character");
                string.append(next == '\\' ? escape() : next);
            }
            check(UTF_8.newEncoder().canEncode(string), "a lone surrogate");
            return string.toString();
        }

        private char escape() {
            char letter = text.charAt(at++);
            int known = "\"\\/bfnrt".indexOf(letter);
            if (known >= 0) return "\"\\/\b\f\n\r\t".charAt(known);
            check(letter == 'u', "an unknown escape");
            at += 4;
            return (char) HexFormat.fromHexDigits(text, at - 4, at);
        }

        /** The next character that is not white space; NUL at the end. */
        private char peek() {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
            return at < text.length() ? text.charAt(at) : '\0';
        }

        private void take(char expected) {
            check(peek() == expected, "expected " + expected);
            at++;
        }

        private static void check(boolean isSo, String otherwise) {
            if (!isSo) throw new IllegalArgumentException(otherwise);
        }
    }

    /** RFC 8785, for strings, lists and objects: keys in the order of UTF-16, which is String's own; no white space. */
    static String canonical(Object value) {
        if (value instanceof Map) {
            return new TreeMap<>(object(value)).entrySet().stream()
                .map(one -> canonical(one.getKey()) + ":" + canonical(one.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof List) {
            return list(value).stream().map(Receiver::canonical).collect(Collectors.joining(",", "[", "]"));
        }
        var text = new StringBuilder("\"");
        for (char next : ((String) value).toCharArray()) {
            int known = "\"\\\b\f\n\r\t".indexOf(next);
            if (known >= 0) text.append('\\').append("\"\\bfnrt".charAt(known));
            else if (next < ' ') text.append(String.format("\\u%04x", (int) next));
            else text.append(next);
        }
        return text.append('"').toString();
    }

    /** The bytes, if the text is exactly what an encoder writes: decoders accept padding and stray bits. */
    static byte[] decode(String text, String encoding) {
        try {
            if (encoding.equals("hex")) return HexFormat.of().parseHex(text);
            boolean isUrl = encoding.equals("base64url");
            byte[] raw = (isUrl ? Base64.getUrlDecoder() : Base64.getDecoder()).decode(text);
            var encoder = isUrl ? Base64.getUrlEncoder().withoutPadding() : Base64.getEncoder();
            require(encoder.encodeToString(raw).equals(text), "not as " + encoding + " is written");
            return raw;
        } catch (IllegalArgumentException error) {
            throw new Refused("not " + encoding);
        }
    }

    /** Returns whether it was new. A table with a unique key on the id, written with your own work, is better. */
    static boolean storeOnce(Path inbox, Map<String, Object> ipn) throws IOException {
        String id = (String) ipn.get("id");
        if (!id.matches("[0-9A-Za-z-]{1,64}")) throw new IOException("the id is no file name");
        var temporary = Files.createTempFile(inbox, ".new-", "");
        try (var file = FileChannel.open(temporary, StandardOpenOption.WRITE)) {
            for (var bytes = UTF_8.encode(canonical(ipn)); bytes.hasRemaining(); ) file.write(bytes);
            file.force(true);
            Files.createLink(inbox.resolve(id + ".json"), temporary); // Of two at once, one fails.
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } finally {
            Files.delete(temporary);
        }
    }

    static int receive(Agreement agreed, Path inbox, HttpExchange exchange) throws IOException {
        if (!exchange.getRequestMethod().equals("POST")) return 405;
        byte[] body = exchange.getRequestBody().readNBytes(BODY_BYTES_MAX + 1);
        if (body.length > BODY_BYTES_MAX) return 413;
        try {
            var ipn = verify(agreed, body, exchange.getRequestHeaders()::getFirst, Instant.now());
            boolean isNew = storeOnce(inbox, ipn);
            System.err.println(ipn.get("transaction_type") + " " + ipn.get("id") + ", new: " + isNew);
            return 204;
        } catch (Refused why) {
            System.err.println("refused: " + why.getMessage());
            return 400;
        } catch (IOException | RuntimeException error) { // Answered 500, so that the IPN comes again.
            System.err.println("not stored: " + error);
            return 500;
        }
    }

    static void serve(Agreement agreed, int port) throws IOException {
        System.setProperty("sun.net.httpserver.maxReqTime", "30");
        var inbox = Files.createDirectories(Path.of("inbox"));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/ipn", exchange -> {
            try (exchange) {
                exchange.getResponseHeaders().set("Allow", "POST");
                exchange.sendResponseHeaders(receive(agreed, inbox, exchange), -1);
            }
        });
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        System.out.println("listening on http://127.0.0.1:" + server.getAddress().getPort() + "/ipn");
    }

    public static void main(String[] args) throws IOException {
        var agreed = Agreement.read(new Json(Files.readString(Path.of(args[0]))).read());
        serve(agreed, Integer.parseInt(System.getenv().getOrDefault("PORT", "8080")));
    }
}
