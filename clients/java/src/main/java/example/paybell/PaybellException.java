package example.paybell;

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

    PaybellException(String code, String finding, String remedy) {
        this(code, finding, remedy, false);
    }

    private PaybellException(String code, String finding, String remedy, boolean isRefusal) {
        // A refusal's text is always the same: an answer that tells the causes apart helps a forger.
        super(isRefusal ? "The IPN is not authentic." : code + ": " + finding + " " + remedy, null, false, !isRefusal);
        this.code = code;
        this.finding = finding;
        this.remedy = remedy;
        this.isRefusal = isRefusal;
    }

    static PaybellException mistake(String code, String finding) {
        return new PaybellException(
                code, finding, Contract.IT.errors().get(code).get(1), false);
    }

    static PaybellException refused(String code) {
        return refused(code, Contract.IT.errors().get(code).get(0));
    }

    static PaybellException refused(String code, String finding) {
        return new PaybellException(
                code, finding, Contract.IT.errors().get(code).get(1), true);
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
