package example.paybell;

/** One row of {@code settlementList}. */
public record SettlementEntry(String reqId, String refNo) {}
