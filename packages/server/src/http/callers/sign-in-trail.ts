import type { FastifyRequest } from "fastify";
import { ServiceError } from "../../errors.ts";
import type { AuditEntry } from "../../operators/audit.ts";
import { networkOf } from "../../partners/settings/address-blocks.ts";
import type { HttpDependencies } from "../dependencies.ts";
import { RateLimit } from "../limits/rate-limits.ts";
import type { CallerAddress } from "../request-guards.ts";

/** A caller as the audit names them. */
type SignedIn = Pick<AuditEntry, "actor" | "role" | "tokenId">;

type SignInTrailParts = Pick<HttpDependencies, "audit" | "clock" | "log"> & { readonly address: CallerAddress };

/** The limit of one token or person: it bounds the audit and the stored sign-outs. */
const signInsPerMinute = 60;
/** The limits of an address and of all addresses, because anybody can cause a refusal. */
const refusalsPerMinute = 10;
const allRefusalsPerMinute = 60;

/** Sign-ins to the console in the audit: who came and went, and who was refused. It never holds a token. */
export class SignInTrail {
  readonly #parts: SignInTrailParts;
  readonly #signIns: RateLimit;
  readonly #refusals: RateLimit;
  readonly #allRefusals: RateLimit;

  constructor(parts: SignInTrailParts) {
    this.#parts = parts;
    this.#signIns = new RateLimit(signInsPerMinute, parts.clock);
    this.#refusals = new RateLimit(refusalsPerMinute, parts.clock);
    this.#allRefusals = new RateLimit(allRefusalsPerMinute, parts.clock);
  }

  /** @throws ServiceError `too_many_requests` for a token or a person that signs in again and again */
  limit(tokenOrPerson: string): void {
    const { allowed, resetS } = this.#signIns.count(tokenOrPerson);
    if (allowed) return;
    throw new ServiceError("too_many_requests", "There were too many sign-ins of yours.", { retryAfterS: resetS });
  }

  /** Rejects where it cannot be recorded: nobody signs in unseen. */
  async began(
    request: FastifyRequest,
    who: SignedIn,
    by: "token" | "OpenID" | "view link",
    subject = "",
  ): Promise<void> {
    await this.#parts.audit.append(this.#entry(request, { ...who, action: "signIn", subject, after: { by } }));
  }

  async ended(request: FastifyRequest, who: SignedIn, subject = ""): Promise<void> {
    await this.#append(this.#entry(request, { ...who, action: "signOut", subject, after: undefined }));
  }

  /** The last refusal that is recorded for now says so. */
  async refused(request: FastifyRequest, reason: { readonly reason: string; readonly message?: string }, subject = "") {
    const own = this.#refusals.count(networkOf(this.#parts.address(request.raw)));
    const all = own.allowed ? this.#allRefusals.count("") : own;
    if (!all.allowed) return;
    const further =
      own.remaining === 0
        ? `of this address are not recorded for ${own.resetS} s`
        : all.remaining === 0
          ? `are not recorded for ${all.resetS} s`
          : undefined;
    const after = { ...reason, further };
    await this.#append(
      this.#entry(request, { actor: "", role: "", tokenId: "", action: "refuseSignIn", subject, after }),
    );
  }

  /** Never rejects: the sign-out or the refusal has happened, and is answered. */
  async #append(entry: AuditEntry): Promise<void> {
    try {
      await this.#parts.audit.append(entry);
    } catch (error) {
      this.#parts.log.error({ err: error, audit: entry }, "an action could not be audited: this line has it");
    }
  }

  #entry(
    request: FastifyRequest,
    { after, ...entry }: SignedIn & Pick<AuditEntry, "action" | "subject"> & { readonly after: object | undefined },
  ): AuditEntry {
    return {
      atMs: this.#parts.clock.nowMs(),
      ...entry,
      address: this.#parts.address(request.raw) ?? "unknown",
      before: "",
      after: after === undefined ? "" : JSON.stringify(after),
    };
  }
}
