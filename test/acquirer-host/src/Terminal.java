import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** A terminal as the bank knows it. */
final class Terminal {
    record Upload(String batchNo, String currency, long amount, boolean voided, boolean refund) {}

    Batch open;
    /** By what it was settled last, and its currency. */
    Batch lastSettled;
    String lastCurrency;
    final Set<String> settled = new HashSet<>();
    final Map<String, Upload> uploads = new LinkedHashMap<>();
    /** The same Settlement again gets the first answer again. */
    final Map<String, String[]> answers = new HashMap<>();

    /** Null when that batch was settled, or another one is not yet. */
    Batch batchFor(String number) {
        if (open != null && open.number.equals(number)) return open;
        if (settled.contains(number) || (open != null && !open.isEmpty())) return null;
        open = new Batch(number);
        return open;
    }

    /** The batch as it can be closed, or null when the totals do not agree. */
    Batch settle(String number, String currency, Batch.Totals claimed, boolean byUpload) {
        Batch own = byUpload ? uploadedBatch(number) : open != null && open.number.equals(number) ? open : new Batch(number);
        if (!own.agrees(currency, claimed)) {
            if (!byUpload) uploads.clear();
            return null;
        }
        if (open != null && open.number.equals(number)) {
            open.closed = true;
            open.uploaded = own.uploaded;
            open = null;
        }
        settled.add(number);
        lastSettled = own;
        lastCurrency = currency;
        uploads.clear();
        return own;
    }

    private Batch uploadedBatch(String number) {
        Batch batch = new Batch(number);
        batch.uploaded = new HashMap<>();
        uploads.forEach((key, upload) -> {
            if (!upload.batchNo().equals(number)) return;
            batch.uploaded.put(key, upload.voided());
            batch.count(upload.refund() ? "refund" : "sale", upload.currency(), upload.amount(), 1);
            if (upload.voided()) batch.count("void", upload.currency(), upload.amount(), 1);
        });
        return batch;
    }
}
