import { Cooldown } from "../bounded-map.ts";
import type { Clock } from "../clock.ts";
import { badFields, type FieldProblem, ServiceError } from "../errors.ts";
import { nameProblems } from "../guards/safe-text.ts";
import { type KeyId, newId, type PartnerId } from "../ids.ts";
import { apiKeyHash, newSecret } from "./keys.ts";
import type { ApiKeyScope } from "./partner.ts";
import type { ApiKeyStore, StoredKey } from "./store.ts";

/** The scopes of API keys, the weakest first. */
export const apiKeyScopes = ["read", "pull", "commands", "manage"] as const satisfies readonly ApiKeyScope[];

export interface NewApiKey {
  readonly name: string;
  readonly scopes: readonly ApiKeyScope[];
  /** Absent: it is valid until it is revoked. */
  readonly expiresInDays?: number | undefined;
}

/** The key itself is shown only once. */
export interface MadeApiKey {
  readonly id: KeyId;
  readonly apiKey: string;
}

const keysMax = 20;
const expiresInDaysMax = 3_660;
const daySeconds = 86_400;
const usedEveryMs = 60_000;
const rememberedMax = 20_000;

/** Additional API keys of a partner: each has a name and scopes. */
export class ApiKeys {
  readonly #store: ApiKeyStore;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #changed: (id: PartnerId) => Promise<void>;
  readonly #used = new Cooldown<KeyId>(usedEveryMs, rememberedMax);

  /** @param changed called after each change; its result is awaited, its failure is ignored */
  constructor(
    store: ApiKeyStore,
    clock: Pick<Clock, "monotonicMs">,
    changed: (id: PartnerId) => Promise<void> = async () => undefined,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#changed = changed;
  }

  /**
   * @param within the scopes of the caller: a key cannot create one that allows more. Null: everything
   * @param maker the key of the caller: the new one expires with it at the latest
   * @throws ServiceError `not_found`, `scope_not_allowed`, `too_many_api_keys`, or naming each invalid field
   */
  async add(
    partnerId: PartnerId,
    input: NewApiKey,
    within: readonly ApiKeyScope[] | null,
    maker: KeyId | null = null,
  ): Promise<MadeApiKey> {
    requireValidApiKey(input);
    const beyond = input.scopes.filter((scope) => within !== null && !within.includes(scope));
    if (beyond.length > 0) throw scopeNotAllowed(beyond);
    const id = newId<"key">();
    const { text } = newSecret("apiKey");
    const { name, scopes, expiresInDays } = input;
    const added = await this.#store.addApiKey(
      partnerId,
      {
        id,
        material: apiKeyHash(text),
        name,
        scopes,
        expiresInS: expiresInDays === undefined ? null : expiresInDays * daySeconds,
        maker,
      },
      keysMax,
    );
    if (added === "no such partner") throw new ServiceError("not_found");
    if (added === "too many") throw new ServiceError("too_many_api_keys", `${keysMax} API keys stand already.`);
    await this.#notify(partnerId);
    return { id, apiKey: text };
  }

  /**
   * Every instance refuses it within five seconds. A partner's own key must not lock out the partner, so only an
   * operator revokes any key.
   *
   * @param by the scopes of the caller's key (null: everything), or an operator
   * @throws ServiceError `not_found`, `scope_not_allowed`, `last_managing_key`
   */
  async revoke(partnerId: PartnerId, keyId: KeyId, by: readonly ApiKeyScope[] | null | "operator"): Promise<void> {
    const ended = await this.#store.endApiKey(partnerId, keyId, (key, others) => {
      if (by !== "operator") requireRevocable(key, others, by);
    });
    if (!ended) throw new ServiceError("not_found", "There is no such API key.");
    await this.#notify(partnerId);
  }

  /** The time is informative, to the minute: a request neither waits for it, nor fails with it. */
  used(partnerId: PartnerId, keyId: KeyId): void {
    if (!this.#used.begin(keyId, this.#clock.monotonicMs())) return;
    this.#store.apiKeyUsed(partnerId, keyId).catch(() => this.#used.end(keyId));
  }

  async #notify(partnerId: PartnerId): Promise<void> {
    await this.#changed(partnerId).catch(() => undefined);
  }
}

export function scopeNotAllowed(scopes: readonly ApiKeyScope[]): ServiceError {
  return new ServiceError("scope_not_allowed", `This takes the scope ${scopes.join(", ")}, which this key lacks.`);
}

/**
 * A key that ends before the revoked one does not replace it: the partner would be locked out a little later.
 *
 * @param others the partner's other valid API keys
 */
function requireRevocable(key: StoredKey, others: readonly StoredKey[], within: readonly ApiKeyScope[] | null): void {
  if (within !== null) {
    const beyond = apiKeyScopes.filter((scope) => allows(key, scope) && !within.includes(scope));
    if (beyond.length > 0) throw scopeNotAllowed(beyond);
    if (key.scopes === null) throw new ServiceError("scope_not_allowed", "Only a key without limits revokes this one.");
  }
  if (!allows(key, "manage")) return;
  if (!others.some((other) => allows(other, "manage") && endMs(other) >= endMs(key))) {
    throw new ServiceError("last_managing_key", "No other key with the scope manage is valid as long as this one.");
  }
}

function allows({ scopes }: StoredKey, scope: ApiKeyScope): boolean {
  return scopes === null || scopes.includes(scope);
}

function endMs({ expiresAt }: StoredKey): number {
  return expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
}

/** @throws ServiceError naming each invalid field */
export function requireValidApiKey(input: NewApiKey): void {
  const [first, ...rest] = problemsOf(input);
  if (first !== undefined) throw badFields([first, ...rest]);
}

function problemsOf({ name, scopes, expiresInDays = 1 }: NewApiKey): FieldProblem[] {
  const problems = nameProblems(name);
  if (scopes.length === 0 || new Set(scopes).size < scopes.length) {
    const message = `scopes must name at least one of ${apiKeyScopes.join(", ")}, and none twice.`;
    problems.push({ field: "scopes", code: "invalid_value", message });
  }
  if (!Number.isInteger(expiresInDays) || expiresInDays < 1 || expiresInDays > expiresInDaysMax) {
    const message = `expiresInDays must be a whole number from 1 to ${expiresInDaysMax}.`;
    problems.push({ field: "expiresInDays", code: "invalid_value", message });
  }
  return problems;
}
