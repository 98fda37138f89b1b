package example.paybell;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;

/** The IPN of a settlement: section 2.3. The last components are null without {@code fields: extended}. */
public record SettlementIpn(
        String batchNo,
        String callbackUrl,
        String deviceId,
        String extraData,
        String id,
        String merchantTransId,
        String mid,
        String quantity,
        String reqId,
        String saleQuantity,
        String saleTotalAmount,
        String status,
        String tid,
        String totalAmount,
        @JsonProperty("transaction_time") String transactionTime,
        @JsonProperty("transaction_type") String transactionType,
        String voidQuantity,
        String voidTotalAmount,
        List<SettlementEntry> settlementList,
        String signature,
        @JsonInclude(JsonInclude.Include.NON_NULL) String command,
        @JsonInclude(JsonInclude.Include.NON_NULL) String currency)
        implements Ipn {}
