package example.paybell;

import static example.paybell.PaybellException.refused;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Arrays.copyOfRange;
import static javax.crypto.Cipher.DECRYPT_MODE;
import static javax.crypto.Cipher.ENCRYPT_MODE;

import example.paybell.Keys.Agreement;
import example.paybell.Keys.Version;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.HexFormat;
import java.util.stream.Stream;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * An encrypted IPN: the key's id where the message names it, else null; the ciphertext with GCM's tag at its end; what
 * the tag covers beside it.
 */
record Seal(boolean isCbc, String keyId, byte[] iv, byte[] content, byte[] authenticated) {
    static Seal of(Agreement agreed, String data) {
        boolean isCbc = agreed.cipher().equals("aes-256-cbc");
        if (!agreed.cipher().equals("jwe")) {
            byte[] raw = decode(data, agreed.encoding());
            int ivBytes = isCbc ? 16 : 12;
            if (raw == null || raw.length < ivBytes + 16 || isCbc && raw.length % 16 != 0) throw refused("encoding");
            byte[] iv = copyOfRange(raw, 0, ivBytes), content = copyOfRange(raw, ivBytes, raw.length);
            return new Seal(isCbc, null, iv, content, new byte[0]);
        }
        String[] parts = data.split("\\.", -1);
        var raw = Stream.of(parts).map(part -> decode(part, "base64url")).toList();
        boolean isShaped =
                parts.length == 5 && parts[1].isEmpty() && !raw.subList(2, 5).contains(null);
        if (!isShaped || raw.get(2).length != 12 || raw.get(4).length != 16) throw refused("encoding");
        byte[] content = joined(raw.get(3), raw.get(4));
        return new Seal(false, keyId(raw.get(0)), raw.get(2), content, parts[0].getBytes(US_ASCII));
    }

    private static String keyId(byte[] header) {
        try {
            var fields = Contract.parse(header == null ? new byte[0] : header);
            boolean isUsual = "dir".equals(fields.get("alg")) && "A256GCM".equals(fields.get("enc"));
            boolean isMore = fields.containsKey("zip") || fields.containsKey("crit");
            if (isUsual && !isMore && fields.get("kid") instanceof String keyId) return keyId;
        } catch (PaybellException error) {
            // It is no header.
        }
        throw refused("jwe_header");
    }

    byte[] decrypt(byte[] key) {
        return aes(DECRYPT_MODE, isCbc, key, iv, authenticated, content);
    }

    /** Encrypts as Paybell does. */
    static String data(Agreement agreed, Version version, byte[] plain) {
        boolean isCbc = agreed.cipher().equals("aes-256-cbc");
        byte[] iv = new byte[isCbc ? 16 : 12];
        new SecureRandom().nextBytes(iv);
        if (!agreed.cipher().equals("jwe")) {
            byte[] content = aes(ENCRYPT_MODE, isCbc, version.key(), iv, new byte[0], plain);
            return encode(joined(iv, content), agreed.encoding());
        }
        String fields = "{\"alg\":\"dir\",\"enc\":\"A256GCM\",\"kid\":\"" + version.id() + "\"}";
        String header = encode(fields.getBytes(UTF_8), "base64url");
        byte[] content = aes(ENCRYPT_MODE, false, version.key(), iv, header.getBytes(US_ASCII), plain);
        int tagAt = content.length - 16;
        return Stream.of(new byte[0], iv, copyOfRange(content, 0, tagAt), copyOfRange(content, tagAt, content.length))
                .map(part -> "." + encode(part, "base64url"))
                .reduce(header, String::concat);
    }

    private static byte[] aes(int mode, boolean isCbc, byte[] key, byte[] iv, byte[] authenticated, byte[] input) {
        try {
            var aes = Cipher.getInstance(isCbc ? "AES/CBC/PKCS5Padding" : "AES/GCM/NoPadding");
            var start = isCbc ? new IvParameterSpec(iv) : new GCMParameterSpec(128, iv);
            aes.init(mode, new SecretKeySpec(key, "AES"), start);
            if (!isCbc) aes.updateAAD(authenticated);
            return aes.doFinal(input);
        } catch (GeneralSecurityException error) {
            throw refused("decryption");
        }
    }

    static byte[] hmac(Version version, byte[]... parts) {
        try {
            var mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(version.key(), "HmacSHA256"));
            for (byte[] part : parts) mac.update(part);
            return mac.doFinal();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Compares in constant time. */
    static boolean equal(String one, String other) {
        return MessageDigest.isEqual(one.getBytes(UTF_8), other.getBytes(UTF_8));
    }

    private static byte[] joined(byte[] one, byte[] other) {
        return ByteBuffer.allocate(one.length + other.length)
                .put(one)
                .put(other)
                .array();
    }

    /** The bytes, or null if the text is not exactly what an encoder writes: decoders accept stray bits. */
    static byte[] decode(String text, String encoding) {
        try {
            if (encoding.equals("hex")) return HexFormat.of().parseHex(text);
            byte[] raw = (encoding.equals("base64") ? Base64.getDecoder() : Base64.getUrlDecoder()).decode(text);
            return encode(raw, encoding).equals(text) ? raw : null;
        } catch (IllegalArgumentException error) {
            return null;
        }
    }

    static String encode(byte[] raw, String encoding) {
        if (encoding.equals("hex")) return HexFormat.of().formatHex(raw);
        boolean isUrl = encoding.equals("base64url");
        return (isUrl ? Base64.getUrlEncoder().withoutPadding() : Base64.getEncoder()).encodeToString(raw);
    }
}
