import { ServiceError } from "../errors.ts";
import type { PartnerId } from "../ids.ts";
import type { PartnerRegistry } from "./registry.ts";

/** All that a partner left behind, in its home and beside it. */
export interface PartnerArchiveStore {
  /** Each reason why the partner cannot go yet, as the end of a sentence. */
  obstacles(id: PartnerId): Promise<readonly string[]>;
  /** Every row as one line of JSON, `{"table": …, "row": …}`, in pages. Keys and cards are left out. */
  lines(id: PartnerId): AsyncIterable<readonly string[]>;
  /** The number of those lines. */
  count(id: PartnerId): Promise<number>;
  /**
   * Deletes the rows, the partner's own last. Safe to repeat.
   *
   * @throws ServiceError `partner_in_use` if it is enabled meanwhile
   */
  remove(id: PartnerId): Promise<void>;
}

export interface PartnerArchiveParts {
  readonly registry: Pick<PartnerRegistry, "find">;
  readonly store: PartnerArchiveStore;
  /** Called after the partner was deleted. */
  changed(id: PartnerId): Promise<void>;
}

/** Exports a partner that has left, and deletes it: in this order, and only when nothing of it is under way. */
export class PartnerArchive {
  readonly #parts: PartnerArchiveParts;

  constructor(parts: PartnerArchiveParts) {
    this.#parts = parts;
  }

  /** @throws ServiceError `not_found`, `partner_in_use` */
  async export(id: PartnerId): Promise<AsyncIterable<readonly string[]>> {
    await this.#requireIdle(id);
    return this.#parts.store.lines(id);
  }

  /**
   * @param records the number of lines that were exported: another one means that the export is not of this state
   * @throws ServiceError `not_found`, `partner_in_use`
   */
  async remove(id: PartnerId, records: number): Promise<void> {
    await this.#requireIdle(id);
    const count = await this.#parts.store.count(id);
    if (count !== records) {
      throw new ServiceError("partner_in_use", `Its archive has ${records} lines, and the partner ${count}.`);
    }
    await this.#parts.store.remove(id);
    await this.#parts.changed(id).catch(() => undefined);
  }

  async #requireIdle(id: PartnerId): Promise<void> {
    const partner = await this.#parts.registry.find(id);
    if (partner === undefined) throw new ServiceError("not_found", "There is no such partner.");
    const obstacles = [
      ...(partner.state === "disabled" ? [] : ["it is not disabled"]),
      ...(await this.#parts.store.obstacles(id)),
    ];
    if (obstacles.length > 0) throw new ServiceError("partner_in_use", `The partner stays: ${obstacles.join("; ")}.`);
  }
}
