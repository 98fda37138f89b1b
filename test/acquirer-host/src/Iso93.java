import java.util.Map;
import org.jpos.iso.ISOException;
import org.jpos.iso.ISOMsg;

/** ISO 8583:1993: the books read its messages as those of 1987, and its answers have action codes. */
final class Iso93 {
    /** Sales, Voids and Refunds of a reconciliation: debits, debits reversed, credits; each a number and an amount. */
    private static final int[] TOTALS = {76, 88, 77, 89, 74, 86};
    private static final int[] TOTAL_DIGITS = {5, 14, 5, 14, 5, 14};
    private static final Map<String, String> ACTION_CODES = Map.of("08", "001", "12", "902", "13", "110", "25", "914",
        "40", "115", "51", "116", "64", "902", "91", "907", "95", "501");

    private Iso93() {}

    static ISOMsg asBooksRead(ISOMsg message) throws ISOException {
        ISOMsg read = (ISOMsg) message.clone();
        String mti = message.getMTI();
        read.setMTI('0' + mti.substring(1));
        if (message.hasField(12)) read.set(7, message.getString(12).substring(2));
        if (message.hasField(56)) {
            String original = message.getString(56);
            read.set(90, '0' + original.substring(1, 10) + original.substring(12, 22));
        }
        if (mti.startsWith("180")) {
            read.set(70, switch (message.getString(24)) {
                case "801" -> "001";
                case "802" -> "002";
                case "831" -> "301";
                default -> throw new ISOException("there is no function code " + message.getString(24));
            });
        }
        if (mti.startsWith("181")) read.set(39, message.getString(39).equals("800") ? "00" : "96");
        if (mti.startsWith("150")) {
            StringBuilder totals = new StringBuilder();
            for (int at = 0; at < TOTALS.length; at++) {
                totals.append(String.format("%0" + TOTAL_DIGITS[at] + "d", Long.parseLong(message.getString(TOTALS[at]))));
            }
            read.set(63, totals.toString());
        }
        return read;
    }

    /** @param totals as the books write them; null: none */
    static void answer(ISOMsg answer, String code, String totals) throws ISOException {
        answer.unset(56);
        char kind = answer.getMTI().charAt(1);
        String approved = kind < '3' ? "000" : kind + "00";
        answer.set(39, code.equals("00") ? approved : ACTION_CODES.getOrDefault(code, "100"));
        if (totals == null) return;
        answer.set(15, "260201");
        int from = 0;
        for (int at = 0; at < TOTALS.length; at++) {
            answer.set(TOTALS[at], totals.substring(from, from + TOTAL_DIGITS[at]));
            from += TOTAL_DIGITS[at];
        }
    }
}
