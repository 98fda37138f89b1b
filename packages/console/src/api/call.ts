import { type Api, csrfHeader, operations, type Problem } from "./operations.ts";

interface ApiCallOptions {
  readonly signal?: AbortSignal;
}

/** An error of the API in its own words (RFC 9457), or a service that could not be reached. */
export class CallError extends Error {
  override readonly name = "CallError";
  readonly status: number;
  readonly code: string;
  readonly remedy: string;
  /** The address of the guide to the code; empty if the service was not reached. */
  readonly documentation: string;
  /** The id to look for in the service's log. */
  readonly instance: string;
  /** The problem of each field, by its path. */
  readonly fields: Readonly<Record<string, string>>;

  constructor(status: number, problem: Partial<Problem>, isReading: boolean) {
    super(problem.detail ?? "The service cannot be reached.");
    this.status = status;
    this.code = problem.code ?? "unreachable";
    this.remedy =
      problem.remedy ??
      (isReading
        ? "Check your connection, then try again."
        : "It is not known whether the change was made: check before you try again.");
    this.documentation = problem.documentation ?? "";
    this.instance = problem.instance ?? "";
    this.fields = Object.fromEntries((problem.errors ?? []).map(({ field, message }) => [field, message]));
  }

  get isSignedOut(): boolean {
    return this.status === 401;
  }
}

/** What the page itself says of what was typed, by the names of the fields. */
export class FieldError extends Error {
  override readonly name = "FieldError";
  readonly fields: Readonly<Record<string, string>>;

  constructor(fields: FieldError["fields"]) {
    super(Object.values(fields).join(" "));
    this.fields = fields;
  }
}

const none = {};

/** What is wrong with each field, by its path. */
export function fieldProblems(error: unknown): Readonly<Record<string, string>> {
  return error instanceof CallError || error instanceof FieldError ? error.fields : none;
}

let csrf = "";

/** From then on it is sent along with everything that changes something. */
export function rememberCsrf(token: string): void {
  csrf = token;
}

type Input = Readonly<Record<string, unknown>> | undefined;

async function send(name: string, args: unknown[]): Promise<unknown> {
  const [method = "", template = "", from = ""] = operations[name] ?? [];
  const ids = [...template.matchAll(/\{[^{}]+\}/g)].map(() => String(args.shift()));
  const input = (from === "" ? undefined : args.shift()) as Input;
  const { signal } = (args.shift() ?? {}) as ApiCallOptions;
  let at = 0;
  const path = template.replace(/\{[^{}]+\}/g, () => encodeURIComponent(ids[at++] ?? ""));
  const query = from === "query" ? `?${toQuery(input)}` : "";
  const isReading = method === "GET";
  const response = await fetch(`${path}${query}`, {
    method,
    headers: {
      ...(!isReading && { [csrfHeader]: csrf }),
      ...(from === "body" && input !== undefined && { "content-type": "application/json" }),
    },
    ...(from === "body" && input !== undefined && { body: JSON.stringify(input) }),
    ...(signal !== undefined && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new CallError(0, {}, isReading);
  });
  if (response.ok) return response.status === 204 ? null : await response.json();
  throw new CallError(response.status, (await response.json().catch(() => ({}))) as Partial<Problem>, isReading);
}

function toQuery(input: Input): string {
  const given = Object.entries(input ?? {}).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}

/** Every operation of the service's API, by its operationId. */
export const api = Object.fromEntries(
  Object.keys(operations).map((name) => [name, (...args: unknown[]) => send(name, args)]),
) as unknown as Api<ApiCallOptions>;
