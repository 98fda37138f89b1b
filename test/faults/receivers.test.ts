import { afterAll, beforeAll, expect, test } from "vitest";
import { makeAuthority } from "../../packages/server/src/delivery/transport/transport.fixture.ts";
import { reportedSale, sale } from "../support/commands.ts";
import { type PartnerServer, startPartnerServer } from "../support/receiver.ts";
import { eventually, startTestService, type TestPartner, type WholeService } from "../support/service.ts";
import { type Authorities, faults, flood } from "./misbehaving.ts";

/** A machine that pauses for five seconds changes no result. */
const attemptTimeoutMs = 10_000;
/** Only the first attempt is of interest. */
const retry = [3_600];

interface AttemptView {
  readonly attemptNo: number;
  readonly reason: string | null;
  readonly detail: string | null;
  readonly httpStatus: number | null;
}

let authorities: Authorities;
let service: WholeService;
/** Its receiver behaves. */
let good: TestPartner;
/** It is never called: the others' callbacks go to the misbehaving receiver. */
let unused: PartnerServer;
beforeAll(async () => {
  authorities = { trusted: await makeAuthority("Faulty partners"), foreign: await makeAuthority("Strangers") };
  const env = { PAYBELL_ATTEMPT_TIMEOUT_MS: String(attemptTimeoutMs), PAYBELL_CONNECT_TIMEOUT_MS: "8000" };
  service = await startTestService({ env, callbackCas: [authorities.trusted.cert] });
  good = await service.register();
  unused = await startPartnerServer();
});
afterAll(async () => {
  await service.stop();
  await unused.close();
});

function registerAt(callBackUrl: string): Promise<TestPartner> {
  return service.register({ callBackUrl, retry }, { server: unused });
}

/** As the operator sees them: the partner does not see looked-up addresses. */
async function attemptsOf(notificationId: string): Promise<readonly AttemptView[]> {
  const { body } = await service.operator("GET", `/operator/v1/notifications/${notificationId}`);
  return body["attempts"] as AttemptView[];
}

/** At the well-behaved one. */
function arrived(...transactionIds: unknown[]): Promise<unknown> {
  return good.server.until((all) => {
    const seen = new Set<unknown>(all.map(({ received }) => received?.ipn.id));
    return transactionIds.every((id) => seen.has(id));
  });
}

test("the failure of a receiver is recorded, with its reason in words", async () => {
  const bad = await registerAt("https://nowhere.invalid/ipn");
  const { id } = await bad.notify(sale());
  const attempts = await eventually("the attempt to be recorded", async () => {
    const made = await attemptsOf(id);
    return made.length > 0 ? made : undefined;
  });
  const detail = expect.stringContaining("nowhere.invalid");
  expect(attempts).toMatchObject([{ attemptNo: 1, reason: "dns", httpStatus: null, detail }]);
});

test("receivers that fail in every way at once, each with more than its maxInFlight, affect no other partner, and end", async () => {
  const urls = await Promise.all(faults.map((fault) => fault.serve(authorities)));
  const partners: TestPartner[] = [];
  for (const url of urls) partners.push(await registerAt(url));
  flood.bytes = 0;
  await Promise.all(partners.map(({ id }) => service.report(Array.from({ length: 40 }, () => reportedSale(id)))));
  const sales = await Promise.all(Array.from({ length: 50 }, () => good.run(sale())));
  await arrived(...sales.map(({ body }) => body["id"]));

  // Bounded: hanging attempts are given up, and every slot is free again.
  await eventually("every place to be free", async () => (service.service.inFlight() === 0 ? true : undefined));
  // 80 answers of 100 MB are 8 GB; measured: each was cut after 0.2 MB.
  expect(flood.bytes).toBeLessThan(80 * 8 * 1_024 * 1_024);
  const isError = (line: string) => line.includes('"level":"error"') || line.includes('"level":50');
  expect(service.logged().split("\n").filter(isError)).toEqual([]);
});
