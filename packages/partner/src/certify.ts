export { type CertifyReport, caseCodes, certify, countsOf, reportJson } from "./certify/certify.ts";
export type { CaseResult, CertifyExchange } from "./certify/judge.ts";
export { marks, type SealerKeys, sealerKeys } from "./certify/notification.ts";
export {
  ConnectionFailed,
  type NoResponse,
  post,
  postDefaults,
  type RequestResult,
  type ResponseReceived,
} from "./certify/post.ts";
