import fastifyStatic, { type FastifyStaticOptions } from "@fastify/static";
import type { FastifyInstance } from "fastify";
import { type ErrorCode, ServiceError } from "../errors.ts";

/** The plugin's refusals, by our codes. It says 403 of a name that it does not look up, such as a very long one. */
const refusals: Readonly<Record<number, ErrorCode>> = {
  400: "not_found",
  403: "not_found",
  404: "not_found",
  412: "precondition_failed",
  416: "range_not_satisfiable",
};

/** Sends files, each in the compressed form that the client accepts, in this scope; what it refuses is a problem. */
export function staticFiles(scope: FastifyInstance, options: FastifyStaticOptions): void {
  scope.setErrorHandler<Error & Partial<PluginError>>((error, _, reply) => {
    const code = error instanceof ServiceError ? undefined : refusals[error.statusCode ?? 500];
    // Thrown again, it is sent by the handler of the whole service.
    if (code === undefined) throw error;
    const range = error.headers?.["Content-Range"];
    if (range !== undefined) reply.header("content-range", range);
    throw new ServiceError(code, undefined, { cause: error });
  });
  scope.register(fastifyStatic, { ...options, preCompressed: true });
}

interface PluginError {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
}
