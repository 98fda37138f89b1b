import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

/** The name server's misbehaviour. */
export type NameServerFault = "unknown" | "failing" | "silent";

const answerCode = { unknown: 3, failing: 2 } as const;
const typeA = 1;

/** A real name server, on UDP at a loopback port: every name below its domain is one address. */
export class NameServer {
  readonly #socket: Socket = createSocket("udp4");
  readonly #address: readonly number[];
  #trouble: NameServerFault | undefined;
  /** Questions so far. */
  asked = 0;

  constructor(address: string) {
    this.#address = address.split(".").map(Number);
    this.#socket.on("message", (query, from) => {
      this.asked += 1;
      const answer = this.#answer(query);
      if (answer !== undefined) this.#socket.send(answer, from.port, from.address);
    });
  }

  /** `address:port` */
  get at(): string {
    const { address, port } = this.#socket.address();
    return `${address}:${port}`;
  }

  async listen(): Promise<void> {
    this.#socket.bind(0, "127.0.0.1");
    await once(this.#socket, "listening");
  }

  behave(trouble: NameServerFault | undefined): void {
    this.#trouble = trouble;
  }

  async close(): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }

  #answer(query: Buffer): Buffer | undefined {
    if (this.#trouble === "silent") return undefined;
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const isFound = this.#trouble === undefined && question.readUInt16BE(question.length - 4) === typeA;
    const code = this.#trouble === undefined ? 0 : answerCode[this.#trouble];
    const head = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0x80 | code, 0, 1, 0, isFound ? 1 : 0, 0, 0, 0, 0]);
    // Names are not cached, so a failing name server has an immediate effect.
    const record = Buffer.from([0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4, ...this.#address]);
    return isFound ? Buffer.concat([head, question, record]) : Buffer.concat([head, question]);
  }
}
