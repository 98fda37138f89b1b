import type { KeyObject } from "node:crypto";
import type { Logger } from "pino";
import type { Acquirers, Card } from "../../acquirer/acquirer.ts";
import type { ChainId, PartnerId } from "../../ids.ts";
import { openValue, sealValue } from "../../partners/master-key.ts";

/** Sealed cards, by the chain of their transaction. They are inserted with its INIT. */
export interface CardStore {
  find(partnerId: PartnerId, chainIds: readonly ChainId[]): Promise<ReadonlyMap<ChainId, Buffer>>;
}

export interface CardVaultParts {
  readonly cards: CardStore;
  readonly acquirers: Pick<Acquirers, "of">;
  /** A key that is used for nothing else. */
  readonly key: KeyObject;
  readonly log: Logger;
}

interface CardOwner {
  readonly partnerId: PartnerId;
  readonly chainId: ChainId;
  readonly acquirer: string;
}

/**
 * Stores cards while their transactions may need them, for acquirers that want them in Reversals, Voids and batch
 * uploads. A card is sealed under a key of its own, bound to its row, and deleted once no message can need it.
 */
export class CardVault {
  readonly #parts: CardVaultParts;

  constructor(parts: CardVaultParts) {
    this.#parts = parts;
  }

  /** The value to store; null if no later message needs it. */
  seal({ partnerId, chainId, acquirer }: CardOwner, { cardToken, swipeType, expDate }: Card): Buffer | null {
    const { acquirers, key } = this.#parts;
    if (acquirers.of(acquirer).wantsCards !== true) return null;
    return sealValue(
      key,
      Buffer.from(JSON.stringify([cardToken, swipeType, expDate])),
      cardContext(partnerId, chainId),
    );
  }

  /** The card fields of a follow-up message; none if no card is stored. */
  async of(owner: CardOwner): Promise<Partial<Card>> {
    return (await this.all(owner, [owner.chainId])).get(owner.chainId) ?? {};
  }

  /** A card that does not open is logged and left out: a Reversal without its card is better than none. */
  async all(
    { partnerId, acquirer }: Omit<CardOwner, "chainId">,
    chainIds: readonly ChainId[],
  ): Promise<ReadonlyMap<ChainId, Card>> {
    const { acquirers, cards } = this.#parts;
    if (acquirers.of(acquirer).wantsCards !== true || chainIds.length === 0) return new Map();
    const sealed = await cards.find(partnerId, chainIds);
    return new Map([...sealed].flatMap(([chainId, value]) => this.#opened(partnerId, chainId, value)));
  }

  #opened(partnerId: PartnerId, chainId: ChainId, sealed: Buffer): [ChainId, Card][] {
    try {
      const plain = openValue(this.#parts.key, sealed, cardContext(partnerId, chainId)).toString();
      const [cardToken = "", swipeType = "", expDate = ""] = JSON.parse(plain) as readonly string[];
      return [[chainId, { cardToken, swipeType, expDate }]];
    } catch (error) {
      this.#parts.log.error({ err: error, chain: chainId }, "a kept card does not open: its row was changed");
      return [];
    }
  }
}

function cardContext(partnerId: PartnerId, chainId: ChainId): string {
  return `paybell card\n${partnerId}\n${chainId}`;
}
