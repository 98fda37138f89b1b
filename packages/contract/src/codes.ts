/** The types of the specification, and that of a REFUND, which only partners with an agreement receive. */
export const transactionTypes = ["SALE", "VOID", "SETTLE", "CANCEL", "REFUND"] as const;
export type TransactionType = (typeof transactionTypes)[number];

/** Section 3. */
export const statuses = ["INIT", "SUCCESS", "ERROR"] as const;
export type Status = (typeof statuses)[number];

export const cardSchemes = ["VISA", "JCB", "MASTER", "AMEX", "UPI"] as const;
export type CardScheme = (typeof cardSchemes)[number];

/** Section 2.2, field 22. */
export const paymentTypes = ["card", "card_api", "qrmo", "qrmo_api", "card_mobile"] as const;
export type PaymentType = (typeof paymentTypes)[number];
export const defaultPaymentType: PaymentType = "card";

/** Section 2.4, and the two codes of section 2.2, field 26. */
export const swipeTypes = [
  { code: "F", meaning: "Fallback: used when the card chip is damaged" },
  { code: "C", meaning: "Chip: card chip read" },
  { code: "CTL", meaning: "Contactless: NFC" },
  { code: "M", meaning: "Manual: card data entered on the device" },
  { code: "S", meaning: "Swipe: magnetic stripe" },
  { code: "CL", meaning: "Contact" },
  { code: "CLS", meaning: "Contactless" },
] as const;
export type SwipeType = (typeof swipeTypes)[number]["code"];

/** The time in which both versions of a rotated key are valid: unless agreed otherwise, and at most. */
export const overlapHours = { initial: 24, max: 720 } as const;
