package example.paybell;

import java.time.Clock;
import java.time.Duration;
import java.util.Map;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/** Receives the payment notifications (IPNs) of Paybell. {@link Keys} and {@link KeyFile} supply the keys. */
public final class Paybell {
    /** The greatest difference between webhook-timestamp and this machine's clock. */
    public static final int FRESHNESS_SECONDS = 300;

    /** The longest body that is read. */
    public static final int BODY_BYTES_MAX = 16 << 20;

    /** 30 s of waiting, then 8 MiB by a slow line. */
    private static final Duration ANSWER_LIMIT = Duration.ofMinutes(5);

    private Paybell() {}

    /**
     * Opens a POST: verifies who sent it and when, decrypts it, verifies its own signature.
     *
     * @param body the bytes as received, before any JSON parser
     * @param header gives a request header by its name in lower case, or null: {@code request::getHeader}
     * @throws PaybellException for anything else than an authentic, fresh IPN
     */
    public static Received open(byte[] body, UnaryOperator<String> header, Supplier<Keys> keys) {
        return open(body, header, keys, Clock.systemUTC());
    }

    /** Opens a POST by another clock. */
    public static Received open(byte[] body, UnaryOperator<String> header, Supplier<Keys> keys, Clock clock) {
        return new Opening(body, header, keys.get()).open(clock.instant().getEpochSecond());
    }

    /** Makes an IPN as Paybell would POST it, under {@link Keys#SAMPLE}: for tests of your own callback. */
    public static Sample sample(String kind) {
        return sample(kind, Keys.of(Keys.SAMPLE), Map.of());
    }

    /**
     * Makes an IPN as Paybell would POST it, signed and encrypted by the first version of each key.
     *
     * @param kind sale, decline, void, preauth, preauth_complete, cancel, refund or settlement
     * @param fields replace those of the IPN, by the names of the specification's tables
     */
    public static Sample sample(String kind, Supplier<Keys> keys, Map<String, ?> fields) {
        return Sample.of(kind, keys.get(), fields);
    }

    /** Fetches everything after a cursor (null: from the oldest; "now": from this moment) until nothing is left. */
    public static Iterable<Page> catchUp(String cursor, Supplier<Keys> keys) {
        return catchUp(cursor, keys, Duration.ZERO);
    }

    /**
     * Fetches everything after a cursor, page by page, and ends when nothing arrived for as long as {@code wait} (whole
     * seconds, at most 30). The file of the keys names baseUrl and apiKey. An exception has the service's code, or is a
     * refusal: then its page was not given.
     */
    public static Iterable<Page> catchUp(String cursor, Supplier<Keys> keys, Duration wait) {
        return () -> Page.pages(cursor, keys, wait, ANSWER_LIMIT).iterator();
    }
}
