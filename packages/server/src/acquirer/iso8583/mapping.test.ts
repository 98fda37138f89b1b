import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { AcquirerMessage } from "../acquirer.ts";
import { again, emptyTotals, Till } from "../till.fixture.ts";
import { answerWith, layoutOf, Mapping } from "./mapping.ts";
import { isoMessage } from "./message/codec.fixture.ts";
import { Codec } from "./message/codec.ts";
import { readProfile } from "./profile/read.ts";

const path = join(import.meta.dirname, "../../../../../docs/operator/acquirer-profile.json");
const profile = readProfile(readFileSync(path, "utf8"));
const mapping = new Mapping(profile);
const approval = { responseCode: "00", approveCode: "A1B2C3", refId: "000000000007", tc: "" };
const usd = <Message extends { readonly currency: string }>(message: Message) => ({ ...message, currency: "USD" });

describe("the mapping of a message to a host's", () => {
  test("writes a Sale with its amount, times and terminal", () => {
    const { mti, fields } = mapping.request(new Till().sale("tok_approve"));
    expect(mti).toBe("0200");
    expect(Object.fromEntries(fields)).toEqual({
      3: "000000",
      4: "15000000",
      7: "0131093001",
      11: "000001",
      12: "163001",
      13: "0131",
      22: "051",
      24: "003",
      25: "00",
      41: "T0000001",
      42: "M00000000000001",
      48: "tok_approve",
      49: "704",
      60: "000001",
      62: "000001",
    });
  });

  test("writes totals as a host counts them: Sales without voided ones, or the net amount with its sign", () => {
    const written = {
      74: "{refundQuantity}",
      76: "{unvoidedQuantity}",
      88: "{unvoidedTotal}",
      97: "{netSign}{netTotal:16}",
    };
    const { SETTLEMENT } = profile.messages;
    const fields = { ...SETTLEMENT.fields, ...written };
    const counting = new Mapping({
      ...profile,
      messages: { ...profile.messages, SETTLEMENT: { ...SETTLEMENT, fields } },
    });
    const totals = { ...emptyTotals, saleQuantity: 3, saleTotalMinor: 90n, voidQuantity: 1, voidTotalMinor: 40n };
    const netOf = (refundTotalMinor: bigint) => {
      const settlement = new Till().settlement({ ...totals, refundQuantity: 1, refundTotalMinor });
      return counting.request(settlement).fields;
    };
    const all = netOf(20n);
    expect([74, 76, 88, 97].map((field) => all.get(field))).toEqual(["1", "2", "5000", "C0000000000003000"]);
    expect(netOf(60n).get(97)).toBe("D0000000000001000");
  });

  test("counts each currency in the host's own smallest unit", () => {
    expect(mapping.request(usd(new Till().sale("tok_approve", 1_250n))).fields.get(4)).toBe("1250");
    expect(mapping.request(new Till().sale("tok_approve", 1_250n)).fields.get(4)).toBe("125000");
    const thb = { ...new Till().sale("tok_approve"), currency: "THB" };
    expect(() => mapping.request(thb)).toThrow("the host example-host takes no THB");
  });

  test("has the date and time of the host's place, of an original too, and whether a part may be approved", () => {
    const { VOID, SALE, PREAUTH } = profile.messages;
    const more = { 13: "{localDate}", 61: "{originalLocalDate}{originalLocalTime} {originalTid} {originalTraceNo}" };
    const by = new Mapping({
      ...profile,
      messages: {
        ...profile.messages,
        SALE: { ...SALE, fields: { ...SALE.fields, 61: "{allowPartial}" } },
        PREAUTH: { ...PREAUTH, fields: { ...PREAUTH.fields, 61: "{allowPartial}" } },
        VOID: { ...VOID, fields: { ...VOID.fields, ...more } },
      },
    });
    const atMs = Date.UTC(2026, 0, 31, 20, 30, 15);
    const till = new Till();
    const sale = { ...till.sale("tok_approve"), atMs };
    const voided = by.request({ ...till.void(sale, approval), atMs: atMs + 86_400_000, tid: "T0000002" });
    expect([voided.fields.get(13), voided.fields.get(61)]).toEqual(["0202", "0201033015 T0000001 000001"]);
    const partial = [sale, till.preAuth("tok_approve")].flatMap((message) =>
      [true, false].map((allowPartial) => by.request({ ...message, allowPartial }).fields.get(61)),
    );
    expect(partial).toEqual(["1", "0", "1", "0"]);
  });

  test("names an original by its message type, trace number and time, and by its answer", () => {
    const till = new Till();
    const sale = till.sale("tok_approve");
    const { fields } = mapping.request(till.void(sale, approval));
    expect(fields.get(3)).toBe("020000");
    expect(fields.get(37)).toBe("000000000007");
    expect(fields.get(38)).toBe("A1B2C3");
    expect(fields.get(90)).toBe("020000000101310930010000000000000000000000");
  });

  test("leaves out fields without a value: the batch of a PreAuth, the code of an unanswered original", () => {
    const till = new Till();
    const preAuth = till.preAuth("tok_approve");
    expect(mapping.request(preAuth).fields.has(60)).toBe(false);
    const unanswered = mapping.request(till.void(preAuth, { ...approval, approveCode: "", refId: "" }));
    expect(unanswered.fields.has(37)).toBe(false);
    expect(unanswered.fields.has(38)).toBe(false);
  });

  test("reverses with the original's trace number and processing code, at a time of its own", () => {
    const till = new Till();
    const voided = till.void(till.sale("tok_approve"), approval);
    const { mti, fields } = mapping.request(till.reversal(voided));
    expect(mti).toBe("0400");
    expect(fields.get(3)).toBe("020000");
    expect(fields.get(11)).toBe(voided.traceNo);
    expect(fields.get(7)).toBe("0131093003");
    expect(fields.get(90)?.slice(0, 20)).toBe("02000000020131093002");
  });

  test("marks a repeat as such, with the same elements", () => {
    const sale = new Till().sale("tok_approve");
    const first = mapping.request(sale);
    const repeat = mapping.request(again(sale));
    expect(repeat).toEqual({ ...first, mti: "0201" });
    expect(mapping.matchKeyOf(repeat)).toBe(mapping.matchKeyOf(first));
  });

  test("reads the host's own totals where it sends them as the Settlement has ours", () => {
    const ours = { currency: "VND", saleQuantity: 3, saleTotalMinor: 90n, voidQuantity: 1, voidTotalMinor: 40n };
    const request = mapping.request(new Till().settlement({ ...ours, refundQuantity: 0, refundTotalMinor: 0n }));
    const own = `${"00002"}${"00000000005000"}${"00001"}${"00000000004000"}${"00000"}${"00000000000000"}`;
    const answerOf = (field63: string) => mapping.answer(isoMessage("0510", { 39: "95", 63: field63 }), request);
    expect(answerOf(own)).toMatchObject({
      ownTotals: { 63: own },
      ownFigures: { saleQuantity: 2, saleTotalMinor: 50n, voidQuantity: 1, voidTotalMinor: 40n, refundQuantity: 0 },
    });
    const none = mapping.request(new Till().settlement({ ...emptyTotals, currency: "" }));
    const answered = { mti: "0510", fields: new Map([[63, own]]) };
    // An amount without its currency is none, unless it is nothing.
    const quantities = { saleQuantity: 2, voidQuantity: 1, refundQuantity: 0, refundTotalMinor: 0n };
    expect(mapping.answer(answered, none).ownFigures).toEqual(quantities);
    for (const other of [own.slice(1), `${own}1`, "SEE OUR REPORT"]) {
      expect(answerOf(other).ownTotals).toEqual({ 63: other });
      expect(answerOf(other).ownFigures).toBeUndefined();
    }
  });

  test("finds an answer doubtful if it has an approval code beside a code that neither approves nor declines", () => {
    const doubtful = (code: string, approveCode: string, read = mapping) => {
      const fields = new Map([[39, code] as const, [38, approveCode] as const]);
      return read.answer({ mti: "0210", fields }, mapping.request(new Till().sale("tok_approve"))).isAmbiguous === true;
    };
    for (const code of ["85", "32", "09", "Z3"]) {
      expect(doubtful(code, "A1B2C3"), code).toBe(true);
      for (const none of ["", "      ", "000000"]) expect(doubtful(code, none), `${code} ${none}`).toBe(false);
    }
    // All of them: a code whose meaning is documented one day must not become a decline by that.
    const codes = Array.from({ length: 100 }, (_, code) => `${code}`.padStart(2, "0"));
    const open = "09 32 45 46 47 48 49 50 69 70 71 72 73 74 76 77 78 79 80 81 82 83 84 85 86 87 88 89 97 98 99";
    expect(codes.filter((code) => doubtful(code, "A1B2C3")).join(" ")).toBe(open);
    expect(doubtful("Z3", "A1B2C3", new Mapping({ ...profile, declines: ["Z3"] }))).toBe(false);
    expect(doubtful("08", "A1B2C3", new Mapping({ ...profile, approvals: [] }))).toBe(true);
  });

  test("writes a batch's totals with their zeros, and another processing code after an upload", () => {
    const sales = { saleQuantity: 12, saleTotalMinor: 34n, voidQuantity: 1, voidTotalMinor: 2n };
    const totals = { currency: "VND", ...sales, refundQuantity: 3, refundTotalMinor: 5n };
    const settlement = new Till().settlement(totals);
    const { fields } = mapping.request(settlement);
    expect(fields.get(63)).toBe(`00012${"00000000003400"}00001${"00000000000200"}00003${"00000000000500"}`);
    expect(fields.get(3)).toBe("920000");
    expect(mapping.request({ ...settlement, afterUpload: true }).fields.get(3)).toBe("960000");
    const tooMany = new Till().settlement({ ...totals, saleQuantity: 100_000 });
    expect(() => mapping.request(tooMany)).toThrow("saleQuantity has more than the 5 digits of its place");
  });

  test("writes the card of what follows a Sale where the profile wants it, its expiry as YYMM", () => {
    const { VOID } = profile.messages;
    const fields = { ...VOID.fields, 2: "{cardToken}", 14: "{expDate}", 22: "{entryMode}" };
    const wanting = new Mapping({ ...profile, messages: { ...profile.messages, VOID: { ...VOID, fields } } });
    const till = new Till();
    const voided = till.void(till.sale("tok_approve"), approval);
    const written = (expDate: string) => {
      const card = { cardToken: "tok_approve", swipeType: "CTL", expDate };
      const message = wanting.request({ ...voided, ...card });
      return [2, 14, 22].map((field) => message.fields.get(field));
    };
    for (const expiry of ["12/29", "12/2029", "2029-12", "2912", "1229"]) {
      expect(written(expiry), expiry).toEqual(["tok_approve", "2912", "071"]);
    }
    expect(written("**/**")).toEqual(["tok_approve", undefined, "071"]);
    expect(wanting.request(voided).fields.has(2)).toBe(false);
  });

  test("passes chip data to fields 23, 35, 52 and 55, and returns the issuer's answer", () => {
    const { SALE } = profile.messages;
    const more = { 23: "{sequenceNumber:3}", 35: "{track2}", 52: "{pinBlock}", 55: "{emv}" };
    const chipped = new Mapping({
      ...profile,
      messages: { ...profile.messages, SALE: { ...SALE, fields: { ...SALE.fields, ...more } } },
      answer: { ...profile.answer, emv: 55 },
    });
    const sale = new Till().sale("tok_approve");
    const chip = { sequenceNumber: "1", track2: "a1b2", pinBlock: "0123456789abcdef", emv: "9f2608" };
    const { fields } = chipped.request({ ...sale, ...chip });
    expect([23, 35, 52, 55].map((field) => fields.get(field))).toEqual(["001", "A1B2", "0123456789ABCDEF", "9F2608"]);
    expect([23, 35, 52, 55].some((field) => chipped.request(sale).fields.has(field))).toBe(false);
    const answered = (value: string) => isoMessage("0210", { 39: "00", 55: value });
    expect(chipped.answer(answered("910A0102"), chipped.request(sale))).toMatchObject({ emv: "910A0102" });
    expect(mapping.answer(answered("910A0102"), mapping.request(sale))).not.toHaveProperty("emv");
  });

  test("uploads a voided Sale as a Void, and a Refund as a Refund", () => {
    const till = new Till();
    const sale = till.sale("tok_approve");
    expect(mapping.request(till.upload(sale, approval)).fields.get(3)).toBe("000000");
    expect(mapping.request(till.upload(sale, approval, true)).fields.get(3)).toBe("020000");
    expect(mapping.request(till.upload(till.refund(sale, approval), approval)).fields.get(3)).toBe("200000");
  });

  test("matches an answer by the fields it repeats, padded or not, also among messages of the same number", () => {
    const till = new Till();
    const sale = till.sale("tok_approve");
    const request = mapping.request(sale);
    const answer = { mti: "0210", fields: new Map([...request.fields, [41, "T0000001  "] as const]) };
    expect(mapping.matchKeyOf(answer)).toBe(mapping.matchKeyOf(request));
    const reversal = { ...till.reversal(sale), atMs: sale.atMs };
    expect(mapping.matchKeyOf(mapping.request(reversal))).not.toBe(mapping.matchKeyOf(request));
    expect(mapping.matchKeyOf(mapping.request({ ...sale, tid: "T0000002" }))).not.toBe(mapping.matchKeyOf(request));
  });
});

