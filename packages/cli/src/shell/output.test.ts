import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { progress } from "./output.ts";

function terminal(isTTY: boolean) {
  let nowMs = 0;
  const stderr = Object.assign(new PassThrough(), { isTTY, columns: 80 });
  let text = "";
  stderr.on("data", (chunk) => {
    text += chunk;
  });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { stderr, nowMs: () => nowMs, pass, text: () => text };
}

test("a bar comes once the work takes a while, and is taken away", () => {
  const context = terminal(true);
  const bar = progress(context, "redelivering", 10);
  bar.update(1);
  expect(context.text()).toBe("");
  context.pass(500);
  bar.update(5);
  expect(context.text()).toContain("5/10");
  bar.stop();
});

test("neither cursor nor line wrap are switched off: Ctrl-C could leave them so", () => {
  const context = terminal(true);
  const bar = progress(context, "reading");
  context.pass(500);
  bar.update(7);
  bar.stop();
  expect(context.text()).toContain("reading  7");
  for (const code of ["[?25l", "[?7l"]) expect(context.text()).not.toContain(code);
});

test("nothing is written if stderr is not a terminal", () => {
  const context = terminal(false);
  const bar = progress(context, "reading", 10);
  context.pass(500);
  bar.update(5);
  bar.stop();
  expect(context.text()).toBe("");
});
