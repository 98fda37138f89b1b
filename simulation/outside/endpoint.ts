import type { SimulationRandom } from "../random.ts";

export const failingModes = ["fails", "unavailable", "limits", "hangs", "refuses", "slow", "flaps"] as const;
export type EndpointMode = "accepts" | (typeof failingModes)[number];

/** The treatment of a POST. `never`: no answer arrives. */
export type Reception =
  | { readonly kind: "answer"; readonly status: number; readonly afterMs: number; readonly retryAfterMs?: number }
  /** It was accepted or not, and the connection broke before anybody heard. */
  | { readonly kind: "reset"; readonly afterMs: number; readonly isAccepted: boolean }
  | { readonly kind: "refused"; readonly afterMs: number }
  | { readonly kind: "never" };

/** A receiver of notifications at one origin. */
export class SimulatedEndpoint {
  readonly origin: string;
  readonly #random: SimulationRandom;
  mode: EndpointMode = "accepts";
  /** Since when it has been in order, in the world's time. */
  wellSinceMs = 0;
  readonly goneUrls = new Set<string>();

  constructor(origin: string, random: SimulationRandom) {
    this.origin = origin;
    this.#random = random;
  }

  setMode(mode: EndpointMode, nowMs: number): void {
    if (mode === "accepts" && this.mode !== "accepts") this.wellSinceMs = nowMs;
    this.mode = mode;
  }

  receive(url: string): Reception {
    const random = this.#random;
    const afterMs = 1 + random.next() * random.next() * 60;
    if (this.goneUrls.has(url)) return { kind: "answer", status: 410, afterMs };
    const mode = this.mode === "flaps" ? random.pick(["accepts", "fails", "refuses"] as const) : this.mode;
    switch (mode) {
      case "accepts":
        if (this.mode === "flaps" && random.chance(0.2))
          return { kind: "reset", afterMs, isAccepted: random.chance(0.5) };
        return { kind: "answer", status: 204, afterMs };
      case "slow":
        return { kind: "answer", status: 204, afterMs: afterMs * random.between(5, 60) };
      case "fails":
        return { kind: "answer", status: 500, afterMs };
      case "unavailable":
        return { kind: "answer", status: 503, afterMs, retryAfterMs: random.below(8) * 1_000 };
      case "limits":
        return { kind: "answer", status: 429, afterMs, retryAfterMs: random.below(4) * 1_000 };
      case "refuses":
        return { kind: "refused", afterMs };
      case "hangs":
        return { kind: "never" };
    }
  }
}
