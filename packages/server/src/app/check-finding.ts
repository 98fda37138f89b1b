/** One line of the preflight report. */
export interface CheckFinding {
  readonly level: "ok" | "warning" | "error";
  readonly what: string;
  readonly detail: string;
  /** The remedy; empty if none is needed. */
  readonly remedy: string;
}

export function ok(what: string, detail: string): CheckFinding {
  return { level: "ok", what, detail, remedy: "" };
}

export function warning(what: string, detail: string, remedy: string): CheckFinding {
  return { level: "warning", what, detail, remedy };
}

export function error(what: string, detail: string, remedy: string): CheckFinding {
  return { level: "error", what, detail, remedy };
}
