import { hash, timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { ServiceError } from "../../errors.ts";
import type { Operators } from "../../operators/operators.ts";
import { type Actor, bootstrap, mayAs } from "../../operators/operators.ts";
import { isApiKey } from "../../partners/keys.ts";
import { policyOf } from "../policy.ts";
import type { CallerAddress } from "../request-guards.ts";
import type { Sessions } from "./sessions.ts";
import type { WrongKeys } from "./wrong-keys.ts";

interface OperatorCallersParts {
  /** The tokens of the settings: they allow everything, so that a first operator can be added. */
  readonly operatorTokens: readonly string[];
  readonly operators: Pick<Operators, "find">;
  readonly wrongKeys: WrongKeys;
  readonly address: CallerAddress;
  readonly sessions: Pick<Sessions, "tokenOf">;
}

/** The operator who is calling, once the hook has let the request in. */
export class OperatorCallers {
  readonly #parts: OperatorCallersParts;
  readonly #isBootstrap: (token: string) => boolean;
  readonly #actors = new WeakMap<FastifyRequest, Actor>();

  constructor(parts: OperatorCallersParts) {
    this.#parts = parts;
    this.#isBootstrap = tokenCheck(parts.operatorTokens);
  }

  readonly authenticate = async (request: FastifyRequest): Promise<void> => {
    const token = await this.#parts.sessions.tokenOf(request);
    const actor = token === undefined ? undefined : await this.find(token);
    if (actor === undefined) return this.#refuse(request, token);
    const needed = policyOf(request, "operator").role;
    if (!mayAs(actor.role, needed)) {
      throw new ServiceError("role_not_allowed", `This requires the role ${needed}, and yours is ${actor.role}.`);
    }
    this.#actors.set(request, actor);
  };

  actor(request: FastifyRequest): Actor {
    const actor = this.#actors.get(request);
    if (actor === undefined) throw new Error("an operator's route was reached without authentication");
    return actor;
  }

  /** Whether the caller may see what a cardholder bought. */
  mayReadContent(request: FastifyRequest): boolean {
    return mayAs(this.actor(request).role, "operator");
  }

  /** Finds the owner of a token; undefined if it is unknown. */
  async find(token: string): Promise<Actor | undefined> {
    if (this.#isBootstrap(token)) return { name: bootstrap, role: "admin", tokenId: bootstrap, subject: null };
    const operator = await this.#parts.operators.find(token);
    if (operator === undefined) return undefined;
    const { name, role, id, subject } = operator;
    return { name, role, tokenId: id, subject };
  }

  #refuse(request: FastifyRequest, token: string | undefined): never {
    const message =
      token !== undefined && isApiKey(token)
        ? "This is a partner's API key: the operator API requires an operator's token."
        : undefined;
    return this.#parts.wrongKeys.refuse(this.#parts.address(request.raw), message);
  }
}

/** Compared as digests, all of them, in constant time. */
function tokenCheck(tokens: readonly string[]): (token: string) => boolean {
  const known = tokens.map(digest);
  return (token) => {
    const offered = digest(token);
    return known.filter((one) => timingSafeEqual(one, offered)).length > 0;
  };
}

function digest(token: string): Buffer {
  return hash("sha256", token, "buffer");
}
