package example.paybell;

import static example.paybell.PaybellException.throwIf;
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
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * An encrypted IPN: the key's id where the message names it, else empty; IV, ciphertext and GCM's tag; what the tag
 * covers beside it.
 */
record Seal(boolean isCbc, String keyId, byte[] sealed, byte[] authenticated) {
    static Seal of(Agreement agreed, String data) {
        boolean isCbc = agreed.cipher().equals("aes-256-cbc");
        if (!agreed.cipher().equals("jwe")) {
            byte[] sealed = decode(data, agreed.encoding(), "encoding");
            throwIf(sealed.length < (isCbc ? 32 : 28) || isCbc && sealed.length % 16 != 0, "encoding");
            return new Seal(isCbc, "", sealed, new byte[0]);
        }
        String[] parts = data.split("\\.", -1);
        throwIf(parts.length != 5 || !parts[1].isEmpty(), "encoding");
        byte[] iv = decode(parts[2], "base64url", "encoding"), tag = decode(parts[4], "base64url", "encoding");
        throwIf(iv.length != 12 || tag.length != 16, "encoding");
        byte[] sealed = joined(iv, decode(parts[3], "base64url", "encoding"), tag);
        return new Seal(false, keyId(decode(parts[0], "base64url", "jwe_header")), sealed, parts[0].getBytes(US_ASCII));
    }

    private static String keyId(byte[] header) {
        var fields = Contract.parse(header, "jwe_header");
        boolean isUsual = "dir".equals(fields.get("alg")) && "A256GCM".equals(fields.get("enc"));
        boolean isMore = fields.containsKey("zip") || fields.containsKey("crit");
        if (isUsual && !isMore && fields.get("kid") instanceof String keyId) return keyId;
        throw new PaybellException("jwe_header");
    }

    boolean isJwe() {
        return authenticated.length > 0;
    }

    byte[] decrypt(byte[] key) {
        int ivBytes = isCbc ? 16 : 12;
        byte[] iv = copyOfRange(sealed, 0, ivBytes), content = copyOfRange(sealed, ivBytes, sealed.length);
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
        var fields = Map.<String, Object>of("alg", "dir", "enc", "A256GCM", "kid", version.id());
        String header = encode(Contract.canonical(fields), "base64url");
        byte[] content = aes(ENCRYPT_MODE, false, version.key(), iv, header.getBytes(US_ASCII), plain);
        int tagAt = content.length - 16;
        String text = encode(copyOfRange(content, 0, tagAt), "base64url");
        String tag = encode(copyOfRange(content, tagAt, content.length), "base64url");
        return String.join(".", header, "", encode(iv, "base64url"), text, tag);
    }

    private static byte[] aes(int mode, boolean isCbc, byte[] key, byte[] iv, byte[] authenticated, byte[] input) {
        try {
            var aes = Cipher.getInstance(isCbc ? "AES/CBC/PKCS5Padding" : "AES/GCM/NoPadding");
            var start = isCbc ? new IvParameterSpec(iv) : new GCMParameterSpec(128, iv);
            aes.init(mode, new SecretKeySpec(key, "AES"), start);
            if (!isCbc) aes.updateAAD(authenticated);
            return aes.doFinal(input);
        } catch (GeneralSecurityException error) {
            throw new PaybellException("decryption");
        }
    }

    static byte[] hmac(Version version, byte[]... parts) {
        try {
            var mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(version.key(), "HmacSHA256"));
            return mac.doFinal(joined(parts));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Standard Webhooks v1. */
    static String signature(Version secret, String id, String timestamp, byte[] body) {
        return "v1," + encode(hmac(secret, (id + "." + timestamp + ".").getBytes(UTF_8), body), "base64");
    }

    /** Compares in constant time. */
    static boolean equal(String one, String other) {
        return MessageDigest.isEqual(one.getBytes(UTF_8), other.getBytes(UTF_8));
    }

    private static byte[] joined(byte[]... parts) {
        int length = 0;
        for (byte[] part : parts) length += part.length;
        var joined = ByteBuffer.allocate(length);
        for (byte[] part : parts) joined.put(part);
        return joined.array();
    }

    /** Refuses what is not exactly what an encoder writes: decoders accept stray bits. */
    static byte[] decode(String text, String encoding, String code, String... seen) {
        try {
            if (encoding.equals("hex")) return HexFormat.of().parseHex(text);
            byte[] raw = (encoding.equals("base64") ? Base64.getDecoder() : Base64.getUrlDecoder()).decode(text);
            if (encode(raw, encoding).equals(text)) return raw;
        } catch (IllegalArgumentException error) {
            // As well.
        }
        throw new PaybellException(code, seen);
    }

    static String encode(byte[] raw, String encoding) {
        if (encoding.equals("hex")) return HexFormat.of().formatHex(raw);
        boolean isUrl = encoding.equals("base64url");
        return (isUrl ? Base64.getUrlEncoder().withoutPadding() : Base64.getEncoder()).encodeToString(raw);
    }
}
