package example.paybell;

import java.util.Map;

/**
 * An authentic IPN.
 *
 * @param ipn a {@link CardIpn} or a {@link SettlementIpn}, missing fields as empty strings
 * @param wire the object as it was sent, with the fields that this version does not know
 */
public record Received(Ipn ipn, Map<String, Object> wire, String notificationId, String keyId, Headers headers) {
    /** Hints that no signature covers: show them and log them, but decide nothing by them. */
    public record Headers(String attempt, String command, String originalTransactionId, boolean outOfOrder) {}
}
