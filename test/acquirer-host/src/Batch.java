import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/** A terminal's batch as the bank counts it, each currency by itself. */
final class Batch {
    record Totals(long sales, long saleTotal, long voids, long voidTotal, long refunds, long refundTotal) {
        static final Totals NONE = new Totals(0, 0, 0, 0, 0, 0);

        Totals plus(String side, long times, long amount) {
            long total = times * amount;
            return switch (side) {
                case "sale" -> new Totals(sales + times, saleTotal + total, voids, voidTotal, refunds, refundTotal);
                case "void" -> new Totals(sales, saleTotal, voids + times, voidTotal + total, refunds, refundTotal);
                default -> new Totals(sales, saleTotal, voids, voidTotal, refunds + times, refundTotal + total);
            };
        }

        boolean isNothing() {
            return sales == 0 && refunds == 0;
        }
    }

    final String number;
    boolean closed;
    /** The uploaded entries that settled it, if the terminal had to upload: each key, and whether it was voided. */
    Map<String, Boolean> uploaded;
    private final Map<String, Totals> byCurrency = new HashMap<>();

    Batch(String number) {
        this.number = number;
    }

    void count(String side, String currency, long amount, int times) {
        byCurrency.merge(currency, Totals.NONE.plus(side, times, amount), (one, other) -> one.plus(side, times, amount));
    }

    Totals totals(String currency) {
        return byCurrency.getOrDefault(currency, Totals.NONE);
    }

    boolean isEmpty() {
        return byCurrency.values().stream().allMatch(Totals::isNothing);
    }

    /** Whether a claim is the bank's own count, and nothing in another currency is left. */
    boolean agrees(String currency, Totals claimed) {
        boolean holdsOther = byCurrency.entrySet().stream()
            .anyMatch(entry -> !entry.getKey().equals(currency) && !entry.getValue().isNothing());
        return !holdsOther && Objects.equals(totals(currency), claimed);
    }
}