describe("the mapping of a host's answer", () => {
  const request = mapping.request(new Till().sale("tok_approve"));
  const answer = (...fields: [number, string][]) => ({ mti: "0210", fields: new Map([...request.fields, ...fields]) });

  test("reads the response code, the approval code and the reference", () => {
    const read = mapping.answer(answer([37, "000000000007"], [38, "A1    "], [39, "00"]), request);
    expect(read).toEqual({ responseCode: "00", approveCode: "A1", refId: "000000000007", tc: "" });
  });

  test("passes on no NUL of a host's, whether it pads a field or is inside", () => {
    const totals = { ...emptyTotals, currency: "VND" };
    const settled = isoMessage("0510", {
      15: "01\u00001",
      37: "R\u0000F\0\0",
      38: "A1\0\0\0\0",
      39: "00",
      63: "\0x\0",
    });
    expect(mapping.answer(settled, mapping.request(new Till().settlement(totals)))).toEqual({
      responseCode: "00",
      approveCode: "A1",
      refId: "R\ufffdF",
      tc: "",
      settlementDate: "01\ufffd1",
      ownTotals: { 63: "\ufffdx" },
    });
    const stray = mapping.unmatchedAnswer(answer([39, "00"], [41, "T1\u00001\0\0"]));
    expect(stray).toMatchObject({ tid: "T1\ufffd1" });
  });

  test("reads an approval of another amount as a partial one, which the ledger reverses", () => {
    expect(mapping.answer(answer([4, "000000000100"], [39, "00"]), request).responseCode).toBe("10");
    expect(mapping.answer(answer([4, "000015000100"], [39, "00"]), request).responseCode).toBe("10");
    expect(mapping.answer(answer([4, "000015000000"], [39, "00"]), request).responseCode).toBe("00");
    expect(mapping.answer(answer([4, "000000000100"], [39, "51"]), request).responseCode).toBe("51");
  });

  test("gives the approved part only where the profile accepts one, and only if it is one", () => {
    const accepting = new Mapping({ ...profile, partialApprovals: "accept" });
    const partOf = (amount: string, code = "10", by = accepting) =>
      by.answer(answer([4, amount], [39, code]), request).approvedMinor;
    expect(partOf("000005000000")).toBe(50_000n);
    expect(partOf("000005000000", "00")).toBe(50_000n);
    expect(partOf("000005000000", "10", mapping)).toBeUndefined();
    // Half a dong, nothing, all of it, and more.
    for (const amount of ["000005000050", "000000000000", "000015000000", "000015000100"]) {
      expect(partOf(amount), amount).toBeUndefined();
      expect(accepting.answer(answer([4, amount], [39, "10"]), request).responseCode).toBe("10");
    }
    expect(partOf("000005000000", "51")).toBeUndefined();
  });

  test("counts a partial approval among the approvals, also if the host's profile names it nowhere", () => {
    const { approvals } = new Mapping({ ...profile, approvals: ["08"] });
    expect([...approvals].sort()).toEqual(["00", "08", "10"]);
  });

  test("translates a host's own codes, and has no outcome for invalid ones", () => {
    const own = new Mapping({ ...profile, responseCodes: { "000": "00", "116": "51" } });
    expect(own.answer(answer([39, "116"]), request).responseCode).toBe("51");
    const unknown = { responseCode: "", isAmbiguous: true };
    expect(own.answer(answer([39, "999"]), request)).toMatchObject(unknown);
    expect(own.answer({ mti: "0210", fields: new Map() }, request)).toMatchObject(unknown);
  });
});

