import type { FastifyRequest } from "fastify";
import { badFields, ServiceError } from "../../errors.ts";
import { commandSchema } from "../../input/command-schema.ts";
import { everyProblemOfCommand } from "../../input/every-problem.ts";
import type { Partner } from "../../partners/partner.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { receiverBody, receiverSchema } from "../schemas/console.ts";
import { operations, responses } from "../schemas/problem.ts";
import { transactionSchema } from "../schemas/transaction.ts";
import { transactionView } from "../transaction-view.ts";

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
    operation("getSandboxReceiver", "See what arrived at the sandbox partner's receiver", {
      response: responses(found, "not_found"),
    }),
    view,
  );
  app.put(
    "/operator/v1/sandbox/receiver",
    operation("setSandboxReceiver", "Make the sandbox partner's receiver fail, hang, refuse or reject", {
      body: receiverBody,
      response: responses(found, "not_found"),
    }),
    async (request) => {
      desk().receiver.mode = request.body.mode;
      return await view();
    },
  );
  app.post(
    "/operator/v1/sandbox/commands",
    {
      attachValidation: true,
      ...operation("runSandboxCommand", "Run a command of the sandbox's partner", {
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

async function everyBadField(request: FastifyRequest, partner: Partner, parts: HttpDependencies): Promise<Error> {
  const shape = request.validationError;
  if (!(shape instanceof ServiceError)) return shape ?? new Error("a body was refused without a reason");
  const [first, ...others] = await everyProblemOfCommand(shape.fields, request.body, partner, parts);
  return first === undefined ? shape : badFields([first, ...others]);
}
