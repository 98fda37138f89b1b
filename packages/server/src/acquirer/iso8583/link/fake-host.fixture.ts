import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { bcdEncoding, standardLayout } from "../message/codec.fixture.ts";
import { Codec, type IsoMessage } from "../message/codec.ts";
import { FrameReader, type Framing, Wire } from "./wire.ts";

export const framing: Framing = { length: "binary2", countsItself: false, tpdu: "6000010000" };
export const wire = new Wire({
  codec: new Codec(standardLayout(bcdEncoding)),
  framing,
  authentication: undefined,
});

/** A host in this process, controlled by a test. It approves sign-ons and echoes by default. */
export class FakeHost {
  readonly #server: Server;
  readonly sockets = new Set<Socket>();
  /** Every message that came, network messages too. */
  readonly heard: IsoMessage[] = [];
  /** Field 39 of a sign-on's answer; undefined: it is not answered. */
  signOnCode: string | undefined = "00";
  answersEchoes = true;
  /** The wire format of the messages that it sends and receives. */
  wire = wire;
  /** The wire format from the answer to a key message on: all that its peer sends afterwards is under the new key. */
  wireAfterKey: Wire | undefined;
  /** Field 48 of the answer to a request for a key. */
  keyContent = "";
  onKey: () => void = () => undefined;
  readonly #left = new Set<Socket>();
  /** `heard` stays empty: it answers more than memory holds. */
  keepsNothing = false;
  /** The answer to any other message; undefined: none. */
  answer: (request: IsoMessage, socket: Socket) => IsoMessage | undefined = (request) => answerTo(request, "00");
  #onHeard: (() => void)[] = [];

  private constructor(server: Server, secure: boolean) {
    this.#server = server;
    server.on(secure ? "secureConnection" : "connection", (socket: Socket) => this.#serve(socket));
  }

  static async listen(tls?: TlsOptions): Promise<FakeHost> {
    const server = tls === undefined ? createTcpServer() : createTlsServer(tls);
    const host = new FakeHost(server, tls !== undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return host;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves once so many messages of a type were heard. */
  async hears(mti: string, times = 1): Promise<void> {
    while (this.heard.filter((message) => message.mti === mti).length < times) {
      await new Promise<void>((resolve) => this.#onHeard.push(resolve));
    }
  }

  send(message: IsoMessage): void {
    for (const socket of this.sockets) if (!this.#left.has(socket)) socket.write(this.wire.write(message));
  }

  /** It sends nothing there by itself any more. */
  leaves(socket: Socket): void {
    this.#left.add(socket);
  }

  breakConnections(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.breakConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(socket: Socket): void {
    this.sockets.add(socket);
    // Otherwise an answer waits until the one before it is acknowledged, which may take 40 ms.
    socket.setNoDelay(true);
    const reader = new FrameReader(framing);
    socket.on("data", (bytes: Buffer) => {
      for (const message of reader.push(bytes)) this.#receive(this.wire.read(message), socket);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => this.sockets.delete(socket));
  }

  #receive(message: IsoMessage, socket: Socket): void {
    if (!this.keepsNothing) this.heard.push(message);
    if (message.mti === "0810") this.wire = this.wireAfterKey ?? this.wire;
    const answer = message.mti.startsWith("08") ? this.#networkAnswer(message) : this.answer(message, socket);
    if (answer !== undefined) socket.write(this.wire.write(answer));
    if (message.fields.get(70) === "161") this.onKey();
    for (const tell of this.#onHeard.splice(0)) tell();
  }

  #networkAnswer(message: IsoMessage): IsoMessage | undefined {
    if (message.mti === "0810") return undefined;
    if (message.fields.get(70) === "161") return answerTo(message, "00", this.keyContent);
    const isEcho = message.fields.get(70) === "301";
    const code = isEcho ? (this.answersEchoes ? "00" : undefined) : this.signOnCode;
    return code === undefined ? undefined : answerTo(message, code);
  }
}

export function answerTo({ mti, fields }: IsoMessage, code: string, content = fields.get(48) ?? ""): IsoMessage {
  const answerMti = `${mti.slice(0, 2)}${Number(mti[2]) + 1}0`;
  return {
    mti: answerMti,
    fields: new Map(
      [...fields, [39, code], ...(content === "" ? [] : [[48, content]])].sort(
        ([one], [other]) => Number(one) - Number(other),
      ) as [number, string][],
    ),
  };
}
