import type { Clock } from "../../../clock.ts";
import { Mac, type MacAlgorithm, type MacPadding } from "./mac.ts";

export interface MacForm {
  readonly algorithm: MacAlgorithm;
  readonly padding: MacPadding;
}

/** As long as a late answer is still known: it may have its MAC under the key before. */
const formerForMs = 600_000;

/** The key of a link's MACs, and for a while the previous one, for answers to earlier requests. */
export class MacKeys {
  readonly #form: MacForm;
  readonly #clock: Clock;
  #key: Buffer;
  #mac: Mac;
  #former: { readonly mac: Mac; readonly untilMs: number } | undefined;

  /** @throws RangeError when the algorithm wants another length */
  constructor(form: MacForm, key: Buffer, clock: Clock) {
    this.#form = form;
    this.#clock = clock;
    this.#key = key;
    this.#mac = this.#of(key);
  }

  /**
   * From now on messages have a MAC under this key.
   *
   * @returns false for the key that is in use already
   * @throws RangeError as above, and nothing changes
   */
  replace(key: Buffer): boolean {
    if (key.equals(this.#key)) return false;
    const mac = this.#of(key);
    this.#former = { mac: this.#mac, untilMs: this.#clock.monotonicMs() + formerForMs };
    this.#key = key;
    this.#mac = mac;
    return true;
  }

  #of(key: Buffer): Mac {
    return new Mac(this.#form.algorithm, key, this.#form.padding);
  }

  of(bytes: Buffer): string {
    return this.#mac.of(bytes);
  }

  fits(bytes: Buffer, mac: string): boolean {
    if (this.#mac.fits(bytes, mac)) return true;
    const former = this.#former;
    return former !== undefined && former.untilMs > this.#clock.monotonicMs() && former.mac.fits(bytes, mac);
  }
}
