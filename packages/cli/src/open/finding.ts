/** One step of opening: what was found, and what to do where it is wrong. */
export interface OpenFinding {
  readonly step: "body" | "headers" | "freshness" | "seal" | "content" | "signature";
  /** `note`: does not decide whether it is authentic. */
  readonly level: "right" | "note" | "wrong";
  readonly text: string;
  readonly remedy?: string;
}
