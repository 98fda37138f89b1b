import { arrange } from "./output-text.ts";

/** The style of the console output on a stream. */
export interface OutputStyle {
  readonly colours: boolean;
  /** The columns of the terminal to use. */
  readonly columns: number;
}

/** Wider lines are harder to read. */
const columnsMax = 120;
/** Ids are copied from the terminal, so they are never truncated: a narrower terminal wraps them. */
const columnsMin = 56;
const columnsWithoutTerminal = 80;

/** Colours only for a terminal whose user did not disable them (no-color.org). */
export function outputStyleOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
): OutputStyle {
  const isTerminal = stream.isTTY === true;
  const columns = isTerminal ? (stream.columns ?? columnsWithoutTerminal) : columnsWithoutTerminal;
  return {
    colours: isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb",
    columns: Math.min(Math.max(columns, columnsMin), columnsMax),
  };
}

const codes = {
  strong: ["1", "22"],
  faint: ["2", "22"],
  good: ["32", "39"],
  bad: ["31", "39"],
  warning: ["33", "39"],
  link: ["36", "39"],
  /** Black on green, on red, on yellow: a conspicuous label. */
  goodLabel: ["30;42", "39;49"],
  badLabel: ["97;41", "39;49"],
  warningLabel: ["30;43", "39;49"],
} as const;

export type OutputTone = keyof typeof codes;

/** The text in a tone, or plain without colours. Pad and cut before: the codes use no columns. */
export function paint(style: OutputStyle, tone: OutputTone, text: string): string {
  if (!style.colours || text === "") return text;
  const [on, off] = codes[tone];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

/** ` IPN ` on a coloured background; in brackets without colours. */
export function label(style: OutputStyle, tone: "goodLabel" | "badLabel" | "warningLabel", text: string): string {
  return style.colours ? paint(style, tone, ` ${text} `) : `[${text}]`;
}

/** A piece of a line; a piece without a tone is faint. */
export interface Piece {
  readonly text: string;
  readonly tone?: OutputTone;
}

/** As flow, with each piece in its tone and faint separators. */
export function flowPainted(pieces: readonly Piece[], joint: string, columnsMax: number, style: OutputStyle): string[] {
  const lines = arrange(pieces, joint, columnsMax);
  const paintedJoint = paint(style, "faint", joint);
  return lines.map((line) => line.map(({ text, tone }) => paint(style, tone ?? "faint", text)).join(paintedJoint));
}
