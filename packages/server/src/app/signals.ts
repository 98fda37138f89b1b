/** The signals that end a service in order: Ctrl-C, a supervisor's stop, a closed terminal. */
const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface StopSignals {
  /** Resolves at the first signal. */
  readonly first: Promise<NodeJS.Signals>;
  /** Resolves at the second one: the user does not want to wait. */
  readonly second: Promise<NodeJS.Signals>;
  /** Restores the signals' default behaviour. */
  release(): void;
}

export function stopSignalsOf(process: NodeJS.Process): StopSignals {
  const first = Promise.withResolvers<NodeJS.Signals>();
  const second = Promise.withResolvers<NodeJS.Signals>();
  let seen = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    seen += 1;
    (seen === 1 ? first : second).resolve(signal);
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  return {
    first: first.promise,
    second: second.promise,
    release() {
      for (const signal of stopSignals) process.off(signal, onSignal);
    },
  };
}