describe("a host of ISO 8583:1993", () => {
  const { SALE, VOID } = profile.messages;
  const sale = {
    mti: "1200",
    fields: { 3: "000000", 4: "{amount}", 11: "{traceNo}", 12: "{localDateTime}", 22: "{entryMode}" },
  };
  const original = "{originalMti}{originalTraceNo}{originalLocalDateTime}06123456";
  const voiding = {
    mti: "1420",
    fields: { ...VOID.fields, 12: "{localDateTime}", 24: "400", 25: "4000", 56: original },
  };
  const later = new Mapping({
    ...profile,
    standard: "1993",
    entryModes: { "": "51010151114C" },
    messages: { ...profile.messages, SALE: { ...SALE, ...sale }, VOID: { ...VOID, ...voiding } },
  });
  const till = new Till();
  const message = till.sale("tok_approve");
  const answered = (code: string, name: "SALE" | "VOID" = "SALE") =>
    later.answer({ mti: "1210", fields: new Map([[39, code]]) }, later.request(message), name).responseCode;

  test("has its message types, its formats, and its times with the year", () => {
    const codec = new Codec(layoutOf({ ...profile, standard: "1993" }));
    const { mti, fields } = codec.unpack(codec.pack(later.request(message)));
    expect([mti, fields.get(12), fields.get(22)]).toEqual(["1200", "260131163001", "51010151114C"]);
    const { fields: ofVoid } = later.request(till.void(message, approval));
    expect(ofVoid.get(56)).toBe("1200000001" + "260131163001" + "06123456");
    expect(later.unmatchedAnswer(isoMessage("1210", { 3: "000000", 11: "000001", 39: "000", 41: "T1" }))).toMatchObject(
      { tid: "T1", responseCode: "00" },
    );
  });

  test("has message types that say who sends them, and a repeat's is one higher", () => {
    const typed = (mti: string) => {
      const json = { ...profile, messages: { ...profile.messages, SALE: { ...SALE, mti } } };
      return new Mapping(readProfile(JSON.stringify(json))).request(again(message)).mti;
    };
    expect([typed("1200"), typed("1204"), typed("0200")]).toEqual(["1201", "1205", "0201"]);
  });

  test("says in codes of its own that totals differ", () => {
    expect(["500", "501", "502", "504"].map((code) => answered(code))).toEqual(["00", "95", "95", "95"]);
  });

  test("is answered with action codes when it asks by itself", () => {
    const codeOf = (mti: string, code: string) => answerWith({ mti, fields: new Map() }, code).fields.get(39);
    expect([codeOf("1804", "00"), codeOf("1420", "00"), codeOf("1200", "00")]).toEqual(["800", "400", "000"]);
    expect([codeOf("1804", "96"), codeOf("1804", "40"), codeOf("1804", "Z9")]).toEqual(["909", "115", "909"]);
    expect(codeOf("0800", "96")).toBe("96");
  });

  test("answers with action codes, of which a profile needs to name only its own", () => {
    expect(["000", "116", "002", "911", "800"].map((code) => answered(code))).toEqual(["00", "51", "10", "68", "00"]);
    expect(answered("999")).toBe("");
  });
});

