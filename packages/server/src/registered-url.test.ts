import { describe, expect, test } from "vitest";
import {
  queueOf,
  registeredQueue,
  registeredRoutes,
  registeredUrl,
  registeredUrls,
  urlOfQueue,
} from "./registered-url.ts";

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

describe("the queue of a registered URL", () => {
  test("is shared by the commands that have it, in whichever order they were named", () => {
    expect([registeredQueue(urls, "SALE"), registeredQueue(urls, "VOID")]).toEqual(["SALE", "SALE"]);
    expect([registeredQueue(urls, "SETTLEMENT"), registeredQueue(urls, "PREAUTH")]).toEqual(["SETTLEMENT", ""]);
    expect(registeredQueue({ ...urls, callBackUrlByCommand: { SALE: others } }, "SALE")).toBe("");
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

test("a new notification with a URL of its own is queued by its origin, whatever is registered", () => {
  const own = { callBackUrl: "https://own.example:8443/x?y", command: "SALE" } as const;
  expect([queueOf(own, urls), queueOf({ ...own, callBackUrl: null }, urls)]).toEqual([
    "https://own.example:8443",
    "SALE",
  ]);
  expect(queueOf({ ...own, callBackUrl: null }, undefined)).toBe("");
});
