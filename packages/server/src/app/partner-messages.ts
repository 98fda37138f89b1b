import type { Mail, Mailer } from "../alerts/mail.ts";
import { PartnerMessages, type PartnerMessagesParts } from "../callbacks/partner-messages.ts";
import { systemClock } from "../clock.ts";
import type { Troubles } from "../notifications/trouble.ts";
import { PostgresPartnerMessages } from "../store/partners/messages.ts";
import { mailServerOf } from "./alert-targets.ts";
import type { Infrastructure } from "./infrastructure.ts";

/** Partners in trouble that are looked at. */
const partnersMax = 1_000;

/** Messages to partners, by the mail server that alerts use, and by the rules of callbacks. */
export function wirePartnerMessages(
  { config, database, egressProxy, log, closing }: Infrastructure,
  {
    troubles,
    ...parts
  }: Pick<PartnerMessagesParts, "stateOf" | "findPartner" | "connect"> & { readonly troubles: Troubles },
): Pick<PartnerMessages, "start" | "stop"> {
  const mailServer = mailServerOf(config, egressProxy);
  let mailer: Promise<Mailer> | undefined;
  const messages = new PartnerMessages({
    ...parts,
    troubles: { all: () => troubles.all(partnersMax), of: (id) => troubles.of(id) },
    store: new PostgresPartnerMessages(database.pool),
    async mail(mail: Mail, signal) {
      if (mailServer === undefined) return "PAYBELL_ALERT_MAIL_URL is not set any more";
      // Loaded only when needed, as for alerts.
      mailer ??= import("../alerts/mail.ts").then((module) => new module.Mailer(mailServer));
      return await (await mailer).send(mail, signal);
    },
    clock: systemClock,
    log,
  });
  const stop = async () => {
    await messages.stop();
    (await mailer)?.close();
  };
  closing.push(stop);
  return { start: () => messages.start(), stop };
}