describe("a field that holds elements", () => {
  const { SALE } = profile.messages;
  const { 48: _48, 62: _62, ...others } = SALE.fields;
  const fields = { ...others, "48.01": "{cardToken}", "48.02": "{expDate}", "62.DF01": "{invoiceNo}" };
  const by = new Mapping({
    ...profile,
    fields: { 62: "b...99" },
    structures: {
      48: { form: "text", tagCharacters: 2, lengthDigits: 2, lengthFirst: false },
      62: { form: "ber", values: "ascii" },
    },
    messages: { ...profile.messages, SALE: { ...SALE, fields } },
    answer: { ...profile.answer, approveCode: "48.38", refId: "62.DF02" },
  });
  const request = by.request(new Till().sale("tok_approve"));

  test("is written with the elements that have a value, and left out if none has one", () => {
    expect(request.fields.get(48)).toBe("0111tok_approve");
    expect(request.fields.get(62)).toBe("DF0106303030303031");
    expect(by.request({ ...new Till().sale("tok_approve"), cardToken: "" }).fields.has(48)).toBe(false);
  });

  test("is read by its elements in an answer", () => {
    const answered = isoMessage("0210", { 39: "00", 48: "0201x3806A1B2C3", 62: "DF0203523132" });
    expect(by.answer(answered, request)).toMatchObject({ approveCode: "A1B2C3", refId: "R12" });
    const without = isoMessage("0210", { 39: "00", 48: "38" });
    expect(by.answer(without, request)).toMatchObject({ approveCode: "", refId: "" });
  });
});

