package example.paybell;

import example.paybell.Contract.Mistake;

/**
 * An IPN that is not authentic or not fresh (a refusal), or another mistake, with the codes of Paybell's own partner
 * library. Nothing in it contains a key or decrypted content.
 */
public final class PaybellException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String code;
    private final String finding;
    private final String remedy;
    private final boolean isRefusal;

    /** With the finding and the remedy of the table; what was seen goes before the finding. */
    PaybellException(String code, String... seen) {
        this(Contract.IT.errors().getOrDefault(code, new Mistake("", "", false)), code, seen);
    }

    PaybellException(Mistake known, String code, String... seen) {
        super(null, null, false, !known.refused());
        this.code = code;
        finding = (String.join(" ", seen) + " " + known.finding()).strip();
        remedy = known.remedy();
        isRefusal = known.refused();
    }

    static void throwIf(boolean isSo, String code, String... seen) {
        if (isSo) throw new PaybellException(code, seen);
    }

    /** A refusal's is always the same: an answer that tells the causes apart helps a forger. */
    @Override
    public String getMessage() {
        return isRefusal ? "The IPN is not authentic." : code + ": " + finding + " " + remedy;
    }

    /** Branch on this. */
    public String code() {
        return code;
    }

    /** What was found: for your own log. */
    public String finding() {
        return finding;
    }

    /** What to do: for your own log. */
    public String remedy() {
        return remedy;
    }

    /** Whether an IPN was refused. Answer each refusal in the same way, with 400. */
    public boolean isRefusal() {
        return isRefusal;
    }
}
