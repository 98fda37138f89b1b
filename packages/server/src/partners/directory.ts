import { createPrivateKey } from "node:crypto";
import { BoundedMap } from "../bounded-map.ts";
import { type Clock, within } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import type { PartnerId } from "../ids.ts";
import { apiKeyHash, isApiKey, keyObject } from "./keys.ts";
import type { MasterKey } from "./master-key.ts";
import type { ApiKeyHolder, Partner, PartnerDirectory, PartnerKeys } from "./partner.ts";
import { completeSettings, type DefaultSettings } from "./settings/settings.ts";
import type { LoadedKey, LoadedPartner, PartnerStates } from "./store.ts";

export interface DirectoryOptions {
  readonly store: PartnerStates;
  readonly masterKey: MasterKey;
  readonly defaults: DefaultSettings;
  readonly clock: Clock;
  /** The forms in which the store has the hash of an API key; absent: as it is. */
  readonly storedAs?: (hash: Buffer) => readonly Buffer[];
  /** A refresh failed: snapshots get older, and are refused when they are too old. */
  readonly onError: (error: unknown) => void;
}

/** Older snapshots are refused: every instance must notice a rotated key or a paused partner in time. */
export const ageMaxMs = 5_000;
const refreshEveryMs = 2_000;
const evictAfterMs = 60_000;

interface Entry {
  readonly fingerprint: string;
  readonly partner: Partner;
  /** The valid API keys, by the hexadecimal form of their hashes. */
  readonly apiKeys: ReadonlyMap<string, LoadedKey>;
  readonly keyObjects: ReadonlyMap<string, PartnerKeys["signing"]>;
  /** Monotonic: before the query was sent that last confirmed it. */
  confirmedMs: number;
  usedMs: number;
}

interface Waiter {
  readonly id: PartnerId;
  resolve(partner: Partner | undefined): void;
  reject(error: unknown): void;
}

