package example.paybell;

import example.paybell.Contract.Mistake;

/**
 * An IPN that is not authentic or not fresh (a refusal), or another mistake, with the codes of Paybell's own partner
 * library. Nothing in it contains a key or decrypted content.
 */
public final class PaybellException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private static final Mistake NONE = new Mistake("", "");

    private final String code;
    private final String finding;
    private final String remedy;
    private final boolean isRefusal;

    PaybellException(String code, String finding) {
        this(code, finding, "", false);
    }

    /** What the table does not have is taken from the arguments. */
    PaybellException(String code, String finding, String remedy, boolean isRefusal) {
        this(code, new Mistake(finding, remedy), Contract.IT.errors().getOrDefault(code, NONE), isRefusal);
    }

    private PaybellException(String code, Mistake own, Mistake usual, boolean isRefusal) {
        super(null, null, false, !isRefusal);
        this.code = code;
        finding = own.finding().isEmpty() ? usual.finding() : own.finding();
        remedy = usual.remedy().isEmpty() ? own.remedy() : usual.remedy();
        this.isRefusal = isRefusal;
    }

    /** A mistake in the key of this kind. */
    static PaybellException mistake(String kind, String code) {
        return new PaybellException(
                code, kind + " " + Contract.IT.errors().get(code).finding());
    }

    static PaybellException refused(String code) {
        return refused(code, "");
    }

    static PaybellException refused(String code, String finding) {
        return new PaybellException(code, finding, "", true);
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
