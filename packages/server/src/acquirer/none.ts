import { type Acquirer, NotSent } from "./acquirer.ts";

/** No acquirer at all: nothing leaves. What an earlier one left open waits for the next. */
export const noAcquirer: Acquirer = {
  approvals: new Set(["00"]),
  ask: () => Promise.reject(new NotSent("This service has no acquirer.")),
  refusesToken: () => undefined,
  close: () => Promise.resolve(),
};
