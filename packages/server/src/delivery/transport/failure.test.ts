import { expect, test } from "vitest";
import { exchangeFailure, isReset } from "./failure.ts";

test.each([
  ["ECONNRESET", true, "reset"],
  ["EPIPE", true, "reset"],
  ["ECONNABORTED", true, "reset"],
  ["UND_ERR_SOCKET", true, "reset"],
  ["EACCES", false, "internal"],
])("%s is the end of a connection, after which a POST may be sent again: %s", (code, ends, reason) => {
  const error = Object.assign(new Error("write failed"), { code });
  expect(isReset(error)).toBe(ends);
  expect(exchangeFailure(error)).toMatchObject({ reason });
});
