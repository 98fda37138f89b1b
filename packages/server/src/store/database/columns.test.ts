import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { booleanArray, bytesArray, doubleArray, integerArray, jsonArray, textArray, uuidArray } from "./columns.ts";

const connections = await openTestDatabase();
const client = await connections.connectDirectly();

afterAll(async () => {
  await client.end();
});

async function readBack(type: string, parameter: unknown): Promise<unknown> {
  const { rows } = await client.query<{ element: unknown }>({
    name: `read_${type}`,
    text: `SELECT element FROM unnest($1::${type}[]) WITH ORDINALITY AS i (element, nth) ORDER BY nth`,
    values: [parameter],
  });
  return rows.map(({ element }) => element);
}

// PostgreSQL's text stores everything but NUL and lone surrogates; both are refused at intake.
const text = fc.string({ unit: "binary", maxLength: 40 }).map((value) => value.replaceAll("\0", ""));
// Equal neighbours take another code path.
const fewUuids = ["01890a5d-ac96-774b-bcce-b302099a8057", "ffffffff-0000-4000-8000-0123456789ab"];
const orNull = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: null });

const uuid = fc.oneof(fc.uuid(), fc.constantFrom(...fewUuids));

const columns: readonly [string, fc.Arbitrary<readonly unknown[]>, (values: never) => unknown][] = [
  ["uuid", fc.array(orNull(uuid)), uuidArray],
  ["text", fc.array(orNull(text)), textArray],
  ["integer", fc.array(orNull(fc.integer())), integerArray],
  ["double precision", fc.array(orNull(fc.double({ noNaN: true }))), doubleArray],
  ["boolean", fc.array(fc.boolean()), booleanArray],
  ["bytea", fc.array(orNull(fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)))), bytesArray],
];

for (const [type, values, build] of columns) {
  test(`a column of ${type} arrives unchanged`, async () => {
    await fc.assert(
      fc.asyncProperty(values, async (given) => {
        expect(await readBack(type, build(given as never))).toEqual(given);
      }),
      { numRuns: 200 },
    );
  });
}

test("a column of JSON arrives unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ a: text, b: fc.array(fc.integer()) })), async (given) => {
      expect(await readBack("json", jsonArray(given.map((value) => JSON.stringify(value))))).toEqual(given);
    }),
    { numRuns: 200 },
  );
});

test("a uuid in capitals arrives as PostgreSQL writes it", async () => {
  const given = ["01890A5D-AC96-774B-BCCE-B302099A8057", null, "01890A5D-AC96-774B-BCCE-B302099A8057"];
  expect(await readBack("uuid", uuidArray(given))).toEqual(given.map((id) => id?.toLowerCase() ?? null));
});

test("an invalid uuid is refused by PostgreSQL as bad data, so that its batch can be halved", async () => {
  const sound = "01890a5d-ac96-774b-bcce-b302099a8057";
  const broken = ["", "01890a5d", "g1890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a805\u0131"];
  for (const one of [...broken, `${sound.slice(0, 8)}0${sound.slice(9)}`]) {
    await expect(readBack("uuid", uuidArray([sound, one]))).rejects.toMatchObject({ code: "22P02" });
  }
});

test("a string with NUL is refused by PostgreSQL as bad data", async () => {
  await expect(readBack("text", textArray(["a\0b"]))).rejects.toMatchObject({ code: "22021" });
});
