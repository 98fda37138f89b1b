import { hash, randomBytes } from "node:crypto";
import { BoundedMap, Cooldown } from "../bounded-map.ts";
import type { Clock } from "../clock.ts";
import { badFields, type FieldProblem, ServiceError } from "../errors.ts";
import { nameProblems } from "../guards/safe-text.ts";
import { type Id, newId } from "../ids.ts";

export type OperatorId = Id<"operator">;

/** Each role includes the ones before it. */
export const roles = ["viewer", "operator", "admin"] as const;
export type Role = (typeof roles)[number];

export interface OperatorRecord {
  readonly id: OperatorId;
  /** Ends with {@link ofOpenId} for a token created by a sign-in. */
  readonly name: string;
  readonly role: Role;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
  /** The identity from the OpenID provider, for a token created by a sign-in; null for one that an admin created. */
  readonly subject: string | null;
}

export interface OperatorStore {
  add(
    operator: Pick<OperatorRecord, "id" | "name" | "role" | "expiresAt" | "subject">,
    tokenHash: Buffer,
  ): Promise<OperatorRecord>;
  list(): Promise<readonly OperatorRecord[]>;
  findByToken(tokenHash: Buffer): Promise<OperatorRecord | undefined>;
  /** Undefined for an unknown id; revoking twice keeps the first time. */
  revoke(id: OperatorId): Promise<OperatorRecord | undefined>;
  used(id: OperatorId): Promise<void>;
  /** Deletes tokens of sign-ins that are over, but not the last two admins: the audit has who signed in. */
  dropOverSignIns(): Promise<void>;
}

/** The actor of a token of the settings. */
export const bootstrap = "bootstrap";
/** Ends the name of who signed in by OpenID: it is the provider's, and no token's name ends so. */
const ofOpenId = " (OIDC)";

/** The operator who sent a request. */
export interface Actor {
  readonly name: string;
  readonly role: Role;
  /** The operator's id; `bootstrap` for a token of the settings. */
  readonly tokenId: string;
  /** As {@link OperatorRecord.subject}. */
  readonly subject: string | null;
}

const tokenPrefix = "pbo_";
const tokenShape = /^pbo_[A-Za-z0-9_-]{43}$/;

export function newOperatorToken(random: (bytes: number) => Buffer = randomBytes): string {
  return tokenPrefix + random(32).toString("base64url");
}

export function isOperatorToken(text: string): boolean {
  return tokenShape.test(text);
}

function operatorTokenHash(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

/** Text as people read it: without case, kinds of spaces, and characters that nobody sees. */
export function folded(name: string): string {
  const seen = name.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}|\p{Cf}/gu, "");
  return seen.trim().replaceAll(/\s+/g, " ").toLowerCase();
}

