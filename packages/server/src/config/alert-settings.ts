import { addressRange, type Kind, listOf, text, url, wholeNumber } from "./kind.ts";
import { webhookSecret } from "./secret-kind.ts";
import { optional, setting } from "./setting.ts";

const feedUrl: Kind<string> = {
  description: "file:///path, syslog://host:port or syslogs://host:port",
  read(value) {
    if (!URL.canParse(value)) return undefined;
    const { protocol, host, pathname } = new URL(value);
    const isFile = protocol === "file:" && host === "" && pathname !== "/";
    return isFile || (["syslog:", "syslogs:"].includes(protocol) && host !== "") ? value : undefined;
  },
};

/** The recipients of alerts and events. */
export const alertSettings = {
  feedUrl: optional({
    name: "PAYBELL_FEED",
    kind: feedUrl,
    meaning:
      "Target of every event and every entry of the audit: a file of JSON lines, or a collector of syslog (RFC 5424) " +
      "over TCP or TLS. One instance writes at a time.",
  }),
  alertUrl: optional({
    name: "PAYBELL_ALERT_URL",
    kind: url("https:", "http:"),
    meaning: "URL to which alerts are POSTed. Not set: alerts are events and metrics only.",
    secret: true,
  }),
  alertAddresses: setting({
    name: "PAYBELL_ALERT_ADDRESSES",
    kind: listOf(addressRange, "IP addresses or CIDR ranges"),
    default: ["0.0.0.0/0", "::/0"],
    meaning:
      "Addresses that PAYBELL_ALERT_URL and PAYBELL_ALERT_SLACK_URL may lead to. Private and loopback addresses are " +
      "called only where a block inside their range is named.",
  }),
  alertSecret: optional({
    name: "PAYBELL_ALERT_SECRET",
    kind: webhookSecret,
    meaning: "Secret with which alerts are signed (Standard Webhooks); required with PAYBELL_ALERT_URL.",
    secret: true,
  }),
  alertSlackUrl: optional({
    name: "PAYBELL_ALERT_SLACK_URL",
    kind: url("https:", "http:"),
    meaning: "Incoming webhook of Slack, Mattermost or a compatible service, to which alerts are POSTed as text.",
    secret: true,
  }),
  alertMailUrl: optional({
    name: "PAYBELL_ALERT_MAIL_URL",
    kind: url("smtp:", "smtps:"),
    meaning: "Mail server for alerts, as smtp://user:password@mail.example:587. With a password TLS is required.",
    secret: true,
  }),
  alertMailFrom: optional({
    name: "PAYBELL_ALERT_MAIL_FROM",
    kind: text,
    meaning: "Sender of the mails; required with PAYBELL_ALERT_MAIL_URL.",
  }),
  alertMailTo: setting({
    name: "PAYBELL_ALERT_MAIL_TO",
    kind: listOf(text, "mail addresses", 50),
    default: [],
    meaning: "Who gets the mails; required with PAYBELL_ALERT_MAIL_URL.",
  }),
  alertQuietS: setting({
    name: "PAYBELL_ALERT_QUIET_SECONDS",
    kind: wholeNumber(0, 86_400),
    default: 300,
    unit: "seconds",
    meaning:
      "After an alert was sent, others of its kind wait this long, and are sent as one, with their number. " +
      "0: each is sent separately.",
  }),
};
