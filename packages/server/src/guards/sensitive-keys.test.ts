import { describe, expect, test } from "vitest";
import { holdsCardNumber } from "./card-number.ts";
import { isSensitive } from "./sensitive-keys.ts";

const codes = [
  ...["cvv", "CVV", "cvv2", "CVV2", "cvvCode", "cvv_code", "cvv-number", "cvvNumber", "cvv2Value", "cvv.value", "icvv"],
  ...["card_cvv", "cardCvv", "cardCVV2", "card-cvv-code", "CardCVVCode", "cc_cvv", "user_cvv", "cvvText", "my cvv"],
  ...["cvc", "CVC2", "cvcCode", "cvc_code", "cardCvc", "card_cvc2", "cardcvc", "paymentCvc", "my_cvc"],
  ...["cvn", "cvnNumber", "cvn2", "cvd", "cvd_value", "ccv", "ccvCode", "card_ccv"],
  ...["cv2", "CV2", "cardCv2", "card_cv2", "cv2_number", "cav", "cav2", "CAV2", "csc", "cardCsc", "card_csc", "cid"],
  ...["securityCode", "security_code", "security-code", "cardSecurityCode", "card_security_code", "securityNumber"],
  ...["verificationCode", "card_verification_value", "cardVerificationNumber", "CardVerificationValue2"],
  ...["creditCardSecurityCode", "cc_verification_code", "validationCode", "cardCode", "card_code", "CARD-CODE"],
  ...["cvCode", "cv_code", "cardIdentificationNumber", "card_authentication_value", "signaturePanelCode"],
  ...["sec_code", "secCode", "cardSecCode", "card_sec", "card_verification"],
];
const pins = [
  "pin",
  "PIN",
  "cardPin",
  "card_pin",
  "pinCode",
  "pin_number",
  "pinData",
  "userPin",
  "newPin",
  "atmPin",
  "pvv",
];
const pinBlocks = ["pinBlock", "pin_block", "encryptedPinBlock", "PIN-BLOCK", "PINBLK"];
const tracks = [
  ...["track", "track1", "track2", "track_2", "track3", "trackData", "track2Data", "track_2_data", "TRACK2"],
  ...["cardTrack2", "magStripe", "magstripe", "magneticStripe", "magStripeTrack2", "stripeData", "stripe"],
  ...["track2Equivalent", "track2EquivalentData", "emv_track2", "encryptedTrack2"],
];

describe("a value is refused by its name:", () => {
  test.each(codes)("%s with a security code", (name) => {
    expect(isSensitive(name, "123")).toBe(true);
    expect(isSensitive(name, 4321)).toBe(true);
    expect(holdsCardNumber(JSON.stringify({ [name]: "123" }))).toBe(true);
    for (const value of ["***", "", "12", "12345", "M", "declined"]) expect(isSensitive(name, value)).toBe(false);
  });
  test.each(pins)("%s with a PIN", (name) => expect(isSensitive(name, "1234")).toBe(true));
  test.each(pinBlocks)("%s with a block", (name) => {
    expect(isSensitive(name, "0123456789ABCDEF")).toBe(true);
    expect(isSensitive(name, "0123456789ABCDEF0123456789ABCDEF")).toBe(true);
  });
  test.each(tracks)("%s with a track", (name) => {
    expect(isSensitive(name, ";4111111111111112=25121010000?")).toBe(true);
    expect(isSensitive(name, "on the map")).toBe(false);
  });
});

test.each([
  ...["code", "cardType", "cardCount", "giftCardCode", "discardCode", "cardCodec", "postCode", "countryCode", "ccCode"],
  ...["recv2", "srcv2", "svcVcpu", "svcvcpu", "cv", "cvUrl", "archiveId", "mcc", "mccCode", "cscore", "discScale"],
  ...["cidr", "incident", "acidity", "decided", "cave", "excavator", "merchantCid", "customerCid", "cavern"],
  ...[
    "security",
    "socialSecurity",
    "airportSecurityCode",
    "emailVerificationCode",
    "smsVerificationCode",
    "invalidCode",
  ],
  ...["spin", "shipping", "shippingCode", "mapping", "pinned", "opinion", "pinterest", "spinCode", "topping"],
  ...["tracking", "trackingNumber", "trackNumber", "soundtrack1", "striped", "stripeCustomer", "backtrack"],
  ...["isoResponseCode", "approveCode", "amount", "mid", "tid", "traceNo", "batchNo", "expiry", "deviceId", "billId"],
])("an ordinary name is allowed: %s", (name) => {
  for (const value of ["123", "4321", 123, "123456789012", ";41111111=1"]) expect(isSensitive(name, value)).toBe(false);
});

describe("in a text", () => {
  test.each([
    ...[
      "cvv 123",
      "CVV: 123",
      "cvv=123",
      "cvv2 4321",
      "the cvv is 123.",
      "CVC2:123",
      "cv2 123",
      "cvn# 123",
      "ccv 123",
      "cvv – 123",
      "CVV-123",
      "CVV No. 123",
      "cvv (123)",
      "cvv[123]",
      "cvv/123",
    ],
    ...["security code 123", "card security code: 4321", "cvv code 123", "Security Code: 123", "my cvv\t123"],
    ...["a=1&card_cvv=123&b=2", "<cvv>123</cvv>", "<card><cvvCode>123</cvvCode></card>", "error: {'cvv': '123'}"],
    ...['declined {"card_cvv":"123"} again', String.raw`log: {\"cvv\":\"123\"}`, "cvvCode=123", "(cvv=123)"],
    ...[
      "track2=;4111111111111112=25121010000?",
      "<track2>4111111111111112=2512</track2>",
      "pin: 1234",
      "pin_block=0123456789ABCDEF",
    ],
    ...["%63vv=123", "ｃｖｖ 123", "https://x.example/?cvv=123"],
  ])("a named value is refused: %s", (text) => expect(holdsCardNumber(text)).toBe(true));

  test.each([
    ...["cvv ***", "cvv is missing", "cvv failed, code 51", "cvv 12", "cvv 12345678", "CVC", "order cvv-checked 2026"],
    ...["Pin 1234 Street", "Track 12345678", "https://x.example/ipn?cid=1234&csc=123", "room 123, security desk"],
    ...["shipping: 1234", "tracking=123456789012", "valid: 123", "id=1234 verified", "security: 1234", "card code"],
    ...["POS 123", "Coffee, 2 x 250", "SPIN=1234", "validity=2512"],
  ])("an ordinary one is not: %s", (text) => expect(holdsCardNumber(text)).toBe(false));
});