describe("a message with response codes of its own", () => {
  test("has them first, then the profile's", () => {
    const own = { ...profile.messages.VOID, responseCodes: { "21": "00" } };
    const by = new Mapping({
      ...profile,
      responseCodes: { "21": "12", A1: "05" },
      messages: { ...profile.messages, VOID: own },
    });
    const request = by.request(new Till().sale("tok_approve"));
    const codeOf = (code: string, name: "SALE" | "VOID") =>
      by.answer({ mti: "0210", fields: new Map([[39, code]]) }, request, name).responseCode;
    expect([codeOf("21", "SALE"), codeOf("21", "VOID"), codeOf("A1", "VOID")]).toEqual(["12", "00", "05"]);
  });
});

describe("an answer that nobody waits for", () => {
  const till = new Till();
  const sale = till.sale("tok_approve");
  const answerTo = (message: AcquirerMessage, code: string) => {
    const { mti, fields } = mapping.request(message);
    return { mti: `${mti.slice(0, 2)}${Number(mti[2]) + 1}0`, fields: new Map([...fields, [39, code] as const]) };
  };

  test("is one of the message that it repeats, also if it leaves fields 3, 7 and 42 out", () => {
    const stray = mapping.unmatchedAnswer(answerTo(sale, "00"));
    expect(stray).toMatchObject({ tid: sale.tid, responseCode: "00" });
    expect(stray?.known).toMatchObject({ mti: "0210", field11: sale.traceNo, field41: sale.tid, field42: sale.mid });
    const short = answerTo(sale, "00");
    for (const field of [3, 7, 42]) short.fields.delete(field);
    for (const one of [stray, mapping.unmatchedAnswer(short)]) {
      expect(one?.mayAnswer(sale)).toBe(true);
      expect(one?.mayAnswer({ ...sale, traceNo: "000999" })).toBe(false);
      expect(one?.mayAnswer({ ...sale, tid: "T0000099" })).toBe(false);
      expect(one?.mayAnswer({ ...sale, currency: "THB" })).toBe(false);
    }
    expect(stray?.mayAnswer({ ...sale, atMs: sale.atMs + 1_000 })).toBe(false);
    expect(stray?.mayAnswer({ ...sale, mid: "M00000000000099" })).toBe(false);
    expect(stray?.mayAnswer({ ...sale, command: "PREAUTH" })).toBe(false);
  });

  test("needs no more of a Void than the ledger keeps, and may answer a repeat", () => {
    const voided = till.void(sale, approval);
    const { original: _, ...asked } = { ...voided, command: "SALE" as const };
    const stray = mapping.unmatchedAnswer(answerTo(voided, "00"));
    expect(stray?.mayAnswer({ ...asked, command: "VOID" } as unknown as typeof sale)).toBe(true);
    expect(stray?.mayAnswer(asked as unknown as typeof sale)).toBe(false);
    expect(mapping.unmatchedAnswer(answerTo(again(sale), "00"))?.mayAnswer(sale)).toBe(true);
  });

  test("to a Settlement is that of one, before or after its upload, and has what the acquirer says of it", () => {
    const [settlement, after] = [till.settlement(emptyTotals), { ...till.settlement(emptyTotals), afterUpload: true }];
    const answered = answerTo(after, "00");
    answered.fields.set(37, "000000000510").set(15, "1231");
    const stray = mapping.unmatchedAnswer(answered);
    expect(stray).toMatchObject({ isSettlement: true, refId: "000000000510", settlementDate: "1231" });
    expect(stray?.mayAnswer({ ...after, totals: { ...emptyTotals, saleQuantity: 7 } })).toBe(true);
    expect([settlement, sale, { ...after, traceNo: "000999" }].some((one) => stray?.mayAnswer(one))).toBe(false);
    expect(mapping.unmatchedAnswer(answerTo(sale, "00"))?.isSettlement).toBe(false);
  });

  test("is none to what moves no money, and is that of no message if it repeats no trace number", () => {
    expect(mapping.unmatchedAnswer(answerTo(till.reversal(sale), "00"))).toBeUndefined();
    expect(mapping.unmatchedAnswer(answerTo(till.logon(), "00"))).toBeUndefined();
    const nameless = answerTo(sale, "00");
    nameless.fields.delete(11);
    expect(mapping.unmatchedAnswer(nameless)?.mayAnswer(sale)).toBe(false);
  });
});
