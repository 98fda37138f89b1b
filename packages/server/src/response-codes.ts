// The response codes of ISO 8583:1987 (field 39) that decide something; the contract has the meanings of all.

/** The only success, to a partner; which codes of a host approve is its profile's `approvals`, and `judge` (commands/outcome.ts) decides. */
export const approvedCode = "00";
/** Approved for another amount than was asked. */
export const partialCode = "10";
/** No such record: the host that answers does not know the original, now. */
export const unknownCode = "25";
/** Ours, of a command that was not answered in time. */
export const noAnswerCode = "68";
/** Ours, of a command that certainly did not leave. */
export const notSentCode = "91";
/** A duplicate: the host has the message already. */
export const duplicateCode = "94";
/** The totals of a Settlement are not the acquirer's. */
export const totalsDifferCode = "95";
/** It cannot be carried out, or what became of it is not known. */
export const malfunctionCode = "96";

export const responseCodePattern = /^[0-9A-Z]{2}$/;

/**
 * Action codes of ISO 8583:1993 and 2003, three digits, with the equivalent response code of ISO 8583:1987. A
 * conditional approval remains one: 08, 10, 11 and 16 are known as such.
 */
const codes: Readonly<Record<string, string>> = {
  "00": "000 300 400 500 800 900",
  "01": "107",
  "02": "108",
  "03": "109",
  "04": "200",
  "05": "100 129 180",
  "07": "207",
  "08": "001",
  "09": "923",
  "10": "002",
  "11": "003",
  "12": "902",
  "13": "110",
  "14": "111 125",
  "16": "004",
  "19": "903",
  "23": "113",
  "25": "914",
  "30": "904",
  "31": "905",
  "33": "201",
  "34": "202 210",
  "35": "203",
  "36": "204",
  "37": "205",
  "38": "206",
  "40": "115",
  "41": "208",
  "43": "209",
  "51": "116",
  "52": "114",
  "54": "101",
  "55": "112 117",
  "56": "118",
  "57": "119",
  "58": "120",
  "59": "102",
  "60": "103",
  "61": "121",
  "62": "104",
  "63": "122 916",
  "65": "123",
  "66": "105",
  "68": "911",
  "75": "106",
  "81": "126 127",
  "90": "906 915",
  "91": "907 910 912",
  "92": "908",
  "93": "124",
  "94": "913",
  "95": "501 502 504",
  "96": "909 921",
};

const codeOf: ReadonlyMap<string, string> = new Map(
  Object.entries(codes).flatMap(([code, actions]) =>
    actions.split(" ").map((action): [string, string] => [action, code]),
  ),
);

/** Message classes whose approvals begin with a digit of their own, such as reversals and network messages. */
const ownApprovals = /^.[3-8]/;

/**
 * The action code for a response code in the answer to a message of this type; a response code that has none is a
 * malfunction, and an action code is returned unchanged.
 */
export function actionCodeOf(responseCode: string, mti: string): string {
  if (/^\d{3}$/.test(responseCode)) return responseCode;
  if (responseCode === approvedCode) return ownApprovals.test(mti) ? `${mti.charAt(1)}00` : "000";
  return (codes[responseCode] ?? codes[malfunctionCode] ?? "").slice(0, 3);
}

/** The response code for an action code; one that is not in the table is returned unchanged. */
export function responseCodeOf(actionCode: string): string {
  return codeOf.get(actionCode) ?? actionCode;
}
