import { randomBytes } from "node:crypto";
import { seal, sealingKey, sealings } from "@paybell/contract";
import { expect, test } from "vitest";
import { FieldError } from "../api/call.ts";
import { openSealed } from "./opening.ts";

const key = randomBytes(32);
const text = JSON.stringify({ cardHolder: "NGUYỄN VĂN A", extraData: "x".repeat(40) });
const problem = (of: Promise<unknown>) => of.catch((error: unknown) => error);

test.each(sealings)("the browser opens $cipher in $encoding, and with no other key", async (sealing) => {
  const data = seal(text, sealing, sealingKey("v1", key));
  const sealed = { data, ...sealing, headers: {}, encryptionKeyId: "v1" };
  expect(await openSealed(sealed, ` ${key.toString("base64")}\n`)).toBe(text);
  const others = [randomBytes(32).toString("base64"), key.subarray(1).toString("base64"), key.toString("hex"), ""];
  for (const other of others) {
    const error = await problem(openSealed(sealed, other));
    expect(error).toBeInstanceOf(FieldError);
    expect(error).toMatchObject({
      fields: { key: expect.stringMatching(/does not open it|is not an encryption key/) },
    });
    if (other !== "") expect((error as FieldError).message).not.toContain(other);
  }
});

test("what is not sealed as agreed is not opened, whoever sent it", async () => {
  for (const sealing of sealings) {
    const sealed = { data: "%", ...sealing, headers: {}, encryptionKeyId: "v1" };
    expect(await problem(openSealed(sealed, key.toString("base64")))).toBeInstanceOf(FieldError);
  }
});
