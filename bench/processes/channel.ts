import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The methods of a bench process, by name. Each takes one value and answers one. */
export type Methods = { readonly [name: string]: (input: never) => unknown };

interface Asked {
  readonly id: number;
  readonly method: string;
  readonly input: unknown;
}

type Answered = { readonly id: number; readonly value: unknown } | { readonly id: number; readonly error: string };

/** In the child: answers what the parent asks, and ends with it, however it ends. */
export function answer(process: NodeJS.Process, methods: Methods): void {
  // Ctrl-C reaches the whole group; the parent alone decides when we go.
  process.on("SIGINT", () => undefined);
  process.on("disconnect", () => process.exit(0));
  process.on("message", async ({ id, method, input }: Asked) => {
    try {
      const run = methods[method];
      if (run === undefined) throw new Error(`This process cannot be asked for ${method}.`);
      process.send?.({ id, value: await run(input as never) });
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  });
}

type Input<Method> = Method extends (input: infer In) => unknown ? In : never;
type Output<Method> = Method extends (input: never) => infer Out ? Awaited<Out> : never;

/** A process of the bench, seen from its parent. */
export interface Process<All extends Methods> {
  readonly pid: number;
  ask<Name extends keyof All & string>(method: Name, input: Input<All[Name]>): Promise<Output<All[Name]>>;
  /** Ends it, at once. */
  stop(): Promise<void>;
}

const exitWaitMs = 5_000;
/** The compile cache of `npm start`: stripping types is not part of the measurement. */
const compiledCode = fileURLToPath(new URL("../../node_modules/.cache/paybell", import.meta.url));

/** Starts a file of this folder as a process of its own. `execArgv`: further arguments of Node, such as --cpu-prof. */
export function startProcess<All extends Methods>(file: URL, execArgv: readonly string[] = []): Process<All> {
  const child = fork(fileURLToPath(file), [], {
    execArgv: ["--conditions=paybell-source", ...execArgv],
    env: { ...process.env, NODE_COMPILE_CACHE: compiledCode },
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const exited = once(child, "exit");
  const waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  child.on("message", (message: Answered) => {
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if ("error" in message) asked?.reject(new Error(message.error));
    else asked?.resolve(message.value as never);
  });
  child.on("exit", (code, signal) => {
    const error = new Error(`${fileURLToPath(file)} ended with ${signal ?? code} while it was asked something.`);
    for (const asked of waiting.values()) asked.reject(error);
    waiting.clear();
  });
  return {
    pid: child.pid ?? 0,
    ask: (method, input) =>
      new Promise((resolve, reject) => {
        lastId += 1;
        waiting.set(lastId, { resolve, reject });
        child.send({ id: lastId, method, input } satisfies Asked, (error) => error && reject(error));
      }),
    async stop() {
      // A disconnected child exits by itself, which lets Node write its profile.
      if (child.connected) child.disconnect();
      const timer = setTimeout(() => child.kill("SIGKILL"), exitWaitMs);
      await exited;
      clearTimeout(timer);
    },
  };
}
