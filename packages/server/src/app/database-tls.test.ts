import { expect, test } from "vitest";
import { isUnverifiedRemote } from "./database-tls.ts";

test.each([
  "postgres://paybell@db.internal/paybell",
  "postgres://paybell:secret@10.0.0.5:5432/paybell",
  "postgresql://paybell@db.internal/paybell?sslmode=require",
  "postgres://paybell@db.internal/paybell?sslmode=disable",
  "postgres://paybell@/paybell?host=db.internal",
  "postgres://paybell@127.0.0.1.example/paybell",
])("a remote database without verified TLS is known as such: %s", (url) => {
  expect(isUnverifiedRemote(url)).toBe(true);
});

test.each([
  "postgres://paybell@db.internal/paybell?sslmode=verify-full",
  "postgres://paybell@localhost/paybell",
  "postgres://paybell@127.0.0.1:5433/paybell",
  "postgres://paybell@[::1]/paybell",
  "postgres://paybell@/paybell?host=/run/postgresql",
  "postgresql:///paybell?host=/run/postgresql",
])("any other needs no warning: %s", (url) => {
  expect(isUnverifiedRemote(url)).toBe(false);
});
