import type { FastifyRequest } from "fastify";

const bearer = /^Bearer +([^\s]{1,512})$/i;

export function bearerToken(request: FastifyRequest): string | undefined {
  return bearer.exec(request.headers.authorization ?? "")?.[1];
}
