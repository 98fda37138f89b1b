import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { copyWithoutCardData, csvCutter, fixedCutter, jsonCutter, withMaskedCards } from "./card-data.ts";

const pan = fc.constantFrom("4111111111111111", "5555555555554444", "378282246310005", "6304000000000000");
const digits = fc.string({ unit: fc.constantFrom(..."0123456789"), maxLength: 25 });

function kept(cutter: ReturnType<typeof fixedCutter>, line: string): string {
  return [...cutter(line)].join("");
}

test("no line of fixed columns keeps a card number, and each keeps its width", () => {
  fc.assert(
    fc.property(digits, pan, digits, (before, card, after) => {
      const line = `A${before}${card}${after}Z`;
      const masked = kept(fixedCutter([{ from: 1, length: 1 }]), line);
      expect(masked).not.toContain(card);
      expect(masked).toHaveLength(line.length);
      expect(masked.replaceAll(/\*/g, "")).toHaveLength(line.length - (masked.split("*").length - 1));
    }),
    { examples: [["7", "4222222222222", ""]] },
  );
});

test("no cell of CSV keeps a card number, and the other cells stay as they are", () => {
  const cell = fc.string({ unit: fc.constantFrom(...'ab 1;,é"') }).map((text) => `"${text.replaceAll('"', '""')}"`);
  fc.assert(
    fc.property(fc.array(cell), pan, fc.array(cell), (before, card, after) => {
      const line = (middle: string) => [...before, middle, ...after].join(";");
      const cutter = csvCutter({ delimiter: ";", headerLine: 0, keepOf: withMaskedCards });
      expect(kept(cutter, line(card))).toBe(
        line(`${card.slice(0, 6)}${"*".repeat(card.length - 10)}${card.slice(-4)}`),
      );
      expect(kept(cutter, line("4111111111111112"))).toBe(line("4111111111111112"));
    }),
  );
});

test("no report in JSON keeps a card number, be it a value or a name, at any depth", () => {
  for (const line of ['{"note":["paid by 4111111111111111"]}', '{"more":{"4111111111111111":1}}', "4111111111111111"])
    expect(kept(jsonCutter, line)).not.toContain("411111");
  expect(kept(jsonCutter, '{ "refId": "000123456789" }')).toBe('{ "refId": "000123456789" }');
});

test("a copy lets the event loop serve others between the parts of a line", async () => {
  const folder = temporaryFolder();
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  await writeFile(from, "4111111111111111".repeat(500));
  let turns = 0;
  let isOver = false;
  const next = () => {
    turns += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  const cutter = fixedCutter([]);
  // Each part takes as long as a turn may.
  const slow = function* parts(line: string) {
    for (const part of cutter(line)) {
      if (part === "") for (const end = performance.now() + 0.02; performance.now() < end; );
      yield part;
    }
  };
  const { isCut } = await copyWithoutCardData(from, to, { cutter: slow, lineBytesMax: 8 * 1024 });
  isOver = true;
  expect(isCut).toBe(true);
  // They are one chunk of the file: without turns of its own, its copy would take few.
  expect(turns).toBeGreaterThan(15);
  expect(await readFile(to, "utf8")).not.toContain("4111111111111111");
});
