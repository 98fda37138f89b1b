import fc from "fast-check";
import { expect, test } from "vitest";
import { Journal } from "./journal.ts";
import { cardIpn } from "./received.fixture.ts";

function begun(count: number): Journal {
  const journal = new Journal();
  for (let no = 0; no < count; no += 1) journal.begin(0);
  return journal;
}

test("a command that was accepted and never delivered is lost, and owed to its partner until it arrives", () => {
  const journal = begun(2);
  journal.accept(0, "t-0");
  journal.accept(1, "t-1");
  journal.deliver(0, cardIpn(0));
  expect(journal.lost()).toEqual([1]);
  expect(journal.owedTo(0)).toBe(1);
  journal.deliver(0, cardIpn(1));
  expect(journal.lost()).toEqual([]);
  expect(journal.owedTo(0)).toBe(0);
});

test("an IPN before its command's answer is a ghost only until the answer is known", () => {
  const journal = begun(2);
  journal.deliver(0, cardIpn(0));
  journal.deliver(0, cardIpn(1));
  expect(journal.neverAccepted()).toEqual([0, 1]);
  journal.accept(0, "t-0");
  expect(journal.neverAccepted()).toEqual([1]);
  expect(journal.owedTo(0)).toBe(0);
});

test.each([
  ["of a command that was refused", (journal: Journal) => journal.refuse(0), cardIpn(0)],
  ["of another transaction than was answered", (journal: Journal) => journal.accept(0, "t-other"), cardIpn(0)],
  ["of a command that nobody sent", () => undefined, cardIpn(7)],
  ["with another amount", () => undefined, cardIpn(0, { amount: "1" })],
])("an IPN %s is a ghost", (_, before, received) => {
  const journal = begun(1);
  before(journal);
  journal.deliver(0, received);
  expect(journal.ghosts.length).toBe(1);
});

test("an IPN that reaches another partner is a ghost there", () => {
  const journal = begun(1);
  journal.deliver(3, cardIpn(0));
  expect(journal.ghosts.length).toBe(1);
  expect(journal.neverAccepted()).toEqual([]);
});

test("a second notification of a transaction is a ghost, and the same one again is a duplicate", () => {
  const journal = begun(1);
  journal.deliver(0, cardIpn(0));
  journal.deliver(0, cardIpn(0));
  expect([journal.duplicates, journal.ghosts.length]).toEqual([1, 0]);
  journal.deliver(0, cardIpn(0, { notificationId: "n-other" }));
  expect([journal.duplicates, journal.ghosts.length]).toEqual([2, 1]);
  expect(journal.repeats(0, 1)).toBe(2);
});

test("an IPN before an earlier one of its chain breaks the order, unless its header says so", () => {
  const journal = new Journal();
  const sale = journal.begin(0);
  const voided = journal.begin(0, [sale]);
  const other = journal.begin(0, [sale]);
  journal.deliver(0, cardIpn(other, { command: "VOID", outOfOrder: true }));
  expect([journal.orderViolations.length, journal.outOfOrder]).toEqual([0, 1]);
  journal.deliver(0, cardIpn(voided, { command: "VOID" }));
  expect(journal.orderViolations).toEqual([{ no: voided, before: sale }]);
});

test("every command is delivered, owed or not accepted, in any order of events", () => {
  const step = fc.record({ no: fc.nat(19), what: fc.constantFrom("accept", "deliver") });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const journal = begun(20);
      for (const { no, what } of steps) {
        if (what === "accept") journal.accept(no, `t-${no}`);
        else journal.deliver(0, cardIpn(no));
      }
      const of = (wanted: string) => new Set(steps.filter(({ what }) => what === wanted).map(({ no }) => no));
      const [accepted, delivered] = [of("accept"), of("deliver")];
      const all = Array.from(Array(20).keys());
      expect(journal.lost()).toEqual(all.filter((no) => accepted.has(no) && !delivered.has(no)));
      expect(journal.neverAccepted()).toEqual(all.filter((no) => delivered.has(no) && !accepted.has(no)));
      expect(journal.owedTo(0)).toBe(journal.owed(0, 20));
      expect(journal.duplicates).toBe(steps.filter(({ what }) => what === "deliver").length - delivered.size);
    }),
  );
});
