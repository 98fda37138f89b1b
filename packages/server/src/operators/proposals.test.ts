import { expect, test } from "vitest";
import { areTwoPeople } from "./proposals.ts";

const token = (name: string, tokenId: string) => ({ name, tokenId, subject: null });
const identity = (sub: string, tokenId: string, issuer = "https://login.example") => ({
  ...{ name: `${sub} (OIDC)`, tokenId, subject: `${issuer} ${sub}` },
});

test.each([
  ["two tokens of different names", token("Ada", "1"), token("Grace", "2"), true],
  ["two tokens of one name", token("Ada", "1"), token("Ada", "2"), false],
  ["two tokens of names that look the same", token("Ada  L", "1"), token("\u200b\uff41da l ", "2"), false],
  ["one token", token("Ada", "1"), token("Ada", "1"), false],
  ["one token that was renamed", token("Ada", "1"), token("Grace", "1"), false],
  ["two identities", identity("ada", "1"), identity("grace", "2"), true],
  ["two identities of one name", { ...identity("a", "1"), name: "A" }, { ...identity("b", "2"), name: "A" }, true],
  ["one identity in two sessions", identity("ada", "1"), identity("ada", "2"), false],
  ["identities of two providers", identity("ada", "1"), identity("grace", "2", "https://other.example"), false],
  ["an identity and a token", identity("ada", "1"), token("Grace", "2"), false],
  ["an identity and a token of its name", identity("Ada", "1"), token("Ada (OIDC)", "2"), false],
])("%s: whether they are two people", (_, one, other, are) => {
  expect([areTwoPeople(one, other), areTwoPeople(other, one)]).toEqual([are, are]);
});
