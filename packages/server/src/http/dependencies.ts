import type { KeyObject } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { AcquirerHealth } from "../acquirer/acquirer.ts";
import type { AcquirerRegistry } from "../acquirer/registered/registry.ts";
import type { Restores } from "../backups/restores.ts";
import type { Certifications } from "../callbacks/certifications.ts";
import type { certificatesOf } from "../callbacks/endpoint-connection.ts";
import type { UrlChange } from "../callbacks/url-change.ts";
import type { Clearing } from "../clearing/clearing.ts";
import type { Clock } from "../clock.ts";
import type { Config, ShownSetting } from "../config/config.ts";
import type { EndpointStore } from "../delivery/limits/circuits.ts";
import type { EventFeed } from "../feed/feed.ts";
import type { PartnerId } from "../ids.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { MoneyOperations } from "../ledger/money-operations.ts";
import type { Reports } from "../ledger/reports/reports.ts";
import type { Statements } from "../ledger/statements.ts";
import type { HistoryStore } from "../notifications/history-export.ts";
import type { Notifications } from "../notifications/notifications.ts";
import type { Overviews } from "../notifications/overview.ts";
import type { auditIn } from "../operators/audit.ts";
import type { OidcSignIn } from "../operators/oidc.ts";
import type { EndedSessions, Operators } from "../operators/operators.ts";
import type { ProposalStore } from "../operators/proposals.ts";
import type { ApiKeys } from "../partners/api-keys.ts";
import type { PartnerArchive } from "../partners/archive.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import type { PartnerRegistry } from "../partners/registry.ts";
import type { EventSink } from "../telemetry/events.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { SandboxReceiverControl } from "./receiver-control.ts";

/** The dependencies of the HTTP layer; it owns none of them. */
export interface HttpDependencies {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly ledger: Ledger;
  readonly reports: Reports;
  readonly registry: PartnerRegistry;
  readonly archive: PartnerArchive;
  readonly acquirers: AcquirerRegistry;
  /** The link of a registered acquirer, as this instance sees it. */
  readonly acquirerHealth: (name: string) => AcquirerHealth;
  /** The acquirer of the settings: what it is, such as `simulator`, and its link. */
  readonly settingsAcquirer: () => { readonly kind: string; readonly health: AcquirerHealth };
  readonly directory: PartnerDirectory;
  readonly apiKeys: ApiKeys;
  readonly notifications: Notifications;
  /** Ends the waits for notifications, and refuses new ones. */
  endWaits(): void;
  readonly money: MoneyOperations;
  readonly clearing: Clearing;
  readonly statements: Statements;
  readonly overview: Overviews;
  readonly endpoints: EndpointStore;
  readonly restores: Restores;
  readonly history: HistoryStore;
  readonly certifications: Certifications;
  readonly urlChange: UrlChange;
  certificatesOf(partner: Partner): ReturnType<typeof certificatesOf>;
  /** Whether the operator registered this device for the partner: its serial number is known to be no card number. */
  isRegisteredDevice(partnerId: PartnerId, deviceId: string): Promise<boolean>;
  /** Why the acquirer of this terminal cannot take this card token; undefined when it can. */
  refusesToken(partnerId: PartnerId, tid: string, token: string): Promise<string | undefined>;
  readonly operators: Operators;
  readonly proposals: ProposalStore;
  readonly endedSessions: EndedSessions;
  /** Undefined where operators sign in with a token only. */
  readonly oidc: OidcSignIn | undefined;
  readonly audit: ReturnType<typeof auditIn>;
  /** Whether an error means that the database is unavailable, and not that something is wrong with a request. */
  isUnavailable(error: unknown): boolean;
  /** Collects every route that is added after it: the generator of the OpenAPI document. */
  documentRoutes?(app: FastifyInstance): void;
  health(): Promise<Health>;
  /** From the beginning of a stop: proxies are to use another instance. */
  isStopping(): boolean;
  readonly feed: EventFeed;
  /** Records refused callers. */
  readonly events?: EventSink;
  readonly clock: Clock;
  /** The key for verifying proofs of delivery: SubjectPublicKeyInfo in base64. */
  readonly proofPublicKey: string;
  /** Under which the console's sessions are encrypted: the same on every instance. */
  readonly sessionKey: KeyObject;
  readonly settings: readonly ShownSetting[];
  /** Adds a span for each request. Undefined: there are no traces. */
  readonly traceRequests?: ((app: FastifyInstance) => void) | undefined;
  /** Only in the sandbox. */
  readonly receiverControl?: ReceiverControl | undefined;
  /** Serves only health and metrics: this process runs no commands. */
  readonly systemOnly?: boolean;
  /** Answers local callers only, and allows nothing that production refuses. */
  readonly sandbox?: boolean;
}

/** The sandbox's partner and its receiver. */
export interface ReceiverControl {
  /** Undefined until it is registered. */
  partnerId(): PartnerId | undefined;
  readonly receiver: SandboxReceiverControl;
}

export interface Health {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail: string }>>;
}

/** The server as routes are added to it. */
export type HttpApp = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;
