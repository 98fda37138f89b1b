export { caseCodes } from "./certify/cases.ts";
export { type CertifyReport, certify } from "./certify/certify.ts";
export { marks } from "./certify/facts.ts";
export type { CaseResult, CertifyExchange } from "./certify/judge.ts";
export { type SealerKeys, sealerKeys } from "./certify/keys.ts";
export {
  ConnectionFailed,
  type NoResponse,
  post,
  postDefaults,
  type RequestResult,
  type ResponseReceived,
} from "./certify/post.ts";
export { countsOf, reportJson } from "./certify/report-json.ts";
