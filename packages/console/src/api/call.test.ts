import { afterEach, expect, test, vi } from "vitest";
import { api, CallError } from "./call.ts";
import { operations } from "./operations.ts";

afterEach(() => vi.unstubAllGlobals());

test("a call that got no answer promises no retry: a change may have been made", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("fetch failed")));
  const problemOf = async (call: Promise<unknown>) => {
    const error = await call.catch((problem: unknown) => problem);
    if (!(error instanceof CallError)) throw new Error("the call did not fail as expected");
    return [error.message, error.remedy];
  };
  expect(await problemOf(api.pausePartner("p"))).toEqual([
    "The service cannot be reached.",
    "It is not known whether the change was made: check before you try again.",
  ]);
  expect(await problemOf(api.getSession())).toEqual([
    "The service cannot be reached.",
    "Check your connection, then try again.",
  ]);
});

test("operations that the audit records are marked: neither those that only read, nor those of the ledger", () => {
  const marked = (name: string) => operations[name]?.[3] === "audited";
  expect(["rotateKey", "readNotification", "sendTestNotification", "inspectEvent"].map(marked)).toEqual(
    Array(4).fill(true),
  );
  expect(["searchNotifications", "runSandboxCommand", "searchAudit"].map(marked)).toEqual(Array(3).fill(false));
});
