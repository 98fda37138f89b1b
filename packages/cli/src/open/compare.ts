import { ipnFields, signedFields } from "@paybell/contract";
import type { Api } from "../client/api.ts";
import { Failure } from "../shell/failure.ts";
import type { Explanation } from "./explain.ts";

export interface FieldDifference {
  readonly field: string;
  /** Whether the specification's signature covers it. */
  readonly signed: boolean;
  readonly captured: string;
  readonly service: string;
}

export type ServiceComparison =
  | { readonly transaction: string; readonly differences: readonly FieldDifference[] }
  | { readonly transaction: null; readonly why: string };

/** Compares each field of a captured IPN with the service's transaction; the signed ones first, in order. */
export async function compareWithService(api: Api, { kind, ipn }: Explanation): Promise<ServiceComparison> {
  if (kind === undefined || ipn === undefined) return { transaction: null, why: "the capture did not open" };
  const known = await ask(api, ipn.id);
  if (known instanceof Failure) return { transaction: null, why: known.message };
  const signed = signedFields(kind, { mode: "fields" });
  const names = ipnFields(kind)
    .filter(({ name, type }) => type === "string" && name !== "signature")
    .map(({ name }) => name as string);
  const captured = ipn as unknown as Readonly<Record<string, string>>;
  const differences = [...new Set([...signed, ...names])].flatMap((field) => {
    const [ours = "", service = ""] = [captured[field], known[field]];
    return ours === service ? [] : [{ field, signed: signed.includes(field), captured: ours, service }];
  });
  return { transaction: ipn.id, differences };
}

async function ask(api: Api, id: string): Promise<Readonly<Record<string, string>> | Failure> {
  try {
    return await api.get<Readonly<Record<string, string>>>(`/v1/transactions/${encodeURIComponent(id)}`);
  } catch (error) {
    if (error instanceof Failure && error.status === 404) return error;
    throw error;
  }
}
