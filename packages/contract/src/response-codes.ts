export interface ResponseCode {
  readonly code: string;
  readonly meaning: string;
}

/**
 * isoResponseCode: ISO 8583:1987, data element 39. Only 00 is success. Codes that are missing here are reserved by the
 * standard.
 */
export const responseCodes: readonly ResponseCode[] = [
  { code: "00", meaning: "Approved or completed successfully" },
  { code: "01", meaning: "Refer to card issuer" },
  { code: "02", meaning: "Refer to card issuer's special conditions" },
  { code: "03", meaning: "Invalid merchant" },
  { code: "04", meaning: "Pick up card" },
  { code: "05", meaning: "Do not honour" },
  { code: "06", meaning: "Error" },
  { code: "07", meaning: "Pick up card, special condition" },
  { code: "08", meaning: "Honour with identification" },
  { code: "09", meaning: "Request in progress" },
  { code: "10", meaning: "Approved for partial amount" },
  { code: "11", meaning: "Approved (VIP)" },
  { code: "12", meaning: "Invalid transaction" },
  { code: "13", meaning: "Invalid amount" },
  { code: "14", meaning: "Invalid card number (no such number)" },
  { code: "15", meaning: "No such issuer" },
  { code: "16", meaning: "Approved, update track 3" },
  { code: "17", meaning: "Customer cancellation" },
  { code: "18", meaning: "Customer dispute" },
  { code: "19", meaning: "Re-enter transaction" },
  { code: "20", meaning: "Invalid response" },
  { code: "21", meaning: "No action taken" },
  { code: "22", meaning: "Suspected malfunction" },
  { code: "23", meaning: "Unacceptable transaction fee" },
  { code: "24", meaning: "File update not supported by receiver" },
  { code: "25", meaning: "Unable to locate record on file" },
  { code: "26", meaning: "Duplicate file update record, old record replaced" },
  { code: "27", meaning: "File update field edit error" },
  { code: "28", meaning: "File update file locked out" },
  { code: "29", meaning: "File update not successful, contact acquirer" },
  { code: "30", meaning: "Format error" },
  { code: "31", meaning: "Bank not supported by switch" },
  { code: "32", meaning: "Completed partially" },
  { code: "33", meaning: "Expired card, pick up" },
  { code: "34", meaning: "Suspected fraud, pick up" },
  { code: "35", meaning: "Card acceptor contact acquirer, pick up" },
  { code: "36", meaning: "Restricted card, pick up" },
  { code: "37", meaning: "Card acceptor call acquirer security, pick up" },
  { code: "38", meaning: "Allowable PIN tries exceeded, pick up" },
  { code: "39", meaning: "No credit account" },
  { code: "40", meaning: "Requested function not supported" },
  { code: "41", meaning: "Lost card, pick up" },
  { code: "42", meaning: "No universal account" },
  { code: "43", meaning: "Stolen card, pick up" },
  { code: "44", meaning: "No investment account" },
  { code: "51", meaning: "Not sufficient funds" },
  { code: "52", meaning: "No chequing account" },
  { code: "53", meaning: "No savings account" },
  { code: "54", meaning: "Expired card" },
  { code: "55", meaning: "Incorrect personal identification number" },
  { code: "56", meaning: "No card record" },
  { code: "57", meaning: "Transaction not permitted to cardholder" },
  { code: "58", meaning: "Transaction not permitted to terminal" },
  { code: "59", meaning: "Suspected fraud" },
  { code: "60", meaning: "Card acceptor contact acquirer" },
  { code: "61", meaning: "Exceeds withdrawal amount limit" },
  { code: "62", meaning: "Restricted card" },
  { code: "63", meaning: "Security violation" },
  { code: "64", meaning: "Original amount incorrect" },
  { code: "65", meaning: "Exceeds withdrawal frequency limit" },
  { code: "66", meaning: "Card acceptor call acquirer's security department" },
  { code: "67", meaning: "Hard capture: pick up card at the terminal" },
  { code: "68", meaning: "Response received too late" },
  { code: "75", meaning: "Allowable number of PIN tries exceeded" },
  { code: "90", meaning: "Cutoff is in process" },
  { code: "91", meaning: "Issuer or switch is inoperative" },
  { code: "92", meaning: "Financial institution or intermediate network facility cannot be found for routing" },
  { code: "93", meaning: "Transaction cannot be completed, violation of law" },
  { code: "94", meaning: "Duplicate transmission" },
  { code: "95", meaning: "Reconcile error" },
  { code: "96", meaning: "System malfunction" },
];

const meanings: ReadonlyMap<string, string> = new Map(responseCodes.map(({ code, meaning }) => [code, meaning]));

/** The meaning of an isoResponseCode. A code outside the table is still an error (section 7). */
export function responseMeaning(code: string): string {
  return meanings.get(code) ?? "Error with a code that ISO 8583 does not list";
}
