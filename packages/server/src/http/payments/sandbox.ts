import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { commandSchema } from "../../input/shapes.ts";
import type { Partner } from "../../partners/partner.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../operation.ts";
import { operator, viewer } from "../policy.ts";
import { receiverModes } from "../receiver-control.ts";
import { everyBadField, transactionSchema, transactionView } from "./commands.ts";

const receiverSchema = componentOf("SandboxReceiver", "The sandbox partner's receiver", {
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

const receiverBody = bodyOf("SandboxReceiverMode", "What the receiver does from now on", {
  mode: described(
    z.enum(receiverModes),
    "accept: 204; fail: 503; hang: no answer; refuse: the connection is cut; reject: 401, as for a wrong signature",
  ),
});

const operation = operations("Sandbox");

const found = [200, receiverSchema, "The receiver"] as const;

/**
 * The actions of the sandbox's page: commands of its partner, and its receiver's mode. Elsewhere the route is not
 * found.
 */
export function sandboxRoutes(app: HttpApp, parts: HttpDependencies): void {
  const { directory, ledger } = parts;
  const desk = () => {
    if (parts.receiverControl === undefined) throw new ServiceError("not_found", "This is not a sandbox.");
    return parts.receiverControl;
  };
  const sandboxPartner = async (): Promise<Partner> => {
    const id = desk().partnerId();
    const partner = id === undefined ? undefined : await directory.find(id);
    if (partner === undefined) throw new ServiceError("not_found", "The sandbox's partner is not there yet.");
    return partner;
  };
  const view = async () => {
    const { mode, arrived } = desk().receiver;
    return { mode, arrived, partnerId: (await sandboxPartner()).id };
  };
  app.get(
    "/operator/v1/sandbox/receiver",
    operation(viewer.reads, "getSandboxReceiver", "See what arrived at the sandbox partner's receiver", {
      response: responses(found, "not_found"),
    }),
    view,
  );
  app.put(
    "/operator/v1/sandbox/receiver",
    operation(
      operator.acts("input"),
      "setSandboxReceiver",
      "Make the sandbox partner's receiver fail, hang, refuse or reject",
      {
        body: receiverBody,
        response: responses(found, "not_found"),
      },
    ),
    async (request) => {
      desk().receiver.mode = request.body.mode;
      return await view();
    },
  );
  app.post(
    "/operator/v1/sandbox/commands",
    {
      attachValidation: true,
      ...operation(operator.runs, "runSandboxCommand", "Run a command of the sandbox's partner", {
        description: "As POST /v1/commands does for the partner itself, with its errors.",
        body: commandSchema,
        response: responses([200, transactionSchema, "Completed, or INIT where it takes longer"], "not_found"),
      }),
    },
    async (request) => {
      const partner = await sandboxPartner();
      if (request.validationError !== undefined) throw await everyBadField(request, partner, parts);
      const { transaction } = await ledger.run(partner, request.body, { respondAsync: false });
      return transactionView(transaction, partner.settings);
    },
  );
}
