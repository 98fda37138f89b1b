import type { SeededRandom } from "../../../faults/random.ts";
import type { Books, Received } from "./books.ts";
import { framed, type Message } from "./standard.ts";

/** A message at the host, and what the host can do about it. */
export interface Visit {
  readonly message: Received;
  readonly books: Books;
  readonly random: SeededRandom;
  /** The answer with this code, and what is different in it. */
  answer(code: string, change?: Change): Message;
  /** Over its connection, or the next one if that has ended. */
  send(answer: Message | Buffer, afterMs?: number): void;
  drop(): void;
  later(afterMs: number, act: () => void): void;
  /** This site of the host restarts: its connections break, and for so long none is accepted. */
  restart(forMs: number): void;
}

type Habit = (visit: Visit) => void;

/** Beyond the service's time-out. */
const late = (random: SeededRandom) => random.within(1_200, 2_200);
const soon = (random: SeededRandom) => random.within(20, 900);

const restartMs = 300;

type Change = (fields: Map<number, string>) => unknown;

const books = (visit: Visit, change?: Change) => visit.answer(visit.books.book(visit.message), change);
const reverses = (visit: Visit, change?: Change) => visit.answer(visit.books.reverse(visit.message), change);
const twice = (visit: Visit, answer: Message) => void [visit.send(answer), visit.send(answer, 5)];
const without =
  (...numbers: readonly number[]): Change =>
  (fields) =>
    numbers.map((number) => fields.delete(number));
const set =
  (number: number, value: string): Change =>
  (fields) =>
    fields.set(number, value);
/** Nobody else can know of it, so it also comes when an instance is killed while it reads it. */
function sendSurely(visit: Visit, answer: Message): void {
  for (const afterMs of [5, 3_000, 12_000]) visit.send(answer, afterMs);
}

/** Booked, if the books allow it, and answered with another code. */
const bookedAs =
  (code: string, change?: Change): Habit =>
  (visit) => {
    const booked = visit.books.book(visit.message);
    visit.send(visit.answer(booked === "00" ? code : booked, change));
  };

/** The ways of real hosts with a message that moves money. The standard allows some of them. */
export const moneyHabits: Readonly<Record<string, Habit>> = {
  dropsUnread: (visit) => visit.drop(),
  dropsAfterBooking: (visit) => void [books(visit), visit.drop()],
  booksLateAnswersNobody: (visit) => void [visit.drop(), visit.later(soon(visit.random), () => books(visit))],
  booksLateAndSilently: (visit) => visit.later(soon(visit.random), () => books(visit)),
  isSilent: () => undefined,
  booksAndIsSilent: (visit) => void books(visit),
  answersLate: (visit) => visit.send(books(visit), late(visit.random)),
  booksAndAnswersLate: (visit) => visit.later(soon(visit.random), () => visit.send(books(visit), 1_200)),
  answersOverTheNextConnection: (visit) => void [visit.drop(), visit.send(books(visit), soon(visit.random))],
  answersTwice: (visit) => twice(visit, books(visit)),
  answersTwiceOtherwise: (visit) => {
    const approval = books(visit);
    visit.send(approval);
    visit.send(visit.answer("51"), 5);
    // If its connection ends in between, the decline comes over another one, alone.
    sendSurely(visit, approval);
  },
  declinesThenApproves: (visit) => void [visit.send(visit.answer("51")), sendSurely(visit, books(visit))],
  declines: (visit) => visit.send(visit.answer("51", without(38))),
  declinesWithZeros: (visit) => visit.send(visit.answer("05", set(38, "000000"))),
  declinesUnknown: (visit) => visit.send(visit.answer("Z3", without(38))),
  isBusy: (visit) => visit.send(visit.answer("91", without(38))),
  approvesOtherwise: bookedAs("08"),
  approvesUnknown: bookedAs("85"),
  completesPartially: bookedAs("32"),
  saysInProgress: bookedAs("09"),
  forgetsItsCode: bookedAs("00", without(39)),
  sendsABlankCode: bookedAs("  "),
  approvesAPart(visit) {
    const half = BigInt(visit.message.fields.get(4) ?? 0) / 2n;
    const code = visit.books.book(visit.message, half);
    visit.send(visit.answer(code === "00" ? "10" : code, set(4, half.toString())));
  },
  approvesAnotherAmount: bookedAs("00", set(4, "1")),
  leavesOutWhatItShouldRepeat: (visit) => visit.send(books(visit, without(3, 42))),
  leavesOutTheTime: (visit) => visit.send(books(visit, without(7))),
  leavesOutTheTerminal: (visit) => visit.send(books(visit, without(41, 42))),
  answersOnlyLateAndShort: (visit) => visit.send(books(visit, without(3, 42)), late(visit.random)),
  givesNoApprovalCode: (visit) => visit.send(books(visit, without(38, 37))),
  addsFields: (visit) => visit.send(books(visit, (fields) => fields.set(44, "SEE").set(54, "0".repeat(120)))),
  answersAsARepeat: (visit) => visit.send({ ...books(visit), mti: `0${visit.message.mti[1]}11` }),
  answersInPieces: (visit) => visit.send(books(visit), -1),
  sendsRubbishFirst: (visit) => void [visit.send(framed(Buffer.from("0210 what?"))), visit.send(books(visit))],
  echoesFirst: (visit) => void [visit.send({ mti: "0800", fields: new Map([[70, "301"]]) }), visit.send(books(visit))],
  isSlow: (visit) => visit.send(books(visit), visit.random.within(50, 600)),
  answersOutOfOrder: (visit) => visit.send(books(visit), visit.random.within(0, 60)),
  restarts: (visit) => void [books(visit), visit.restart(restartMs)],
  restartsUnread: (visit) => visit.restart(restartMs),
  failsForLong: (visit) => void [books(visit), visit.restart(20 * restartMs)],
  answersNobodysQuestion(visit) {
    visit.send(books(visit));
    visit.send(visit.answer("00", set(11, visit.random.within(900_000, 999_998).toString())));
  },
  chargesUnasked(visit) {
    visit.send(books(visit));
    const trace = visit.random.within(800_000, 899_999).toString();
    visit.books.force(`${visit.message.fields.get(41)?.trim()} ${trace}`, 100n);
    sendSurely(visit, visit.answer("00", set(11, trace)));
  },
};

