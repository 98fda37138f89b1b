import { describe, expect, test } from "vitest";
import { overlapHours } from "../cryptography/keys.ts";
import {
  aids,
  cardSchemeFor,
  cardSchemes,
  contradicts,
  currencies,
  currencyDecimals,
  paymentTypes,
  responseCodes,
  responseMeaning,
  statuses,
  swipeTypes,
  transactionTypes,
} from "./codes.ts";
import { commands, notifiedCommands, systemCommands } from "./commands.ts";
import { cardIpnFields } from "./fields.ts";

describe("the code tables", () => {
  test("divide the commands into those that are notified and those that never are", () => {
    expect([...notifiedCommands, ...systemCommands]).toEqual(commands);
  });

  test("match the values of the field table", () => {
    const values = Object.fromEntries(
      cardIpnFields.map((field) => [field.name, "values" in field ? field.values : []]),
    );
    expect(values["cardScheme"]).toEqual(cardSchemes);
    expect(values["paymentType"]).toEqual(paymentTypes);
    expect(values["status"]).toEqual(statuses);
    expect(values["transaction_type"]).toEqual(transactionTypes);
    expect(values["swipeType"]).toEqual(swipeTypes.map(({ code }) => code));
  });
});

test("both versions of a rotated key are valid for a day, and for thirty at most", () => {
  expect(overlapHours).toEqual({ initial: 24, max: 720 });
});

describe("an AID", () => {
  test("in the table of section 2.4 has the table's scheme", () => {
    expect(aids.map(({ aid }) => `${aid} ${cardSchemeFor(aid)}`)).toEqual([
      ...["A0000000031010 VISA", "A00000000401 MASTER", "A0000000651010 JCB"],
      ...["A000000333010101 UPI", "A000000333010102 UPI", "A0000000250000 AMEX"],
    ]);
  });

  test("outside the table has its RID's scheme, in either case", () => {
    expect(cardSchemeFor("a0000000032010")).toBe("VISA");
    expect(cardSchemeFor("A0000000041010")).toBe("MASTER");
    expect(cardSchemeFor("A000000333010103")).toBe("UPI");
  });

  test.each(["", "A0000", "A0000001523010", "visa"])(
    "that we do not know, %j, has no scheme and contradicts none",
    (aid) => {
      expect(cardSchemeFor(aid)).toBe("");
      expect(contradicts(aid, "VISA")).toBe(false);
    },
  );

  test("contradicts every scheme but its own", () => {
    expect(cardSchemes.filter((scheme) => contradicts("A0000000031010", scheme))).toEqual([
      "JCB",
      "MASTER",
      "AMEX",
      "UPI",
    ]);
    expect(contradicts("A0000000031010", "Visa")).toBe(false);
    expect(contradicts("A0000000031010", "")).toBe(false);
  });
});

describe("a response code", () => {
  test("has two digits and one meaning, in order", () => {
    const codes = responseCodes.map(({ code }) => code);
    expect(codes).toEqual([...new Set(codes)].sort());
    for (const { code, meaning } of responseCodes) {
      expect(code).toMatch(/^[0-9]{2}$/);
      expect(responseMeaning(code)).toBe(meaning);
    }
  });

  test("outside the table is an error as well", () => {
    expect(responseMeaning("ZZ")).toBe("Error with a code that ISO 8583 does not list");
  });
});

describe("a currency", () => {
  test("has the decimals of ISO 4217, which are two but for these", () => {
    const others = [...currencies].filter(([, decimals]) => decimals !== 2);
    const codes = (decimals: number) => others.flatMap(([code, its]) => (its === decimals ? [code] : [])).join(" ");
    expect(codes(0)).toBe("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF");
    expect(codes(3)).toBe("BHD IQD JOD KWD LYD OMR TND");
    expect(codes(4)).toBe("CLF UYW");
    expect(others).toHaveLength(26);
    expect(currencyDecimals("IDR")).toBe(2);
  });

  test.each(["", "usd", "XAU", "XXX", "HRK", "BGN", "ANG", "toString"])(
    "%j is none that a terminal can take",
    (code) => {
      expect(currencyDecimals(code)).toBeUndefined();
    },
  );

  test("is among the 165 current codes of ISO 4217 that have a minor unit", () => {
    expect(currencies.size).toBe(165);
    for (const code of currencies.keys()) expect(code).toMatch(/^[A-Z]{3}$/);
  });
});
