import { styleText } from "node:util";
import type { CommandContext, Output } from "./context.ts";

export interface Style {
  good(text: string): string;
  bad(text: string): string;
  faint(text: string): string;
  strong(text: string): string;
}

const plain: Style = { good: same, bad: same, faint: same, strong: same };
const coloured: Style = {
  good: (text) => styleText("green", text),
  bad: (text) => styleText("red", text),
  faint: (text) => styleText("dim", text),
  strong: (text) => styleText("bold", text),
};

/** Colours on a terminal, unless NO_COLOR asks for none. */
export function styleFor({ isTTY = false }: Output, env: CommandContext["env"]): Style {
  const refused = env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "";
  return isTTY && !refused ? coloured : plain;
}

function same(text: string): string {
  return text;
}
