import type { NotifiedCommand } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import {
  callbackUrlOf,
  isRegistered,
  queueOf,
  type RegisteredUrls,
  registeredRoutes,
  registeredUrl,
  registeredUrls,
  urlOfQueue,
} from "./notification.ts";

const [tills, books, others] = ["https://tills.example/ipn", "https://books.example/ipn", "https://shop.example/ipn"];
const urls = { callBackUrl: others, callBackUrlByCommand: { VOID: tills, SALE: tills, SETTLEMENT: books } };

test("a command's URL is its own, otherwise callBackUrl", () => {
  expect([registeredUrl(urls, "SALE"), registeredUrl(urls, "PREAUTH"), registeredUrl(urls, "LOGON")]).toEqual([
    tills,
    others,
    others,
  ]);
  expect(registeredUrl({ ...urls, callBackUrl: null }, "PREAUTH")).toBeNull();
  expect(registeredUrls({ ...urls, callBackUrlByCommand: { SALE: others, VOID: tills } })).toEqual([others, tills]);
});

const own = { callBackUrl: "https://own.example:8443/x?y", command: "SALE" } as const;

test("an attempt goes to the command's own URL, unless a redelivery asks for the registered one", () => {
  expect(callbackUrlOf(own, urls)).toBe(own.callBackUrl);
  expect(callbackUrlOf({ ...own, toRegistered: true }, urls)).toBe(tills);
  expect(callbackUrlOf({ ...own, callBackUrl: null }, urls)).toBe(tills);
  expect([isRegistered(urls, tills), isRegistered(urls, `${tills}/`)]).toEqual([true, false]);
});

describe("the queue of a registered URL", () => {
  const queueAt = (command: NotifiedCommand, registered: RegisteredUrls = urls) =>
    queueOf({ command, callBackUrl: null }, registered);

  test("is shared by the commands that have it, in whichever order they were named", () => {
    expect([queueAt("SALE"), queueAt("VOID")]).toEqual(["SALE", "SALE"]);
    expect([queueAt("SETTLEMENT"), queueAt("PREAUTH")]).toEqual(["SETTLEMENT", ""]);
    expect(queueAt("SALE", { ...urls, callBackUrlByCommand: { SALE: others } })).toBe("");
    expect(queueAt("PREAUTH", { ...urls, callBackUrl: null })).toBe("");
  });

  test("is that of commands which bring the same URL", () => {
    expect(queueOf({ ...own, callBackUrl: others }, urls)).toBe("");
    expect(queueOf({ ...own, callBackUrl: books }, urls)).toBe("SETTLEMENT");
  });

  test("leads to the URL that is registered now, also after it was changed or removed", () => {
    expect(urlOfQueue(urls, "SALE")).toBe(tills);
    expect(urlOfQueue({ ...urls, callBackUrlByCommand: { SALE: books } }, "SALE")).toBe(books);
    expect(urlOfQueue({ ...urls, callBackUrlByCommand: {} }, "SALE")).toBe(others);
    expect(urlOfQueue({ ...urls, callBackUrl: null }, "")).toBeNull();
    expect(urlOfQueue(urls, "https://shop.example")).toBeUndefined();
  });

  test("is stored with its URL's origin, for each command that has one", () => {
    expect(registeredRoutes(urls)).toEqual({
      SALE: { queue: "SALE", origin: "https://tills.example" },
      VOID: { queue: "SALE", origin: "https://tills.example" },
      SETTLEMENT: { queue: "SETTLEMENT", origin: "https://books.example" },
    });
  });
});

test("a notification with another URL of its own is queued by its origin", () => {
  expect(queueOf(own, urls)).toBe("https://own.example:8443");
  expect(queueOf({ ...own, toRegistered: true }, urls)).toBe("SALE");
  expect([queueOf(own), queueOf({ ...own, callBackUrl: null })]).toEqual(["https://own.example:8443", ""]);
});
