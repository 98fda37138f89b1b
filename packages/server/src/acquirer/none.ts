import { type Acquirer, NotSent } from "./acquirer.ts";

/** No acquirer at all: nothing is sent. Work left open by an earlier one waits for the next one. */
export const noAcquirer: Acquirer = {
  approvals: new Set(["00"]),
  ask: () => Promise.reject(new NotSent("This service has no acquirer.")),
  refusesToken: () => undefined,
  close: () => Promise.resolve(),
};
