import { createSecretKey, randomBytes } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { expect, test } from "vitest";
import { SealedCookie } from "./sealed-cookie.ts";

const key = createSecretKey(randomBytes(32));
const cookieNamed = (name: string, of = key) => new SealedCookie<object>(of, { name, path: "/", sameSite: "strict" });
const request = (cookie: string) => ({ headers: { cookie }, hostname: "paybell.example" }) as FastifyRequest;
const sealed = cookieNamed("one").write(request(""), { token: "secret" }, 60).split(";")[0]?.slice("one=".length) ?? "";

test("a sealed cookie is read under its own name, and shows nothing of its value", () => {
  expect(cookieNamed("one").read(request(`one=${sealed}`))).toEqual({ token: "secret" });
  expect(Buffer.from(sealed, "base64url").toString("latin1")).not.toContain("secret");
});

test("a sealed cookie is not read under another name, by another key, or changed in any byte", () => {
  expect(cookieNamed("two").read(request(`two=${sealed}`))).toBeUndefined();
  expect(cookieNamed("one", createSecretKey(randomBytes(32))).read(request(`one=${sealed}`))).toBeUndefined();
  const bytes = Buffer.from(sealed, "base64url");
  for (const at of bytes.keys()) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    expect(cookieNamed("one").read(request(`one=${changed.toString("base64url")}`))).toBeUndefined();
  }
  for (const wrong of ["", "x", sealed.slice(0, 20), "%00"]) {
    expect(cookieNamed("one").read(request(`one=${wrong}`))).toBeUndefined();
  }
});
