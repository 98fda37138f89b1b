import { IpnRefused, Misused, type ReceivedIpn, type ReceiverOptions, receiver } from "@paybell/partner";
import type { NotificationPage, Self } from "@paybell/partner/client";
import type { Api } from "../client/api.ts";
import { type ClientSettings, receiverOptionsOf } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { Failure } from "../shell/failure.ts";

/** One notification as it is pulled, sealed. */
export type SealedNotification = NotificationPage["items"][number];

/** The body that a callback would carry: what webhook-signature covers. */
export function bodyOf({ data }: Pick<SealedNotification, "data">): string {
  return JSON.stringify({ data });
}

/** The result of opening a notification with our own keys: the IPN, or why there is none. */
export type Opened =
  | { readonly received: ReceivedIpn; readonly refused: undefined }
  | { readonly received: undefined; readonly refused: { readonly reason: string; readonly hint: string } };

export type Opener = (notification: SealedNotification) => Opened;

/**
 * Returns the function that opens notifications, with the partner's settings in the service unless options override
 * them. Undefined without keys: then notifications are forwarded unopened.
 *
 * @throws Failure for an invalid key
 */
export function openerFor({ credentials }: ClientSettings, self: Self): Opener | undefined {
  const { encryptionKey, signingKey, webhookSecret } = credentials;
  if (encryptionKey === undefined && signingKey === undefined && webhookSecret === undefined) return undefined;
  const { cipher, encoding, signing, fields } = self.settings;
  const options = { ...definedOf({ cipher, encoding, signing, fields }), ...receiverOptionsOf(credentials) };
  const opener = openReceiver(options);
  return (notification) => {
    try {
      return { received: opener.open(bodyOf(notification), notification.headers), refused: undefined };
    } catch (error) {
      if (!(error instanceof IpnRefused)) throw error;
      return { received: undefined, refused: { reason: error.reason, hint: error.hint } };
    }
  };
}

/** @throws Failure naming the option and the mistake */
export function openReceiver(options: ReceiverOptions) {
  try {
    return receiver(options);
  } catch (error) {
    if (!(error instanceof Misused)) throw error;
    throw new Failure(error.message, { code: "bad_configuration" });
  }
}

export function readSelf(api: Api): Promise<Self> {
  return api.get<Self>("/v1/self");
}