/** The same for a Reversal. */
export const reversalHabits: Readonly<Record<string, Habit>> = {
  dropsUnread: (visit) => visit.drop(),
  dropsAfterReversing: (visit) => void [reverses(visit), visit.drop()],
  isSilent: () => undefined,
  reversesAndIsSilent: (visit) => void reverses(visit),
  isBusy: (visit) => visit.send(visit.answer("91")),
  asksAgain: (visit) => visit.send(visit.answer("19")),
  forgetsItsCode: (visit) => visit.send(reverses(visit, without(39))),
  answersTwice: (visit) => twice(visit, reverses(visit)),
  answersLate: (visit) => visit.send(reverses(visit), late(visit.random)),
  refuses: (visit) => visit.send(visit.answer("12")),
};

const settles = (visit: Visit) => visit.answer(visit.books.settle(visit.message));
const takes = (visit: Visit) => visit.answer(visit.books.upload(visit.message));

/** The same for a Settlement. */
export const settlementHabits: Readonly<Record<string, Habit>> = {
  dropsUnread: (visit) => visit.drop(),
  dropsAfterSettling: (visit) => void [settles(visit), visit.drop()],
  isSilent: () => undefined,
  settlesAndIsSilent: (visit) => void settles(visit),
  answersLate: (visit) => visit.send(settles(visit), late(visit.random)),
  answersTwice: (visit) => twice(visit, settles(visit)),
  isBusy: (visit) => visit.send(visit.answer("91")),
  hasOtherTotals: (visit) => visit.send(visit.books.differs(visit.message) ? visit.answer("95") : settles(visit)),
  refusesThenSettles(visit) {
    if (visit.books.differs(visit.message)) visit.send(visit.answer("12"));
    sendSurely(visit, settles(visit));
  },
};

/** The same for an upload of one transaction. */
export const uploadHabits: Readonly<Record<string, Habit>> = {
  dropsUnread: (visit) => visit.drop(),
  dropsAfterTaking: (visit) => void [takes(visit), visit.drop()],
  isSilent: () => undefined,
  takesAndIsSilent: (visit) => void takes(visit),
  answersLate: (visit) => visit.send(takes(visit), late(visit.random)),
  answersTwice: (visit) => twice(visit, takes(visit)),
};

/** Those after which the line is down. */
export const droppingHabits: ReadonlySet<string> = new Set([
  ...["dropsUnread", "dropsAfterBooking", "booksLateAnswersNobody", "answersOverTheNextConnection"],
  ...["restarts", "restartsUnread", "failsForLong", "dropsAfterReversing", "dropsAfterSettling", "dropsAfterTaking"],
]);
