import type { IsoMessage } from "../message/codec.ts";
import type { MessageTemplate } from "./schema.ts";
import { placeOf, type Structure, writeElements } from "./structure.ts";
import { templateWriter } from "./template.ts";
import type { Described, HostValues } from "./values.ts";

export type Write = (message: Described, isRepeat: boolean) => IsoMessage;

/** Writes a message by its template. */
export function messageWriter({ mti, repeatMti, fields }: MessageTemplate, host: HostValues): Write {
  const writers = fieldWriters(fields, host);
  const again = repeatMti ?? `${mti.slice(0, 3)}${Number(mti[3]) + 1}`;
  return (message, isRepeat) => {
    const written = new Map<number, string>();
    for (const { number, write } of writers) {
      const value = write(message, host);
      if (value !== "") written.set(number, value);
    }
    return { mti: isRepeat ? again : mti, fields: written };
  };
}

interface FieldWriter {
  readonly number: number;
  readonly write: (message: Described, host: HostValues) => string;
}

/** The writers of a message's fields, by their number. */
function fieldWriters(fields: MessageTemplate["fields"], { profile: { structures } }: HostValues): FieldWriter[] {
  const byNumber = Map.groupBy(Object.entries(fields), ([key]) => placeOf(key).field);
  const numbered = [...byNumber].sort(([one], [other]) => one - other);
  return numbered.map(([number, templates]) => {
    const structure = structures[String(number)];
    const whole = fields[String(number)];
    const isWhole = whole !== undefined || structure === undefined;
    return { number, write: isWhole ? templateWriter(whole ?? "") : elementsWriter(templates, structure) };
  });
}

/** The elements are written in their order, without those that a message has no value for. */
function elementsWriter(templates: readonly (readonly [string, string])[], structure: Structure): FieldWriter["write"] {
  const parts = templates.map(([key, template]) => ({ tag: placeOf(key).tag, write: templateWriter(template) }));
  return (message, host) => {
    const elements = parts.map(({ tag, write }) => [tag, write(message, host)] as const);
    const written = elements.filter(([, value]) => value !== "");
    return writeElements(written, structure);
  };
}
