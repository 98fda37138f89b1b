/** One message that moved money, or was declined. */
final class Booking {
    enum Kind { SALE, PREAUTH, COMPLETE, REFUND, VOID }

    /** Message type, trace number, time, terminal and merchant: what a terminal can say of it later. */
    final String key;
    final Kind kind;
    final String traceNo;
    final long amount;
    final String currency;
    final String code;
    final String approveCode;
    final String reference;
    final Batch batch;
    final Booking original;
    /** The card's treatment of its Voids and PreAuth-Completes. */
    final String followUps;
    boolean reversed;
    Booking followedBy;
    /** The sum of its Refunds. */
    long refunded;

    Booking(String key, Kind kind, String traceNo, long amount, String currency, String code, String approveCode,
            String reference, Batch batch, Booking original, String followUps) {
        this.key = key;
        this.kind = kind;
        this.traceNo = traceNo;
        this.amount = amount;
        this.currency = currency;
        this.code = code;
        this.approveCode = approveCode;
        this.reference = reference;
        this.batch = batch;
        this.original = original;
        this.followUps = followUps;
    }

    boolean approved() {
        return !reference.isEmpty();
    }

    String side() {
        return switch (kind) {
            case VOID -> "void";
            case REFUND -> "refund";
            default -> "sale";
        };
    }

    /** Its batch was settled by an upload that does not tell of it. */
    boolean dropped() {
        if (batch == null || batch.uploaded == null) return false;
        if (kind == Kind.VOID) return original == null || !batch.uploaded.getOrDefault(original.key, false);
        return !batch.uploaded.containsKey(key);
    }

    boolean stands() {
        return approved() && !reversed && followedBy == null && !dropped() && (batch == null || !batch.closed);
    }

    String standing() {
        if (!approved()) return "declined";
        if (reversed) return "reversed";
        if (followedBy != null) return followedBy.kind == Kind.VOID ? "voided" : "completed";
        if (dropped()) return "dropped";
        return batch != null && batch.closed ? "settled" : "stands";
    }

    boolean settled() {
        if (!approved() || batch == null || !batch.closed || !side().equals("sale")) return false;
        if (batch.uploaded != null) return Boolean.FALSE.equals(batch.uploaded.get(key));
        return !reversed && followedBy == null;
    }
}
