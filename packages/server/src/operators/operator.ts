import { hash, randomBytes } from "node:crypto";
import type { Id } from "../ids.ts";

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
  /** Deletes tokens of sign-ins that are over: the audit has who signed in. */
  dropOverSignIns(): Promise<void>;
}

/** The actor of a token of the settings. */
export const bootstrap = "bootstrap";
/** Ends the name of who signed in by OpenID: it is the provider's, and no token's name ends so. */
export const ofOpenId = " (OIDC)";

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

export function operatorTokenHash(token: string): Buffer {
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
