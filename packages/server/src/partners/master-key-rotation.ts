import type { KeyPlace, MasterKey } from "./master-key.ts";
import { NotSealedByThisKey } from "./master-key.ts";

export interface SealedKey extends KeyPlace {
  readonly material: Buffer;
}

/** What is stored under a master key. */
export interface ReSealStore {
  /** Keys of partners that another master key than this one sealed, in order, after this one. */
  sealedByOthers(masterKeyId: string, after: SealedKey | undefined, limit: number): Promise<readonly SealedKey[]>;
  /** Nothing happens to what was changed meanwhile: that is sealed under the newer key already. */
  reseal(keys: readonly { readonly from: SealedKey; readonly material: Buffer }[]): Promise<void>;
  namedValues(): Promise<readonly { readonly name: string; readonly sealed: Buffer }[]>;
  resealNamed(name: string, from: Buffer, to: Buffer): Promise<void>;
}

/** What a rotation came to. */
export interface ReSealed {
  /** Sealed anew under the current master key. */
  readonly sealed: number;
  /** Left as they are, because no master key that was given opens them. */
  readonly notOpened: number;
}

const batchRows = 100;

/**
 * Seals under the current master key what another one sealed, a batch at a time. A service that holds both keys goes on
 * meanwhile. Broken off, it goes on with the next call: what is done is known by the key's id in each value.
 *
 * @param onBatch told after each batch how many are done
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
