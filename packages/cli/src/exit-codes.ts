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
  /** A mistake of this program. */
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
  4: "a bug in this program",
  130: "interrupted by Ctrl-C",
};