export function mayAs(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** A person who signed in, according to the OpenID provider. */
export interface SignedInPerson {
  /** Issuer and `sub`: it stays when the person is renamed. */
  readonly subject: string;
  readonly name: string;
  readonly role: Role;
}

export interface NewOperator {
  readonly name: string;
  readonly role: Role;
  readonly expiresInDays?: number | undefined;
}

const expiresInDaysDefault = 90;
const expiresInDaysMax = 366;
/** As long as a session of the console lasts at most. */
const signInMs = 12 * 3_600_000;
const dayMs = 86_400_000;
/** A revoked token must be refused by every instance within seconds. */
const knownForMs = 2_000;
const usedEveryMs = 60_000;
const knownMax = 1_000;

interface Known {
  readonly operator: OperatorRecord | undefined;
  readonly untilMs: number;
}

/** Named operators: their tokens, and their roles. */
export class Operators {
  readonly #store: OperatorStore;
  readonly #clock: Clock;
  readonly #known = new BoundedMap<string, Known>(knownMax);
  readonly #recentlyUsed = new Cooldown<OperatorId>(usedEveryMs, knownMax);

  constructor(store: OperatorStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Finds the owner of a token; undefined if it is unknown, was revoked, or has expired. */
  async find(token: string): Promise<OperatorRecord | undefined> {
    if (!isOperatorToken(token)) return undefined;
    const hash = operatorTokenHash(token);
    const operator = await this.#find(hash);
    if (operator === undefined || operator.revokedAt !== null) return undefined;
    if (operator.expiresAt.getTime() <= this.#clock.nowMs()) return undefined;
    this.#used(operator.id);
    return operator;
  }

  /** @returns the token, which is shown only once */
  async add(input: NewOperator): Promise<{ readonly operator: OperatorRecord; readonly token: string }> {
    requireValidOperator(input);
    const { expiresInDays = expiresInDaysDefault } = input;
    return this.#add(input, expiresInDays * dayMs, null);
  }

  /** A user authenticated by the OpenID provider has a token of their own until the session ends. */
  async signIn({ subject, ...input }: SignedInPerson): ReturnType<Operators["add"]> {
    requireNone(nameProblems(input.name));
    const added = await this.#add({ ...input, name: input.name + ofOpenId }, signInMs, subject);
    await this.#store.dropOverSignIns();
    return added;
  }

  async #add(input: NewOperator, lifeMs: number, subject: string | null): ReturnType<Operators["add"]> {
    const token = newOperatorToken();
    const { name, role } = input;
    const expiresAt = new Date(this.#clock.nowMs() + lifeMs);
    const operator = await this.#store.add({ id: newId(), name, role, expiresAt, subject }, operatorTokenHash(token));
    return { operator, token };
  }

  list(): Promise<readonly OperatorRecord[]> {
    return this.#store.list();
  }

  /** @throws ServiceError `not_found` */
  async revoke(id: OperatorId): Promise<OperatorRecord> {
    const revoked = await this.#store.revoke(id);
    this.#known.clear();
    if (revoked === undefined) throw new ServiceError("not_found", "There is no such operator.");
    return revoked;
  }

  async #find(hash: Buffer): Promise<OperatorRecord | undefined> {
    const key = hash.toString("hex");
    const nowMs = this.#clock.monotonicMs();
    const known = this.#known.get(key);
    if (known !== undefined && known.untilMs > nowMs) return known.operator;
    const operator = await this.#store.findByToken(hash);
    this.#known.set(key, { operator, untilMs: nowMs + knownForMs });
    return operator;
  }

  #used(id: OperatorId): void {
    if (!this.#recentlyUsed.begin(id, this.#clock.monotonicMs())) return;
    // The time is informative: a request neither waits for it, nor fails with it.
    this.#store.used(id).catch(() => this.#recentlyUsed.end(id));
  }
}

/** @throws ServiceError naming each invalid field */
export function requireValidOperator(input: NewOperator): void {
  requireNone(problemsOf(input));
}

function requireNone([first, ...rest]: readonly FieldProblem[]): void {
  if (first !== undefined) throw badFields([first, ...rest]);
}

function problemsOf({ name, role, expiresInDays = expiresInDaysDefault }: NewOperator): FieldProblem[] {
  const problems = nameProblems(name);
  if (isReserved(name)) {
    const message = `name must not be ${bootstrap}, begin with "partner " or end with "${ofOpenId.trim()}".`;
    problems.push({ field: "name", code: "invalid_value", message });
  }
  if (!roles.includes(role)) {
    problems.push({ field: "role", code: "invalid_value", message: `role must be one of ${roles.join(", ")}.` });
  }
  if (!Number.isInteger(expiresInDays) || expiresInDays < 1 || expiresInDays > expiresInDaysMax) {
    const message = `expiresInDays must be a whole number from 1 to ${expiresInDaysMax}.`;
    problems.push({ field: "expiresInDays", code: "invalid_value", message });
  }
  return problems;
}

/** Whether the audit could show this name for somebody else. */
function isReserved(name: string): boolean {
  const read = folded(name);
  return read === bootstrap || read.startsWith("partner ") || read.endsWith(folded(ofOpenId));
}

export interface EndedSessionStore {
  /** Ending one twice changes nothing. */
  add(id: Buffer, endsAtMs: number): Promise<void>;
  has(id: Buffer): Promise<boolean>;
}

/** Another instance refuses an ended session after this time at the latest. */
const openForMs = 2_000;
const openMax = 10_000;

/** Sessions of the console that were ended by a sign-out, on any instance. */
export class EndedSessions {
  readonly #store: EndedSessionStore;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Sessions that had not ended: until when that is believed. */
  readonly #openUntilMs = new BoundedMap<string, number>(openMax);

  constructor(store: EndedSessionStore, clock: Pick<Clock, "monotonicMs">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** @param endsAtMs when the last copy of its cookie expires */
  async add(id: Buffer, endsAtMs: number): Promise<void> {
    await this.#store.add(id, endsAtMs);
    this.#openUntilMs.delete(id.toString("hex"));
  }

  async has(id: Buffer): Promise<boolean> {
    const key = id.toString("hex");
    const nowMs = this.#clock.monotonicMs();
    if ((this.#openUntilMs.get(key) ?? Number.NEGATIVE_INFINITY) > nowMs) return false;
    const hasEnded = await this.#store.has(id);
    if (hasEnded) return true;
    this.#openUntilMs.set(key, nowMs + openForMs);
    return false;
  }
}
