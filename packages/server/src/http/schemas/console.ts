import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { receiverModes } from "../../sandbox-receiver-control.ts";

export const settingListSchema = componentOf(
  "Settings",
  "The settings of the instance that answered, without secrets",
  {
    items: z.array(
      z.object({
        name: described(z.string(), "Its environment variable"),
        section: described(z.string(), "Its topic, as in the reference"),
        value: described(z.string().nullable(), "The value in use; null: not set; of a secret, only that it is set"),
        default: z.string().nullable(),
        source: described(z.enum(["environment", "default"]), "Where its value comes from"),
        unit: z.string().nullable(),
        meaning: z.string(),
      }),
    ),
  },
);

export const receiverSchema = componentOf("SandboxReceiver", "The sandbox partner's receiver", {
  mode: z.enum(receiverModes),
  partnerId: z.uuid(),
  arrived: described(
    z.array(
      z.object({
        no: z.int(),
        at: z.iso.datetime(),
        notificationId: z.string(),
        attempt: z.string(),
        status: described(z.int().nullable(), "Null: nothing was answered"),
        body: described(z.string(), "As it was sent, encrypted"),
        ipn: described(z.record(z.string(), z.unknown()).nullable(), "Decrypted; null where it was not opened"),
      }),
    ),
    "The newest first, at most 50",
  ),
});

export const receiverBody = bodyOf("SandboxReceiverMode", "What the receiver does from now on", {
  mode: described(
    z.enum(receiverModes),
    "accept: 204; fail: 503; hang: no answer; refuse: the connection is cut; reject: 401, as for a wrong signature",
  ),
});
