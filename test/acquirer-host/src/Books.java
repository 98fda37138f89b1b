import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.jpos.iso.ISOException;
import org.jpos.iso.ISOMsg;

/** The bank's answers and its books. Every message is known by its data elements alone. */
final class Books {
    /** @param behaviour how the card has this message's answer treated */
    record Outcome(String code, String approveCode, String reference, String behaviour) {
        static Outcome of(String code) {
            return new Outcome(code, "", "", "approve");
        }
    }

    private final Map<String, Booking> bookings = new HashMap<>();
    private final Set<String> revoked = new HashSet<>();
    private final Map<String, Terminal> terminals = new HashMap<>();
    private final Random random = new Random();
    /** The treatment of messages to come, by their terminal and trace number. */
    private final Map<String, String> ruled = new HashMap<>();
    /** Sales that the bank believes to have beside those it took: a mismatch at will. */
    private long saleQuantityBias;

    synchronized void forget() {
        bookings.clear();
        revoked.clear();
        terminals.clear();
        ruled.clear();
        saleQuantityBias = 0;
    }

    synchronized void bias(long quantity) {
        saleQuantityBias = quantity;
    }

    synchronized void rule(String terminal, String traceNo, String behaviour) {
        ruled.put(terminal + '|' + traceNo, behaviour);
    }

    synchronized Outcome receive(ISOMsg message) throws ISOException {
        String type = message.getMTI().substring(0, 3);
        return switch (type) {
            case "080" -> Outcome.of("00");
            case "010", "020", "022" -> move(message, type);
            case "040", "042" -> reverse(message);
            case "050" -> settle(message);
            case "032" -> upload(message);
            default -> Outcome.of("40");
        };
    }

    /** The bank's totals: as claimed, if that was settled, and its own otherwise. */
    synchronized String totals(ISOMsg settlement, String code) throws ISOException {
        if (code.equals("00")) return settlement.getString(63);
        Batch open = terminal(settlement).open;
        Batch.Totals own = open == null ? Batch.Totals.NONE : open.totals(settlement.getString(49));
        return String.format("%05d%014d%05d%014d%05d%014d", own.sales() - saleQuantityBias, own.saleTotal(),
            own.voids(), own.voidTotal(), own.refunds(), own.refundTotal());
    }

    /** The entries of the books, a line for each, for people and for tests. */
    synchronized String describe() {
        StringBuilder lines = new StringBuilder();
        bookings.values().forEach(one -> lines.append(one.key).append(' ').append(one.kind).append(' ').append(one.amount)
            .append(' ').append(one.code).append(' ').append(one.standing()).append(';'));
        return lines.toString();
    }

    /** By what each terminal was settled last. */
    synchronized String describeBatches() {
        StringBuilder lines = new StringBuilder();
        terminals.forEach((key, terminal) -> {
            Batch last = terminal.lastSettled;
            if (last == null) return;
            Batch.Totals totals = last.totals(terminal.lastCurrency);
            lines.append(String.join(" ", key, last.number, terminal.lastCurrency, totals.sales() + "",
                totals.saleTotal() + "", totals.voids() + "", totals.voidTotal() + "", totals.refunds() + "",
                totals.refundTotal() + "")).append(';');
        });
        return lines.toString();
    }

    private Outcome move(ISOMsg message, String type) throws ISOException {
        String key = key(type, message.getString(11), message.getString(7), message);
        if (revoked.contains(key)) return Outcome.of("12");
        String rule = ruleFor(message);
        Booking seen = bookings.get(key);
        if (seen == null) {
            seen = judge(message, key, kind(message, type), rule);
            bookings.put(key, seen);
            if (seen.approved()) enter(seen);
        } else if (seen.reversed || seen.dropped()) {
            return Outcome.of("12");
        }
        return new Outcome(seen.code, seen.approveCode, seen.reference, rule == null ? behaviourOf(message, seen) : rule);
    }

