import { randomUUID } from "node:crypto";
import { profile } from "../../packages/server/src/acquirer/iso8583/example-profile.fixture.ts";
import { answerTo, type FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "./commands.ts";
import { eventually, type ServiceClient, type TestPartner } from "./service.ts";

export const lateTerminal = { tid: "T0000051", mid: "M00000000000051" };

/** Registers a host as the acquirer `bank`, and the partner's terminal with it. */
export async function registerBank(service: ServiceClient, host: FakeHost, { id }: TestPartner, clearing?: object) {
  const acquirer = {
    profile: { ...profile, localTimeZone: "UTC", ...(clearing && { clearing }) },
    hosts: [`127.0.0.1:${host.port}`],
    tls: "off",
  };
  const put = async (path: string, json: object) => {
    const { status, text } = await service.operator("PUT", `/operator/v1/${path}`, json);
    if (status >= 300) throw new Error(`${path} was refused: ${text}`);
  };
  await put("acquirers/bank", acquirer);
  const { tid, mid } = lateTerminal;
  await put(`partners/${id}/terminals/${tid}`, { mid, acquirer: "bank" });
  await eventually("the link to be up", async () => {
    const { body } = await service.operator("GET", "/operator/v1/acquirers/bank");
    return (body["link"] as { ok: boolean }).ok ? true : undefined;
  });
}

/**
 * A Settlement that the operator aborts before its 0510 comes, which counts another total; a Sale has entered the batch
 * meanwhile.
 *
 * @returns the Settlement's id, once its late answer is an event
 */
export async function settledLate(service: ServiceClient, host: FakeHost, partner: TestPartner): Promise<string> {
  const held = Promise.withResolvers<Parameters<FakeHost["answer"]>[0]>();
  const { answer } = host;
  host.answer = (request, socket) => {
    if (request.mti !== "0500") return answer(request, socket);
    held.resolve(request);
    return undefined;
  };
  await partner.run(sale({ ...lateTerminal, amount: "150000", merchantTransId: "before" }));
  const settlement = { command: "SETTLEMENT", reqId: randomUUID(), ...lateTerminal };
  const { body } = await partner.run(settlement, { prefer: "respond-async" });
  const id = String(body["id"]);
  const request = await held.promise;
  const reason = "the bank does not answer";
  const { status, text } = await service.operator("POST", `/operator/v1/settlements/${id}/abort`, { reason });
  if (status !== 200) throw new Error(text);
  await partner.run(sale({ ...lateTerminal, amount: "70000", merchantTransId: "since" }));
  host.answer = answer;
  const accepted = answerTo(request, "00");
  const figures = `${"1".padStart(5, "0")}${"149999".padStart(14, "0")}`.padEnd(57, "0");
  host.send({ ...accepted, fields: new Map([...accepted.fields, [63, figures]]) });
  await eventually("the late answer to be kept", async () => {
    const { body: found } = await service.operator("GET", `/operator/v1/events?subject=${id}&state=settlement_late`);
    return (found["items"] as unknown[])[0];
  });
  return id;
}
