import { type Command, commands, ipnFields } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import { completionFields, completionKind } from "../reports/completion.ts";
import { type RequestField, requestFields } from "./request.ts";

const fieldsOf = (command: Command): readonly RequestField[] => requestFields[command];
const names = (command: Command, required: boolean) =>
  fieldsOf(command)
    .filter((field) => field.required === required)
    .map((field) => field.name);

describe("the fields of a command", () => {
  test.each([
    ["SALE", ["amount", "currency", "tid", "mid", "merchantTransId", "card"]],
    ["PREAUTH", ["amount", "currency", "tid", "mid", "merchantTransId", "card"]],
    ["VOID", ["transactionId"]],
    ["PREAUTH_COMPLETE", ["transactionId", "amount"]],
    ["REFUND", ["transactionId", "amount"]],
    ["SETTLEMENT", ["tid", "mid"]],
    ["LOGON", ["tid", "mid"]],
    ["REVERSAL", []],
    ["BATCH_UPLOAD", ["tid", "mid"]],
  ] as const)("%s requires %j", (command, required) => {
    expect(names(command, true)).toEqual(required);
  });

  test.each([
    ["SALE", ["billId", "paymentType", "allowPartial", "extraData", "deviceId", "appName", "callBackUrl"]],
    ["VOID", ["merchantTransId", "billId", "extraData", "deviceId", "appName", "callBackUrl"]],
    ["PREAUTH_COMPLETE", ["merchantTransId", "billId", "extraData", "deviceId", "appName", "callBackUrl", "tid"]],
    ["REFUND", ["merchantTransId", "billId", "extraData", "deviceId", "appName", "callBackUrl", "tid"]],
    ["SETTLEMENT", ["merchantTransId", "extraData", "deviceId", "appName", "callBackUrl"]],
    ["REVERSAL", ["transactionId", "originalReqId"]],
    ["LOGON", []],
  ] as const)("%s also takes %j", (command, optional) => {
    expect(names(command, false)).toEqual(optional);
  });

  test.each(commands)("of %s each have one name, a bound and a meaning", (command) => {
    const fields = fieldsOf(command).flatMap((field): readonly RequestField[] =>
      field.type === "object" ? field.fields : [field],
    );
    const paths = fieldsOf(command).map((field) => field.name);
    expect(new Set(paths).size).toBe(paths.length);
    for (const field of fields) {
      if (field.type === "string") expect(field.maxLength).toBeGreaterThan(0);
      expect(field.meaning).not.toBe("");
    }
  });
});

describe("the fields of a report", () => {
  test.each(["card", "settlement"] as const)("of a %s are all those of its table but the signature", (kind) => {
    const reported = completionFields[kind].map((field) => field.name);
    const table = ipnFields(kind).map((field) => field.name);
    expect(reported).toEqual(expect.arrayContaining(table.filter((name) => name !== "signature")));
    expect(reported).not.toContain("signature");
    expect(new Set(reported).size).toBe(reported.length);
  });

  test("are the settlement table's for a Settlement, the card table's for every other command", () => {
    expect(commands.filter((command) => completionKind(command) === "settlement")).toEqual(["SETTLEMENT"]);
  });
});
