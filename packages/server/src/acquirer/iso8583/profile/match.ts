import type { Profile } from "./schema.ts";
import { valuesIn } from "./template.ts";

/**
 * Why answers matched by `matchBy` could be swapped: trace numbers count for each terminal, so only the
 * terminal and the trace number together distinguish a message.
 */
export function matchProblems({ messages, matchBy }: Profile): string[] {
  return Object.entries(messages).flatMap(([name, message]) => {
    if (message === null) return [];
    const matched = new Set(matchBy.flatMap((field) => valuesIn(message.fields[field] ?? "")));
    const missing = (["tid", "traceNo"] as const).filter((value) => !matched.has(value));
    if (missing.length === 0) return [];
    const values = missing.map((value) => `{${value}}`).join(" and ");
    return [
      `matchBy: no field of messages.${name} named there has ${values}: two requests could get each other's answers`,
    ];
  });
}