    private String ruleFor(ISOMsg message) {
        return ruled.remove(message.getString(41) + '|' + message.getString(11));
    }

    private Booking judge(ISOMsg message, String key, Booking.Kind kind, String rule) throws ISOException {
        long amount = Long.parseLong(message.getString(4));
        String currency = message.getString(49);
        Booking original = null;
        String refusal = null;
        String token = message.hasField(48) ? message.getString(48) : "";
        boolean follows = kind != Booking.Kind.SALE && kind != Booking.Kind.PREAUTH;
        if (follows) {
            original = original(message);
            refusal = refusal(message, kind, original, amount);
        }
        String behaviour = rule != null ? rule : original == null ? cardBehaviour(token) : original.followUps;
        if (refusal == null && behaviour.startsWith("decline_")) refusal = behaviour.substring(8);
        boolean enters = kind != Booking.Kind.PREAUTH && kind != Booking.Kind.VOID;
        Batch batch = original == null || enters ? null : original.batch;
        if (refusal == null && enters) {
            batch = terminal(message).batchFor(message.getString(60));
            if (batch == null) refusal = "12";
        }
        String followUps = token.startsWith("tok_then_") ? token.substring(9) : "approve";
        if (refusal != null) {
            return new Booking(key, kind, message.getString(11), amount, currency, refusal, "", "", null, null, followUps);
        }
        String code = behaviour.startsWith("approve_") ? behaviour.substring(8) : "00";
        String approveCode = kind == Booking.Kind.VOID ? "" : String.format("%06X", random.nextInt(0xffffff));
        String reference = String.format("%012d", Math.floorMod(random.nextLong(), 1_000_000_000_000L));
        return new Booking(key, kind, message.getString(11), amount, currency, code, approveCode, reference, batch,
            original, followUps);
    }

    private void enter(Booking booking) {
        if (booking.kind == Booking.Kind.REFUND) booking.original.refunded += booking.amount;
        else if (booking.original != null) booking.original.followedBy = booking;
        if (booking.batch != null) booking.batch.count(booking.side(), booking.currency, booking.amount, 1);
    }

    private static String refusal(ISOMsg message, Booking.Kind kind, Booking original, long amount) {
        if (original == null) return "25";
        boolean named = original.approveCode.equals(message.hasField(38) ? message.getString(38).trim() : "")
            && original.reference.equals(message.hasField(37) ? message.getString(37).trim() : "");
        if (!named) return "25";
        if (kind == Booking.Kind.REFUND) {
            if (!original.settled() || !original.currency.equals(message.getString(49))) return "12";
            return original.refunded + amount > original.amount ? "13" : null;
        }
        boolean fits = kind == Booking.Kind.VOID
            ? original.kind != Booking.Kind.VOID && original.kind != Booking.Kind.REFUND
            : original.kind == Booking.Kind.PREAUTH;
        if (!fits || !original.stands() || !original.currency.equals(message.getString(49))) return "12";
        if (kind == Booking.Kind.VOID) return original.amount == amount ? null : "64";
        return amount > original.amount ? "13" : null;
    }

    private Outcome reverse(ISOMsg message) throws ISOException {
        String elements = message.getString(90);
        String key = key(elements.substring(0, 3), elements.substring(4, 10), elements.substring(10, 20), message);
        Booking booking = bookings.get(key);
        if (booking == null || booking.dropped() || !booking.traceNo.equals(message.getString(11))) {
            revoked.add(key);
            return Outcome.of("25");
        }
        if (!booking.approved() || booking.reversed) return Outcome.of("00");
        boolean completed = booking.followedBy != null && booking.followedBy.kind == Booking.Kind.COMPLETE;
        if (completed || (booking.batch != null && booking.batch.closed)) return Outcome.of("12");
        undo(booking);
        return Outcome.of("00");
    }

