import org.jpos.iso.IFA_AMOUNT;
import org.jpos.iso.IFA_BITMAP;
import org.jpos.iso.IFA_LLCHAR;
import org.jpos.iso.IFA_LLLCHAR;
import org.jpos.iso.IFA_LLNUM;
import org.jpos.iso.IFA_NUMERIC;
import org.jpos.iso.IFE_AMOUNT;
import org.jpos.iso.IFE_BITMAP;
import org.jpos.iso.IFE_CHAR;
import org.jpos.iso.IFE_LLCHAR;
import org.jpos.iso.IFE_LLLCHAR;
import org.jpos.iso.IFE_LLNUM;
import org.jpos.iso.IFE_NUMERIC;
import org.jpos.iso.IF_CHAR;
import org.jpos.iso.ISOFieldPackager;
import org.jpos.iso.packager.ISO87APackager;

/** ISO 8583:1987 with every character, digit, length and bitmap in EBCDIC. Fields of bytes are not used with it. */
final class EbcdicPackager extends ISO87APackager {
    EbcdicPackager() {
        for (int number = 0; number <= 128; number++) {
            setFieldPackager(number, inEbcdic(getFieldPackager(number)));
        }
    }

    private static ISOFieldPackager inEbcdic(ISOFieldPackager field) {
        int length = field.getLength();
        String name = field.getDescription();
        if (field instanceof IFA_BITMAP) return new IFE_BITMAP(length, name);
        if (field instanceof IFA_NUMERIC) return new IFE_NUMERIC(length, name);
        if (field instanceof IFA_LLNUM) return new IFE_LLNUM(length, name);
        if (field instanceof IFA_LLCHAR) return new IFE_LLCHAR(length, name);
        if (field instanceof IFA_LLLCHAR) return new IFE_LLLCHAR(length, name);
        if (field instanceof IFA_AMOUNT) return new IFE_AMOUNT(length, name);
        if (field instanceof IF_CHAR) return new IFE_CHAR(length, name);
        return field;
    }
}
