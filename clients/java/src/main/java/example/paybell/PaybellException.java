package example.paybell;

import java.util.List;

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

    PaybellException(String code, String finding) {
        this(code, finding, "", false);
    }

    /** What the table does not have is taken from the arguments. */
    PaybellException(String code, String finding, String remedy, boolean isRefusal) {
        this(code, List.of(finding, remedy), Contract.IT.errors().getOrDefault(code, List.of("", "")), isRefusal);
    }

    private PaybellException(String code, List<String> own, List<String> usual, boolean isRefusal) {
        super(null, null, false, !isRefusal);
        this.code = code;
        finding = own.get(0).isEmpty() ? usual.get(0) : own.get(0);
        remedy = usual.get(1).isEmpty() ? own.get(1) : usual.get(1);
        this.isRefusal = isRefusal;
    }

    /** A mistake in the key of this kind. */
    static PaybellException mistake(String kind, String code) {
        return new PaybellException(
                code, kind + " " + Contract.IT.errors().get(code).get(0) + ".");
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
