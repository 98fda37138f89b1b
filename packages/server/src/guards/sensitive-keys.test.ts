import { cardSigningOrder, settlementSigningOrder } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import { type RequestField, requestFields } from "../commands/requests/request.ts";
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
  ...["sec_code", "secCode", "cardSecCode", "card_sec", "card_verification", "cvx2", "three_digit_code"],
];
const foreignCodes = [
  ...["codigoSeguridad", "codigo_de_seguridad", "código de seguridad", "codigoSeguridadTarjeta", "CodigoSeguranca"],
  ...["codigo_de_segurança", "codeSecurite", "code_de_sécurité", "codice_sicurezza", "codiceDiSicurezza"],
  ...["cryptogramme", "cryptogrammeVisuel", "visual_cryptogram", "criptograma", "codDeSecuritate", "pruefziffer"],
  ...["Prüfziffer", "kartenpruefnummer", "Kartenprüfnummer", "Sicherheitscode", "kartensicherheitscode"],
  ...["kod_bezpieczenstwa", "kodBezpieczeństwa", "bezpečnostní_kód", "biztonsági kód", "güvenlikKodu"],
  ...["beveiligingscode", "veiligheidscode", "sikkerhedskode", "sikkerhetskode", "säkerhetskod", "turvakoodi"],
  ...["kodeKeamanan", "maBaoMat", "mã bảo mật", "mã_bảo_mật_thẻ", "kodBezopasnosti", "код безопасности"],
  ...["安全码", "セキュリティコード", "보안코드", "código cvv", "ｃｖｖ"],
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
  "codigoPin",
  "geheimzahl",
];
const pinBlocks = ["pinBlock", "pin_block", "encryptedPinBlock", "PIN-BLOCK", "PINBLK", "epb"];
const tracks = [
  ...["track", "track1", "track2", "track_2", "track3", "trackData", "track2Data", "track_2_data", "TRACK2"],
  ...["cardTrack2", "magStripe", "magstripe", "magneticStripe", "magStripeTrack2", "stripeData", "stripe"],
  ...["track2Equivalent", "track2EquivalentData", "emv_track2", "encryptedTrack2"],
  ...[
    "tk2",
    "TRK2",
    "cardTk1",
    "swipe",
    "swipeData",
    "swiped_data",
    "cardSwipeData",
    "msr",
    "msrData",
    "msr_track2_data",
  ],
  ...["magData", "magStripData", "magnetstreifen", "bandaMagnética", "bande_magnetique", "pista2", "piste_2", "spur2"],
];

describe("a value is refused by its name:", () => {
  test.each([...codes, ...foreignCodes])("%s with a security code", (name) => {
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
  ...["codigoPostal", "codePostal", "kodPocztowy", "codiceFiscale", "codigo", "kode", "kodeBank", "nummer", "maSoThue"],
  ...["seguridad", "seguridadSocial", "sicherheit", "sicherheitsabstand", "securityDeposit", "codigoAutorizacion"],
  ...["kundennummer", "rechnungsnummer", "pruefung", "kontrollnummer", "bezpieczenstwo", "安全", "验证码", "код"],
  ...[
    "msrp",
    "msrpUsd",
    "swiper",
    "swipeType",
    "swipedAt",
    "swipeCount",
    "magazine",
    "magnitude",
    "magento",
    "imageData",
  ],
  ...[
    "spurious",
    "sparkasse1",
    "spar",
    "piste",
    "pistachio2",
    "tk",
    "tkt2",
    "network2",
    "t2",
    "trkId",
    "digits",
    "digitCount",
  ],
  ...[
    "cryptocurrency",
    "isoResponseCode",
    "approveCode",
    "amount",
    "mid",
    "tid",
    "traceNo",
    "batchNo",
    "expiry",
    "deviceId",
    "billId",
  ],
])("an ordinary name is allowed: %s", (name) => {
  for (const value of ["123", "4321", 123, "123456789012", ";41111111=1"]) expect(isSensitive(name, value)).toBe(false);
});

const namesOf = (fields: readonly RequestField[]): string[] =>
  fields.flatMap((field) => [field.name, ...(field.type === "object" ? namesOf(field.fields) : [])]);
/** Encrypted by the terminal, and not stored. */
const encrypted = ["track2", "pinBlock"];
const contractNames = [
  ...cardSigningOrder,
  ...settlementSigningOrder,
  ...Object.values(requestFields).flatMap(namesOf),
];

test.each([...new Set<string>(contractNames)].filter((name) => !encrypted.includes(name)))(
  "a field of the contract is allowed: %s",
  (name) => {
    for (const value of ["123", 4321, "123456789012", ";41111111=1"]) expect(isSensitive(name, value)).toBe(false);
  },
);

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
    ...["cvv123", "CVC123", "c.v.v. 123", "código de seguridad: 123", "code sécurité 123", "mã bảo mật: 123"],
    ...["Prüfziffer=123", "codigoSeguridad=123", "<kod_bezpieczenstwa>123</kod_bezpieczenstwa>", "cvv：１２３"],
    ...["%63vv=123", "ｃｖｖ 123", "https://x.example/?cvv=123"],
  ])("a named value is refused: %s", (text) => expect(holdsCardNumber(text)).toBe(true));

  test.each([
    ...["cvv ***", "cvv is missing", "cvv failed, code 51", "cvv 12", "cvv 12345678", "CVC", "order cvv-checked 2026"],
    ...["Pin 1234 Street", "Track 12345678", "https://x.example/ipn?cid=1234&csc=123", "room 123, security desk"],
    ...["shipping: 1234", "tracking=123456789012", "valid: 123", "id=1234 verified", "security: 1234", "card code"],
    ...["acvv123x", "cvv1234567", "seguridad 123", "calle de seguridad 123", "codigo 123", "msrp: 12345678"],
    ...["POS 123", "Coffee, 2 x 250", "SPIN=1234", "validity=2512"],
  ])("an ordinary one is not: %s", (text) => expect(holdsCardNumber(text)).toBe(false));
});
