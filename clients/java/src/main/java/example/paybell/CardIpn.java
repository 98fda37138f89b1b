package example.paybell;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;

/** The IPN of a card command: section 2.2. The last components are null without {@code fields: extended}. */
public record CardIpn(
        String aid,
        String amount,
        String appName,
        String approveCode,
        String batchNo,
        String billId,
        String cardHolder,
        String cardNumber,
        String cardScheme,
        String currency,
        String deviceId,
        String expDate,
        String extraData,
        String id,
        String invoiceNo,
        String isoResponseCode,
        String merchantAddress,
        String merchantId,
        String merchantName,
        String merchantTransId,
        String mid,
        String paymentType,
        String refId,
        String reqId,
        String status,
        String swipeType,
        String tc,
        String tid,
        String traceNo,
        String transDateTime,
        @JsonProperty("transaction_type") String transactionType,
        String signature,
        @JsonInclude(JsonInclude.Include.NON_NULL) String command,
        @JsonInclude(JsonInclude.Include.NON_NULL) String originalId,
        @JsonInclude(JsonInclude.Include.NON_NULL) String originalReqId)
        implements Ipn {}