/** Cached partners, at most five seconds old by the monotonic clock. One query refreshes all partners in use. */
export class CachedPartners implements PartnerDirectory {
  readonly #options: DirectoryOptions;
  readonly #entries = new Map<PartnerId, Entry>();
  readonly #owners: ApiKeyOwners;
  #waiting: Waiter[] = [];
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #onChanged: (id: PartnerId) => void = () => undefined;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.#owners = new ApiKeyOwners(options.store, options.clock);
  }

  /** Refreshes partners in use until `stop`. */
  start(): void {
    this.#timer ??= setInterval(() => void this.#refresh().catch(this.#options.onError), refreshEveryMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  cached(id: PartnerId): Partner | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    const nowMs = this.#options.clock.monotonicMs();
    entry.usedMs = nowMs;
    return nowMs - entry.confirmedMs <= ageMaxMs ? entry.partner : undefined;
  }

  async find(id: PartnerId): Promise<Partner | undefined> {
    return this.cached(id) ?? (await this.#load(id));
  }

  /** As `find`, but undefined for one whose keys cannot be opened: for a list, which shows the others too. */
  async findReadable(id: PartnerId): Promise<Partner | undefined> {
    return await this.find(id).catch((error: unknown) => {
      if (error instanceof ServiceError) throw error;
      return undefined;
    });
  }

  /** @param onChanged called for each cached partner that has changed, or was too old and is confirmed again */
  watch(onChanged: (id: PartnerId) => void): void {
    this.#onChanged = onChanged;
  }

  async findByApiKey(apiKey: string): Promise<ApiKeyHolder | undefined> {
    if (!isApiKey(apiKey)) return undefined;
    const hash = apiKeyHash(apiKey);
    const owner = this.#owners.cached(hash) ?? (await withinAge(this.#owners.find(hash)));
    if (owner === undefined) return undefined;
    const partner = await this.find(owner);
    const keys = this.#entries.get(owner)?.apiKeys;
    const stored = this.#options.storedAs?.(hash) ?? [hash];
    const key = stored.map((form) => keys?.get(form.toString("hex"))).find((found) => found !== undefined);
    return partner && key && { partner, keyId: key.id, scopes: key.scopes ?? null };
  }

  /** This partner changed: resolves when the change is visible here. Until then the last snapshot is used. */
  async invalidate(id: PartnerId): Promise<void> {
    if (this.#entries.has(id) || this.#refreshing !== undefined) await this.#load(id);
  }

  /** Waits for a refresh that begins after this call. */
  #load(id: PartnerId): Promise<Partner | undefined> {
    const loaded = new Promise<Partner | undefined>((resolve, reject) => this.#waiting.push({ id, resolve, reject }));
    // One at a time: callers during one share the next. Failures reach the waiters.
    if (this.#refreshing === undefined) this.#refresh().catch(() => undefined);
    return withinAge(loaded);
  }

  #refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshOnce().finally(() => {
      this.#refreshing = undefined;
      if (this.#waiting.length > 0) this.#refresh().catch(() => undefined);
    });
    return this.#refreshing;
  }

  async #refreshOnce(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      const unreadable = await this.#read(waiting.map((waiter) => waiter.id));
      for (const waiter of waiting) {
        if (unreadable.has(waiter.id)) waiter.reject(unreadable.get(waiter.id));
        else waiter.resolve(this.#entries.get(waiter.id)?.partner);
      }
    } catch (error) {
      for (const waiter of waiting)
        waiter.reject(new ServiceError("unavailable", undefined, { retryAfterS: 2, cause: error }));
      throw error;
    }
  }

  /** Resolves to the partners whose keys cannot be opened, with the reason: the others must not be affected. */
  async #read(wanted: readonly PartnerId[]): Promise<ReadonlyMap<PartnerId, unknown>> {
    const unreadable = new Map<PartnerId, unknown>();
    const sentMs = this.#options.clock.monotonicMs();
    for (const [id, entry] of this.#entries) if (sentMs - entry.usedMs > evictAfterMs) this.#entries.delete(id);
    const ids = [...new Set([...this.#entries.keys(), ...wanted])];
    if (ids.length === 0) return unreadable;
    const fingerprints = await this.#options.store.fingerprints(ids);
    const changed: PartnerId[] = [];
    for (const id of ids) {
      const entry = this.#entries.get(id);
      const fingerprint = fingerprints.get(id);
      if (fingerprint === undefined) {
        if (this.#entries.delete(id)) this.#onChanged(id);
      } else if (entry?.fingerprint === fingerprint) this.#confirm(id, entry, sentMs);
      else changed.push(id);
    }
    if (changed.length === 0) return unreadable;
    for (const loaded of await this.#options.store.load(changed)) {
      try {
        this.#entries.set(loaded.id, this.#entry(loaded, sentMs));
        this.#onChanged(loaded.id);
      } catch (error) {
        this.#entries.delete(loaded.id);
        unreadable.set(loaded.id, error);
        this.#options.onError(error);
      }
    }
    return unreadable;
  }

  #confirm(id: PartnerId, entry: Entry, sentMs: number): void {
    const wasTooOld = this.#options.clock.monotonicMs() - entry.confirmedMs > ageMaxMs;
    entry.confirmedMs = sentMs;
    if (wasTooOld) this.#onChanged(id);
  }

  #entry(loaded: LoadedPartner, sentMs: number): Entry {
    const before = this.#entries.get(loaded.id);
    const keyObjects = new Map<string, PartnerKeys["signing"]>();
    for (const { id, kind, material } of loaded.keys) {
      if (kind === "apiKey" || kind === "callbackKey") continue;
      const open = () => this.#options.masterKey.open(material, { partnerId: loaded.id, keyId: id, kind });
      keyObjects.set(id, before?.keyObjects.get(id) ?? keyObject(kind, id, open()));
    }
    const { id, state, pauses } = loaded;
    const settings = completeSettings(loaded.settings, this.#options.defaults);
    return {
      fingerprint: loaded.fingerprint,
      partner: {
        id,
        state,
        settings,
        pauses,
        keys: { ...currentKeys(loaded, keyObjects), ...this.#client(loaded, before) },
      },
      apiKeys: new Map(
        loaded.keys.flatMap((key) => (key.kind === "apiKey" ? [[key.material.toString("hex"), key] as const] : [])),
      ),
      keyObjects,
      confirmedMs: sentMs,
      usedMs: before?.usedMs ?? sentMs,
    };
  }

  #client({ id: partnerId, keys }: LoadedPartner, before: Entry | undefined): Pick<PartnerKeys, "client"> {
    const stored = keys.find(({ kind }) => kind === "callbackKey");
    if (stored === undefined) return {};
    const { id, kind, material } = stored;
    const known = before?.partner.keys.client;
    if (known?.id === id) return { client: known };
    const plain = this.#options.masterKey.open(material, { partnerId, keyId: id, kind });
    const { certificate, key } = JSON.parse(plain.toString()) as Opened;
    return { client: { id, certificate, key: createPrivateKey(key) } };
  }
}

interface Opened {
  readonly certificate: string;
  readonly key: string;
}

/** The valid versions, the newest first: that one encrypts and signs, and every webhook secret signs the headers. */
function currentKeys(loaded: LoadedPartner, keyObjects: ReadonlyMap<string, PartnerKeys["signing"]>): PartnerKeys {
  const ofKind = (kind: string) =>
    loaded.keys.flatMap((key) => {
      const made = key.kind === kind ? keyObjects.get(key.id) : undefined;
      return made === undefined ? [] : [made];
    });
  const [encryption] = ofKind("encryptionKey");
  const [signing] = ofKind("signingKey");
  if (encryption === undefined || signing === undefined) {
    throw new Error(`The partner ${loaded.id} has no encryption or signing key that stands now.`);
  }
  return { encryption, signing, webhook: ofKind("webhookSecret") };
}

/** A slower result would be too old. */
async function withinAge<Result>(result: Promise<Result>): Promise<Result> {
  const inTime = await within(
    ageMaxMs,
    result.then((value) => ({ value })),
  );
  if (inTime === undefined) throw new ServiceError("unavailable", undefined, { retryAfterS: 2 });
  return inTime.value;
}

/** The time for which an unknown key is cached as unknown; a key just registered was never looked up before. */
const unknownForMs = 2_000;
const rememberedMax = 20_000;
/** Maximum number of callers with unknown keys that wait for the database. */
const waitingMax = 1_000;

interface Question {
  readonly hash: Buffer;
  readonly resolve: (owner: PartnerId | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Finds the partner that a hash of an API key belongs to, or ever belonged to: that never changes, so it is cached.
 * Whether the key is still valid is in the partner's snapshot. All callers during a query share the next one.
 */
export class ApiKeyOwners {
  readonly #store: PartnerStates;
  readonly #clock: Clock;
  readonly #owners = new BoundedMap<string, PartnerId>(rememberedMax);
  readonly #unknownSince = new BoundedMap<string, number>(rememberedMax);
  #waiting: Question[] = [];
  #asking = false;

  constructor(store: PartnerStates, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The owner, if it was found before. */
  cached(hash: Buffer): PartnerId | undefined {
    return this.#owners.get(hash.toString("hex"));
  }

  /** @throws ServiceError `unavailable`, rejected */
  async find(hash: Buffer): Promise<PartnerId | undefined> {
    const owner = this.cached(hash);
    if (owner !== undefined) return owner;
    const unknownSince = this.#unknownSince.get(hash.toString("hex"));
    if (unknownSince !== undefined && this.#clock.monotonicMs() - unknownSince <= unknownForMs) return undefined;
    if (this.#waiting.length >= waitingMax) throw new ServiceError("unavailable", undefined, { retryAfterS: 2 });
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ hash, resolve, reject });
      if (!this.#asking) void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    while (this.#waiting.length > 0) {
      const questions = this.#waiting;
      this.#waiting = [];
      try {
        const owners = await this.#store.partnersByApiKey(questions.map((question) => question.hash));
        for (const question of questions) question.resolve(this.#learn(question.hash.toString("hex"), owners));
      } catch (error) {
        const unavailable = new ServiceError("unavailable", undefined, { retryAfterS: 2, cause: error });
        for (const question of questions) question.reject(unavailable);
      }
    }
    this.#asking = false;
  }

  #learn(hex: string, owners: ReadonlyMap<string, PartnerId>): PartnerId | undefined {
    const owner = owners.get(hex);
    if (owner === undefined) this.#unknownSince.set(hex, this.#clock.monotonicMs());
    else this.#owners.set(hex, owner);
    return owner;
  }
}
