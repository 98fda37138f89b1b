import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.jpos.iso.ISOException;
import org.jpos.iso.ISOMsg;
import org.jpos.iso.ISOPackager;

/** ANSI X9.19, by the JDK's DES: what Paybell computes otherwise must come to the same. */
final class RetailMac {
    private static final int BLOCK = 8;
    private final SecretKeySpec first;
    private final SecretKeySpec second;

    RetailMac(byte[] key) {
        first = new SecretKeySpec(Arrays.copyOfRange(key, 0, BLOCK), "DES");
        second = new SecretKeySpec(Arrays.copyOfRange(key, BLOCK, 2 * BLOCK), "DES");
    }

    boolean fits(ISOMsg message) throws ISOException {
        byte[] packed = message.pack();
        int field = message.getMaxField() == 128 ? 128 : 64;
        if (!message.hasField(field)) return false;
        byte[] covered = Arrays.copyOf(packed, packed.length - macBytes(packed, message.getBytes(field)));
        return Arrays.equals(of(covered), message.getBytes(field));
    }

    void put(ISOMsg message, ISOPackager packager) throws ISOException {
        int field = message.getMaxField() > 64 ? 128 : 64;
        byte[] none = new byte[BLOCK];
        message.set(field, none);
        message.setPackager(packager);
        byte[] packed = message.pack();
        message.set(field, of(Arrays.copyOf(packed, packed.length - macBytes(packed, none))));
    }

    /** Eight, or sixteen where bytes are written as hexadecimal characters. */
    private static int macBytes(byte[] packed, byte[] mac) {
        byte[] tail = Arrays.copyOfRange(packed, packed.length - BLOCK, packed.length);
        return Arrays.equals(tail, mac) ? BLOCK : 2 * BLOCK;
    }

    private byte[] of(byte[] message) {
        byte[] padded = Arrays.copyOf(message, (message.length + BLOCK - 1) / BLOCK * BLOCK);
        try {
            Cipher chain = Cipher.getInstance("DES/CBC/NoPadding");
            chain.init(Cipher.ENCRYPT_MODE, first, new IvParameterSpec(new byte[BLOCK]));
            byte[] chained = chain.doFinal(padded);
            byte[] last = Arrays.copyOfRange(chained, chained.length - BLOCK, chained.length);
            return ecb(Cipher.ENCRYPT_MODE, first, ecb(Cipher.DECRYPT_MODE, second, last));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static byte[] ecb(int mode, SecretKeySpec key, byte[] block) throws GeneralSecurityException {
        Cipher cipher = Cipher.getInstance("DES/ECB/NoPadding");
        cipher.init(mode, key);
        return cipher.doFinal(block);
    }
}
