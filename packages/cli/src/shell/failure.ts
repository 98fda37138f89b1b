/** The exit codes. A script may branch on them: none is ever reused. */
export const exitCodes = {
  /** Done as asked, or the finding is good. */
  ok: 0,
  /** The finding is not good: not authentic, not ready, not accepted, not conforming. */
  negative: 1,
  /** Wrong usage or configuration: nothing was done. */
  usage: 2,
  /** The service refused, or could not be reached. */
  service: 3,
  /** A mistake of this program, or what it has to say could not be written. */
  internal: 4,
  /** Ctrl-C, before it was done. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  0: "success, or a good result",
  1: "a bad result",
  2: "wrong usage or configuration; nothing was done",
  3: "the service refused, or could not be reached",
  4: "a bug in this program, or its output could not be written",
  130: "interrupted by Ctrl-C",
};

export interface FailureDetails {
  /** A stable word for scripts: that of the service's problem, or our own. */
  readonly code: string;
  /** One sentence: what to do. */
  readonly remedy?: string;
  readonly exitCode?: ExitCode;
  /** The HTTP status, where the service answered. */
  readonly status?: number;
  /** One line for each thing that was wrong. */
  readonly lines?: readonly string[];
}

/** Ends a command. Shown without a stack; its message holds no key. */
export class Failure extends Error {
  readonly code: string;
  readonly remedy: string;
  readonly exitCode: ExitCode;
  readonly status: number | undefined;
  readonly lines: readonly string[];

  constructor(message: string, details: FailureDetails) {
    super(message);
    this.name = "Failure";
    this.code = details.code;
    this.remedy = details.remedy ?? "";
    this.exitCode = details.exitCode ?? exitCodes.usage;
    this.status = details.status;
    this.lines = details.lines ?? [];
  }
}

/** For people: what is wrong, then what to do. */
export function failureText({ message, lines, remedy }: Failure): string {
  const rest = [...lines.map((line) => `  ${line}`), ...(remedy === "" ? [] : [`  → ${remedy}`])];
  return [`paybell: ${message}`, ...rest].join("\n");
}

/** For programs, with --json. */
export function failureJson({ message, code, lines, remedy }: Failure): object {
  return { error: { code, message, ...(lines.length > 0 && { lines }), ...(remedy !== "" && { remedy }) } };
}

/** The failure with a command to type next. @param path of the command that failed, such as `partner set` */
export function withNext(failure: Failure, path: string): Failure {
  if (failure.remedy.includes("`")) return failure;
  const isOurs = failure.exitCode !== exitCodes.service || (failure.status ?? 500) < 500;
  const next = isOurs ? `\`paybell ${path}--help\` says how it is used.` : "`paybell status` says whether it is ready.";
  const { code, exitCode, status, lines, remedy } = failure;
  const details = { code, exitCode, lines, remedy: remedy === "" ? next : `${remedy} ${next}` };
  return new Failure(failure.message, status === undefined ? details : { ...details, status });
}

/** Converts any thrown value. An unexpected error is our own mistake: its message is shown, its stack is not. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const message = error instanceof Error ? error.message : String(error);
  const remedy = "Report it, with the command and what `paybell --version` prints.";
  return new Failure(`this should not happen: ${message}`, { code: "internal", exitCode: exitCodes.internal, remedy });
}

/** A restart, a proxy without a service behind it, too many calls: these are temporary. */
export function passes({ code, status = 0 }: Failure): boolean {
  return code === "unreachable" || status === 429 || status >= 500;
}
