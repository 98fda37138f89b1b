package example.paybell;

/** What both kinds of IPN have. {@code command} is null without {@code fields: extended}. */
public sealed interface Ipn permits CardIpn, SettlementIpn {
    String batchNo();

    String deviceId();

    String extraData();

    String id();

    String merchantTransId();

    String mid();

    String reqId();

    String status();

    String tid();

    String transactionType();

    String signature();

    String command();
}
