package example.paybell;

// Generated from the code by scripts/generate.ts: change the tables there, not this file.

/** One row of {@code settlementList}. */
public record SettlementEntry(String reqId, String refNo) {}
