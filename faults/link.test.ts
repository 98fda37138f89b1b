import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FaultyLink } from "./link.ts";
import { seeded } from "./random.ts";

/** Drawn for each piece in turn: it passes, stalls or breaks the connection. */
const [passes, stalls, breaks] = [0.9, 0.02, 0.001];
let drawn: number[];
let target: Server;
let link: FaultyLink;
let caller: Socket;

/** The target answers each piece with the same in capitals. */
beforeEach(async () => {
  drawn = [];
  target = createServer((socket) => {
    socket.on("error", () => undefined).on("data", (piece) => socket.write(String(piece).toUpperCase()));
  });
  target.listen(0, "127.0.0.1");
  await once(target, "listening");
  const random = { ...seeded(1), next: () => drawn.shift() ?? breaks };
  link = new FaultyLink({ host: "127.0.0.1", port: (target.address() as AddressInfo).port }, random);
  await link.listen("127.0.0.1");
  caller = await opened();
});
afterEach(async () => {
  caller.destroy();
  await link.close();
  target.close();
  await once(target, "close");
});

async function opened(): Promise<Socket> {
  const socket = connect(link.port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

/** A reset is an error first. */
function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once("close", resolve));
}

async function answerTo(words: string): Promise<string> {
  caller.write(words);
  const [piece] = await once(caller, "data");
  return String(piece);
}

test("a link without a fault forwards everything", async () => {
  expect(await answerTo("one")).toBe("ONE");
  expect(link.damaged).toBe(0);
});

test.each(["hold-requests", "hold-answers"] as const)(
  "%s: nothing comes until the end, and then all of it",
  async (trouble) => {
    expect(await answerTo("one")).toBe("ONE");
    await link.begin(trouble);
    let came = "";
    caller.on("data", (piece) => {
      came += String(piece);
    });
    caller.write("two");
    // Another link to the same target has long been answered by then.
    const other = connect((target.address() as AddressInfo).port, "127.0.0.1");
    other.write("x");
    await once(other, "data");
    other.destroy();
    expect(came).toBe("");
    await link.end();
    while (came !== "TWO") await once(caller, "data");
    expect(link.damaged).toBe(1);
  },
);

test("held data never arrive if the link is reset at the end", async () => {
  expect(await answerTo("one")).toBe("ONE");
  await link.begin("hold-requests");
  caller.write("two");
  const isClosed = closed(caller);
  await link.end({ reset: true });
  await isClosed;
});

test("a cut resets open connections, and refuses new ones until its end", async () => {
  expect(await answerTo("one")).toBe("ONE");
  const isClosed = closed(caller);
  await link.begin("cut");
  await isClosed;
  await closed(connect(link.port, "127.0.0.1").on("error", () => undefined));
  await link.end();
  caller = await opened();
  expect(await answerTo("two")).toBe("TWO");
});

test("a refusing link behaves like a closed port, and reopens on the same port", async () => {
  await link.begin("refuse");
  const refused = connect(link.port, "127.0.0.1");
  const [error] = await once(refused, "error");
  expect(error.code).toBe("ECONNREFUSED");
  await link.end();
  caller = await opened();
  expect(await answerTo("one")).toBe("ONE");
});

test("a lossy link stalls pieces and keeps their order, until it breaks", async () => {
  expect(await answerTo("one ")).toBe("ONE ");
  await link.begin("lossy");
  drawn = [stalls, passes, passes, stalls, passes, passes];
  const isBroken = closed(caller);
  for (const words of ["two ", "three "]) expect(await answerTo(words)).toBe(words.toUpperCase());
  expect(await answerTo("four ")).toBe("FOUR ");
  expect(drawn).toEqual([]);
  caller.write("five");
  await isBroken;
  await link.end();
});
