import { styleText } from "node:util";

/** Makes a value printable: control and invisible characters are shown as their codes. */
export function printable(value: string): string {
  return value.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\u2028\u2029]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

const combining = /\p{M}/u;
/** The code points that terminals draw two columns wide: East Asian Wide and Fullwidth, and the emoji. */
const wideRanges = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1faff],
  [0x20000, 0x3fffd],
] as const;

/** The columns of a printable text in a terminal. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += columnsOfOne(character);
  return columns;
}

function columnsOfOne(character: string): number {
  if (combining.test(character)) return 0;
  const code = character.codePointAt(0) ?? 0;
  return wideRanges.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}

/** The text in at most this many columns, with an ellipsis if it is cut. */
export function cut(text: string, columnsMax: number): string {
  if (columnsOf(text) <= columnsMax) return text;
  let kept = "";
  let columns = 1;
  for (const character of text) {
    columns += columnsOfOne(character);
    if (columns > columnsMax) break;
    kept += character;
  }
  return `${kept}…`;
}

export function padEnd(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - columnsOf(text)));
}

export function padStart(text: string, columns: number): string {
  return " ".repeat(Math.max(0, columns - columnsOf(text))) + text;
}

/**
 * Arranges pieces in lines of at most this many columns. A piece is never broken, and cut only if it is longer by
 * itself.
 */
function arrange<Piece extends { readonly text: string }>(
  pieces: readonly Piece[],
  joint: string,
  columnsMax: number,
): Piece[][] {
  const lines: Piece[][] = [];
  let room = 0;
  for (const piece of pieces) {
    const text = cut(piece.text, columnsMax);
    const columns = columnsOf(text);
    const line = lines.at(-1);
    if (line !== undefined && columnsOf(joint) + columns <= room) {
      line.push({ ...piece, text });
      room -= columnsOf(joint) + columns;
    } else {
      lines.push([{ ...piece, text }]);
      room = columnsMax - columns;
    }
  }
  return lines;
}

/** Joins texts into lines of at most this many columns. */
export function flow(texts: readonly string[], joint: string, columnsMax: number): string[] {
  const lines = arrange(
    texts.map((text) => ({ text })),
    joint,
    columnsMax,
  );
  return lines.map((line) => line.map(({ text }) => text).join(joint));
}

/** Wraps words into lines of at most this many columns. */
export function wrap(sentence: string, columnsMax: number): string[] {
  return flow(sentence.split(" "), " ", columnsMax);
}

export function milliseconds(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, "")} s`;
  return ms < 3_600_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;
}

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

const tones = {
  strong: "bold",
  faint: "dim",
  good: "green",
  bad: "red",
  warning: "yellow",
  link: "cyan",
  /** A conspicuous label. */
  goodLabel: ["black", "bgGreen"],
  badLabel: ["whiteBright", "bgRed"],
  warningLabel: ["black", "bgYellow"],
} as const;

export type OutputTone = keyof typeof tones;

/** The text in a tone, or plain without colours. Pad and cut before: the codes use no columns. */
export function paint({ colours }: OutputStyle, tone: OutputTone, text: string): string {
  return colours && text !== "" ? styleText(tones[tone], text, { validateStream: false }) : text;
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
