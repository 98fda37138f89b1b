/** The problem of an answer: stable codes for programs. */
export type FindingCode =
  | "accepted_forgery"
  | "answered_early"
  | "bad_response"
  | "certificate_expired"
  | "certificate_name"
  | "distinguishable"
  | "gone"
  | "no_connection"
  | "no_tls"
  | "not_served"
  | "rate_limited"
  | "redirect"
  | "refused_authentic"
  | "reset"
  | "server_error"
  | "timeout"
  | "tls"
  | "too_large";

export interface Words {
  /** The consequence in production. */
  readonly means: string;
  readonly fix: string;
  /** The guide's section, relative to the service's address, where it is not the finding's own. */
  readonly documentation?: string;
}

const repeated =
  "Paybell treats this as not received: it repeats the notification for about three days, then parks it. " +
  "The customer has paid, and your books do not show it.";

/** Used if a case has no words of its own. */
export const findings: Readonly<Record<FindingCode, Required<Words>>> = {
  accepted_forgery: {
    means: "Anyone who knows the URL can report a payment that never happened: goods leave, and no money comes.",
    fix: "Verify before anything else, and answer 400 when it fails.",
    documentation: "/docs/partner/other-languages#the-receiver",
  },
  answered_early: {
    means:
      "A 2xx ends the delivery. It came before the whole body had arrived: the rest, if lost, is never sent again.",
    fix: "Read the whole body, verify it, store the IPN, and then answer.",
    documentation: "/docs/partner/receive#four-rules",
  },
  bad_response: {
    means: `The answer is not HTTP. ${repeated}`,
    fix: "Check which program listens on this port: the endpoint must speak HTTP/1.1.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  certificate_expired: {
    means: `Paybell calls nobody whose certificate is not valid today. ${repeated}`,
    fix: "Renew the certificate, have the server load it, and look at this machine's clock.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  certificate_name: {
    means: `Paybell calls nobody whose certificate is another host's. ${repeated}`,
    fix: "Serve a certificate that names the host of the URL, or register the host that it names.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  distinguishable: {
    means: "Answers that differ tell an attacker which check failed, and so how far a forgery got.",
    fix: "Give every forgery the same answer: one status, one body. Write the reason to your own log.",
    documentation: "/docs/partner/other-languages#the-receiver",
  },
  gone: {
    means: "410 means that the URL is gone: a registered one gets nothing until POST /v1/endpoints/<id>/close.",
    fix: "Never answer 410 to a POST: use 400 for a forgery, and 5xx for an IPN that should come again.",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  no_connection: {
    means: `Paybell cannot reach it either. ${repeated}`,
    fix: "Start the endpoint, and check the host and the port of the URL.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  no_tls: {
    means: `Paybell speaks HTTPS alone. ${repeated}`,
    fix: "Let the server, or a proxy before it, terminate TLS on this port. To certify without, use an http:// URL.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  not_served: {
    means: `No route accepts a POST at this path. ${repeated}`,
    fix: "Check the path of the URL, and that the route accepts POST.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  rate_limited: {
    means: "Paybell sends as fast as terminals sell, and waits after a 429: IPNs come late, by minutes.",
    fix: "Exempt the addresses of Paybell from the rate limit, or agree on maxPerSecond with the operator.",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  redirect: {
    means: `Paybell never follows a redirect. ${repeated}`,
    fix: "Register the URL that the redirect names (https, the exact path, with or without the trailing slash).",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  refused_authentic: {
    means: repeated,
    fix:
      "Your own log has the reason. Usually a key is not the one that registration showed, the body was parsed " +
      "before it was verified, or cipher, encoding or signing differ from what is registered (GET /v1/self).",
    documentation: "/docs/partner/headers#why-does-my-signature-not-match",
  },
  reset: {
    means: `The connection ended before there was an answer. ${repeated}`,
    fix: "Look for a crash in your log, and for a proxy that cuts the connection.",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  server_error: {
    means: repeated,
    fix: "Look in your log for the error that was thrown.",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  timeout: {
    means: `Paybell waits 15 s for the whole answer, no longer. ${repeated}`,
    fix: "Store the IPN, answer, and do the slow part afterwards, from what you stored.",
    documentation: "/docs/partner/receive#four-rules",
  },
  tls: {
    means: `Paybell does not send to a server whose certificate it cannot verify. ${repeated}`,
    fix: "Serve the whole certificate chain for this host name. Pass your own certificate with --ca.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  too_large: {
    means: `A limit refused the body before your program saw it. ${repeated}`,
    fix: "Raise the limit of the framework and of every proxy in front of it.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
};
