import { expect, test } from "vitest";
import { withoutPassword } from "./take.ts";

test.each([
  ["postgres://u@db.example/d", "postgres://u@db.example/d", undefined],
  ["postgres://u:plain@db.example:5432/d?sslmode=require", "postgres://u@db.example:5432/d?sslmode=require", "plain"],
  ["postgres://u:S3cr%40t@db.example/d", "postgres://u@db.example/d", "S3cr@t"],
  ["postgres://u:S3cr@t9@db.example/d", "postgres://u@db.example/d", "S3cr@t9"],
  ["postgres://u:100%@db.example/d", "postgres://u@db.example/d", "100%"],
  ["postgres://u@db.example/d?password=Qs%20t&sslmode=require", "postgres://u@db.example/d?sslmode=require", "Qs t"],
  ["postgres://db.example/d?user=u&password=Qs", "postgres://db.example/d?user=u", "Qs"],
  ["postgres://u:p@db.example/d?application_name=a@b", "postgres://u@db.example/d?application_name=a@b", "p"],
])("the program that copies %s gets the password in its environment only", (url, target, password) => {
  expect(withoutPassword(url)).toEqual({ target, password });
});
