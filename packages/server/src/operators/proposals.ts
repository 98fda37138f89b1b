import type { PartnerId, ProposalId } from "../ids.ts";
import { type Actor, folded } from "./operators.ts";

/**
 * Actions that two admins do together where the rule says so: each gives somebody a key, lowers the protection of a
 * partner, or changes the rule.
 */
export const proposable = ["rotateKey", "addApiKey", "addOperator", "changePartner", "changeTwoAdminRule"] as const;
export type ProposableAction = (typeof proposable)[number];

export interface NewProposal {
  readonly id: ProposalId;
  readonly action: ProposableAction;
  /** Null: it concerns no partner. */
  readonly partnerId: PartnerId | null;
  /** The body of the request that confirms it. It holds no secret. */
  readonly input: Readonly<Record<string, unknown>>;
  readonly proposer: Pick<Actor, "name" | "tokenId" | "subject">;
}

export interface Proposal extends NewProposal {
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** At most a week. */
export const ruleMinutesMax = 10_080;

/** Stores the rule, and proposals until they are confirmed, withdrawn or expired. */
export interface ProposalStore {
  /** Within how many minutes a second admin must confirm; 0: one admin is enough. It holds for every instance. */
  rule(): Promise<number>;
  changeRule(minutes: number): Promise<void>;
  /** Sets the rule if nobody has set it before. */
  beginRule(minutes: number): Promise<void>;
  add(proposal: NewProposal, expiresInMinutes: number): Promise<Proposal>;
  /** The proposals that can still be confirmed, in the order in which they were made. */
  list(): Promise<readonly Proposal[]>;
  /** Undefined for one that can no longer be confirmed. */
  find(id: ProposalId): Promise<Proposal | undefined>;
  /** Removes it. @returns false if it was gone or expired: of several callers, one gets true */
  take(id: ProposalId): Promise<boolean>;
}

type Person = Pick<Actor, "name" | "tokenId" | "subject">;

/**
 * Whether somebody vouches that these are two people. Of two identities of one OpenID provider, the provider does,
 * whatever they are called. Of two tokens with different names, the admins do who added both. Nobody does of an
 * identity and a token.
 */
export function areTwoPeople(one: Person, other: Person): boolean {
  if (one.subject !== null && other.subject !== null) {
    return issuerOf(one.subject) === issuerOf(other.subject) && one.subject !== other.subject;
  }
  return one.subject === other.subject && one.tokenId !== other.tokenId && folded(one.name) !== folded(other.name);
}

function issuerOf(subject: string): string {
  return subject.slice(0, subject.indexOf(" "));
}