    private void undo(Booking booking) {
        booking.reversed = true;
        if (booking.batch != null) booking.batch.count(booking.side(), booking.currency, booking.amount, -1);
        if (booking.kind == Booking.Kind.REFUND) booking.original.refunded -= booking.amount;
        else if (booking.original != null) booking.original.followedBy = null;
        if (booking.followedBy != null && !booking.followedBy.reversed) {
            booking.followedBy.reversed = true;
            if (booking.batch != null) booking.batch.count("void", booking.currency, booking.followedBy.amount, -1);
        }
    }

    private Outcome settle(ISOMsg message) throws ISOException {
        Terminal terminal = terminal(message);
        String code3 = message.getString(3);
        String key = key("050", message.getString(11), message.getString(7), message) + '|' + code3;
        String[] earlier = terminal.answers.get(key);
        String rule = ruleFor(message);
        if (earlier == null && rule != null && rule.startsWith("decline_")) {
            earlier = new String[] {rule.substring(8), ""};
            terminal.answers.put(key, earlier);
        } else if (earlier == null) {
            String totals = message.getString(63);
            Batch.Totals claimed = new Batch.Totals(
                Long.parseLong(totals.substring(0, 5)) + saleQuantityBias, Long.parseLong(totals.substring(5, 19)),
                Long.parseLong(totals.substring(19, 24)), Long.parseLong(totals.substring(24, 38)),
                Long.parseLong(totals.substring(38, 43)), Long.parseLong(totals.substring(43, 57)));
            boolean byUpload = code3.startsWith("96");
            Batch settled = terminal.settle(message.getString(60), message.getString(49), claimed, byUpload);
            earlier = settled == null
                ? new String[] {"95", ""}
                : new String[] {"00", String.format("%012d", random.nextInt(1_000_000_000))};
            terminal.answers.put(key, earlier);
        }
        return new Outcome(earlier[0], "", earlier[1], rule == null ? "approve" : rule);
    }

    private Outcome upload(ISOMsg message) throws ISOException {
        String elements = message.getString(90);
        String key = key(elements.substring(0, 3), elements.substring(4, 10), elements.substring(10, 20), message);
        terminal(message).uploads.put(key, new Terminal.Upload(message.getString(60), message.getString(49),
            Long.parseLong(message.getString(4)), message.getString(3).startsWith("02"),
            message.getString(3).startsWith("20")));
        return Outcome.of("00");
    }

    private Booking original(ISOMsg message) {
        String elements = message.getString(90);
        // A message from another terminal of the merchant names the original's terminal.
        String terminal = message.getString(message.hasField(61) ? 61 : 41);
        Booking found = bookings.get(key(elements.substring(0, 3), elements.substring(4, 10), elements.substring(10, 20),
            terminal, message.getString(42)));
        return found == null || found.dropped() ? null : found;
    }

    private Terminal terminal(ISOMsg message) {
        return terminals.computeIfAbsent(message.getString(42) + '|' + message.getString(41), key -> new Terminal());
    }

    private static String behaviourOf(ISOMsg message, Booking booking) {
        return booking.original != null ? booking.original.followUps
            : cardBehaviour(message.hasField(48) ? message.getString(48) : "");
    }

    private static String cardBehaviour(String token) {
        if (token.startsWith("tok_then_") || !token.startsWith("tok_")) return "approve";
        return token.substring(4);
    }

    private static Booking.Kind kind(ISOMsg message, String type) {
        if (type.equals("010")) return Booking.Kind.PREAUTH;
        if (type.equals("022")) return Booking.Kind.COMPLETE;
        if (message.getString(3).startsWith("20")) return Booking.Kind.REFUND;
        return message.getString(3).startsWith("02") ? Booking.Kind.VOID : Booking.Kind.SALE;
    }

    private static String key(String type, String traceNo, String time, ISOMsg message) {
        return key(type, traceNo, time, message.getString(41), message.getString(42));
    }

    private static String key(String type, String traceNo, String time, String terminal, String merchant) {
        return String.join("|", type, traceNo, time, terminal, merchant);
    }
}
