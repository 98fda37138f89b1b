import { EventEmitter } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { expect, test } from "vitest";
import { ConfigError } from "../config/config.ts";
import { createLog } from "../telemetry/log.ts";
import { endAtUnhandled, guarded, stopSignalsOf } from "./process.ts";

test("a Ctrl-C that npm passes on as well is one; another one, or another signal, is the second", async () => {
  for (const [signal, afterMs, isSecond] of [
    ["SIGINT", 499, false],
    ["SIGINT", 500, true],
    ["SIGTERM", 0, true],
  ] as const) {
    const process = new EventEmitter() as NodeJS.Process;
    let nowMs = 1_000;
    const { first, second, release } = stopSignalsOf(process, () => nowMs);
    process.emit("SIGINT", "SIGINT");
    nowMs += afterMs;
    process.emit(signal, signal);
    expect(await first).toBe("SIGINT");
    expect(await Promise.race([second, Promise.resolve("none")])).toBe(isSecond ? signal : "none");
    release();
    expect(process.eventNames()).toEqual([]);
  }
});

test.each([
  [new Error("it is away."), "failed", "paybell: it is away.\n"],
  [new ConfigError(["A is wrong.", "B too."]), "bad_configuration", "paybell: A is wrong.\npaybell: B too.\n"],
])(
  "a command that fails by %s prints sentences, and with --json the error as every other command",
  async (error, code, text) => {
    for (const argv of [
      ["paybell", "migrate"],
      ["paybell", "migrate", "--json"],
    ]) {
      const [stdout, stderr] = [new PassThrough(), new PassThrough({ encoding: "utf8" })];
      const process = Object.assign(new EventEmitter(), { argv, stdout, stderr }) as unknown as NodeJS.Process;
      expect(await guarded(process, () => Promise.reject(error))).toBe(1);
      const printed = String(stderr.read());
      if (argv.includes("--json"))
        expect(JSON.parse(printed)).toEqual({ error: { code, message: text.replaceAll("paybell: ", "").trim() } });
      else expect(printed).toBe(text);
    }
  },
);

test("an error that nothing handles is logged without secrets, and ends the process with 1", () => {
  const codes: unknown[] = [];
  const ended = Object.assign(new EventEmitter(), { exit: (code: number) => void codes.push(code) });
  let text = "";
  const stream = new Writable({
    write(line, _encoding, done) {
      text += String(line);
      done();
    },
  });
  endAtUnhandled(ended as unknown as NodeJS.Process, createLog("info", stream));
  const error = Object.assign(new Error("it broke near whsec_abcdefghijklmnopqrstuvwx"), { apiKey: "pb_secret" });
  ended.emit("uncaughtException", error, "unhandledRejection");
  expect(codes).toEqual([1]);
  expect(JSON.parse(text)).toMatchObject({
    msg: "an error was not handled: the process ends",
    origin: "unhandledRejection",
    err: { message: "it broke near [removed]" },
  });
  expect(text).not.toContain("pb_secret");
});
