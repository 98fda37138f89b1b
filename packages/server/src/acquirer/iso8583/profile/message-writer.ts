import type { IsoMessage } from "../message/codec.ts";
import type { MessageTemplate } from "./schema.ts";
import { placeOf, writeElements } from "./structure.ts";
import { templateWriter } from "./template.ts";
import type { Described, HostValues } from "./values.ts";

export type Write = (message: Described, isRepeat: boolean) => IsoMessage;

/** Writes a message by its template. */
export function messageWriter({ mti, repeatMti, fields }: MessageTemplate, host: HostValues): Write {
  const writers = fieldWriters(fields, host);
  const again = repeatMti ?? `${mti.slice(0, 3)}1`;
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

/** The writers of a message's fields by their number; the elements of one field are written in their order. */
function fieldWriters(fields: MessageTemplate["fields"], { profile: { structures } }: HostValues): FieldWriter[] {
  const byNumber = new Map<number, { readonly tag: string; readonly write: FieldWriter["write"] }[]>();
  for (const [key, template] of Object.entries(fields)) {
    const { field, tag } = placeOf(key);
    const written = { tag, write: templateWriter(template) };
    byNumber.set(field, [...(byNumber.get(field) ?? []), written]);
  }
  const numbered = [...byNumber].sort(([one], [other]) => one - other);
  return numbered.map(([number, parts]) => {
    const structure = structures[String(number)];
    const [only] = parts;
    if (structure === undefined || only === undefined || only.tag === "")
      return { number, write: only?.write ?? (() => "") };
    const write: FieldWriter["write"] = (message, host) => {
      const elements = parts.map((part) => [part.tag, part.write(message, host)] as const);
      return writeElements(
        elements.filter(([, value]) => value !== ""),
        structure,
      );
    };
    return { number, write };
  });
}
