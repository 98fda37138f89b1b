import type { KeyPlace, MasterKey } from "./master-key.ts";
import { NotSealedByThisKey } from "./master-key.ts";

export interface SealedKey extends KeyPlace {
  readonly material: Buffer;
}

/** The values stored under a master key. */
export interface ReSealStore {
  /** Keys of partners sealed by another master key than this one, in order, after `after`. */
  sealedByOthers(masterKeyId: string, after: SealedKey | undefined, limit: number): Promise<readonly SealedKey[]>;
  /** Values changed meanwhile are skipped: they are sealed under the newer key already. */
  reseal(keys: readonly { readonly from: SealedKey; readonly material: Buffer }[]): Promise<void>;
  namedValues(): Promise<readonly { readonly name: string; readonly sealed: Buffer }[]>;
  resealNamed(name: string, from: Buffer, to: Buffer): Promise<void>;
}

/** The result of a rotation. */
export interface ReSealed {
  /** Sealed again under the current master key. */
  readonly sealed: number;
  /** Unchanged, because none of the given master keys opens them. */
  readonly notOpened: number;
}

const batchRows = 100;

/**
 * Seals again under the current master key, a batch at a time. A service that has both keys runs meanwhile. After an
 * interruption the next call continues: each value contains its key's id.
 *
 * @param onBatch called after each batch with the number done
 */
export async function resealAll(
  store: ReSealStore,
  masterKey: MasterKey,
  onBatch: (sealed: number) => void = () => undefined,
): Promise<ReSealed> {
  let sealed = 0;
  let notOpened = 0;
  for (let after: SealedKey | undefined; ; ) {
    const page = await store.sealedByOthers(masterKey.id, after, batchRows);
    const opened = page.flatMap((from) => {
      const plain = openedBy(() => masterKey.open(from.material, from));
      return plain === undefined ? [] : [{ from, material: masterKey.seal(plain, from) }];
    });
    await store.reseal(opened);
    sealed += opened.length;
    notOpened += page.length - opened.length;
    after = page.at(-1);
    if (after === undefined) break;
    onBatch(sealed);
  }
  for (const { name, sealed: from } of await store.namedValues()) {
    if (masterKey.isCurrent(from)) continue;
    const plain = openedBy(() => masterKey.openNamed(from, name));
    if (plain === undefined) notOpened += 1;
    else await store.resealNamed(name, from, masterKey.sealNamed(plain, name));
  }
  return { sealed, notOpened };
}

function openedBy(open: () => Buffer): Buffer | undefined {
  try {
    return open();
  } catch (error) {
    if (error instanceof NotSealedByThisKey) return undefined;
    throw error;
  }
}
