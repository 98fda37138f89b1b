import { randomUUID } from "node:crypto";
import { reportedSale, sale } from "../support/commands.ts";
import type { Instance } from "../support/instance.ts";
import type { ReceivedDelivery } from "../support/receiver.ts";
import { callHttp, eventually, type HttpAnswer, type TestPartner } from "../support/service.ts";

type Fields = Readonly<Record<string, unknown>>;

export const mid = "M00000000000001";
/** The terminal of a quiet partner whose batch is open, and the one whose batch was settled. */
export const openTid = (shop: number) => `T000001${shop}`;
const settledTid = (shop: number) => `T000002${shop}`;

/** Data that one version leaves to the next. */
export interface Life {
  /** They have everything, and nothing is pending. */
  readonly quiet: readonly TestPartner[];
  /** Its two notifications are parked. */
  readonly parked: TestPartner;
  /** Its server fails: attempts go on. */
  readonly failing: TestPartner;
  /** Deliveries to it are paused. */
  readonly paused: TestPartner;
  /** Transactions of `failing` and `paused` whose IPNs are pending, in their order. */
  readonly pending: readonly string[];
  /** A Sale in the open batch of each quiet partner. */
  readonly open: readonly string[];
  /** Commands and completions to send once more, with the id of their transaction. */
  readonly ran: readonly { readonly partner: TestPartner; readonly command: Fields; readonly id: string }[];
  readonly reported: { readonly completions: readonly Fields[]; readonly ids: readonly string[] };
  /** API keys of the first quiet partner: the replaced one, its successor, one of a program. */
  readonly apiKeys: readonly string[];
  readonly revokedApiKey: string;
  readonly operatorToken: string;
  readonly revokedToken: string;
}

/** Has a version do everything that it stores. */
export async function live(service: Instance, host: string): Promise<Life> {
  const register = (settings: Parameters<Instance["register"]>[0]) => service.register(settings, { host });
  const quiet = [
    await register({ name: "Quán Cà Phê", refunds: "notified", callBackUrlChange: "partner" }),
    await register({
      ...{ cipher: "jwe", encoding: "base64url", signing: { mode: "whole" }, wireNames: "sample" },
      ...{ refunds: "notified", settlementTotal: "net", timeZone: "Asia/Ho_Chi_Minh", maxInFlight: 2 },
    }),
  ];
  const [parked, failing, paused] = [
    await register({ retry: [1] }),
    await register({ retry: Array.from({ length: 30 }, () => 5) }),
    await register({ cipher: "aes-256-cbc", encoding: "hex", signing: { mode: "whole" } }),
  ];
  const ran: { partner: TestPartner; command: Fields; id: string }[] = [];
  async function run(partner: TestPartner, command: Fields): Promise<string> {
    const { status, body, text } = await partner.run(command);
    if (status !== 200) throw new Error(`the command was not run: ${text}`);
    ran.push({ partner, command, id: String(body["id"]) });
    return String(body["id"]);
  }

  const open = await Promise.all(quiet.map((partner, shop) => trade((command) => run(partner, command), shop)));
  const completions = quiet.flatMap(({ id }) => reportsOf(id));
  const ids = await service.report(completions);

  parked.server.answersAlways(500);
  failing.server.answersAlways(500);
  await ok(service.operator("POST", `/operator/v1/partners/${paused.id}/pause`));
  for (const amount of ["1000", "2000"]) await run(parked, sale({ tid: "T0000003", amount }));
  const pending: string[] = [];
  for (const [partner, tid] of [
    [failing, "T0000004"],
    [paused, "T0000005"],
  ] as const) {
    const sold = await run(partner, sale({ tid }));
    pending.push(sold, await run(partner, { command: "VOID", reqId: randomUUID(), transactionId: sold }));
  }

  const [first] = quiet;
  if (first === undefined) throw new Error("there is no quiet partner");
  for (const partner of quiet) await settled(service, partner, "accepted");
  await settled(service, parked, "parked");
  await failing.server.next(1);
  await eventually("the Reversals to be done", async () => {
    const { body } = await service.operator("GET", "/operator/v1/reversals?state=PENDING");
    return (body["items"] as unknown[]).length === 0 ? true : undefined;
  });
  const keys = await changeKeys(service, first);
  return { quiet, parked, failing, paused, pending, open, ran, reported: { completions, ids }, ...keys };
}

/** Every command, and every outcome but one in doubt. @returns the id of a Sale in the open batch */
async function trade(run: (command: Fields) => Promise<string>, shop: number): Promise<string> {
  const [closed, opened] = [settledTid(shop), openTid(shop)];
  const follow = (command: string, transactionId: string, more: Fields = {}) =>
    run({ command, reqId: randomUUID(), transactionId, ...more });
  const system = (command: string, tid: string) => run({ command, reqId: randomUUID(), tid, mid });
  const preAuth = (tid: string) => run({ ...sale({ tid, amount: "90000" }), command: "PREAUTH" });
  await system("LOGON", closed);
  const sold = await run(sale({ tid: closed, amount: "70000", extraData: '{"bàn": 7}' }));
  await follow("VOID", await run(sale({ tid: closed })));
  await follow("REVERSAL", await run(sale({ tid: closed })));
  await run(sale({ tid: closed, card: { token: "tok_decline_51" } }));
  await run(sale({ tid: closed, card: { token: "tok_timeout" } }));
  await follow("PREAUTH_COMPLETE", await preAuth(closed), { amount: "80000" });
  await follow("VOID", await preAuth(closed));
  await system("BATCH_UPLOAD", closed);
  await system("SETTLEMENT", closed);
  await follow("REFUND", sold, { amount: "20000" });
  await preAuth(opened);
  const open = await run(sale({ tid: opened, amount: "10000" }));
  await run(sale({ tid: opened, amount: "20000" }));
  await follow("VOID", await run(sale({ tid: opened, amount: "40000" })));
  return open;
}

function reportsOf(partnerId: string): readonly Fields[] {
  const [sold, tid] = [
    reportedSale(partnerId, { reqId: randomUUID(), refId: "417000000001", tid: "T0000009" }),
    "T0000009",
  ];
  const settlement = {
    ...{ quantity: "1", saleQuantity: "1", saleTotalAmount: "150000" },
    voidQuantity: "0",
    voidTotalAmount: "0",
  };
  return [
    sold,
    reportedSale(partnerId, { status: "ERROR", isoResponseCode: "51" }),
    reportedSale(partnerId, { command: "VOID", originalExternalId: sold["externalId"] }),
    reportedSale(partnerId, { command: "LOGON" }),
    {
      ...{ partnerId, externalId: randomUUID(), command: "SETTLEMENT", status: "SUCCESS", tid, mid, batchNo: "000017" },
      ...settlement,
      settlementList: [{ reqId: sold["reqId"], refNo: "417000000001" }],
    },
  ];
}

/** All that it has been sent, or will be, is in this state. */
export async function settled(service: Instance, { id }: TestPartner, state: string): Promise<void> {
  await eventually(`all notifications to be ${state}`, async () => {
    const { body } = await service.operator("GET", `/operator/v1/notifications?partner=${id}&limit=500`);
    const items = body["items"] as { state: string }[];
    return items.length > 0 && items.every((one) => one.state === state) ? true : undefined;
  });
}

async function changeKeys(service: Instance, partner: TestPartner) {
  const rotate = (key: string, overlapHours: number) =>
    ok(service.operator("POST", `/operator/v1/partners/${partner.id}/keys/rotate`, { key, overlapHours }));
  await rotate("webhookSecret", 72);
  const encryption = await rotate("encryptionKey", 0);
  partner.server.opensWith({ ...partner.keys, encryptionKey: String(encryption["secret"]) });
  const successor = await rotate("apiKey", 72);
  const make = () => ok(partner.call("POST", "/v1/api-keys", { json: { name: "a till", scopes: ["read"] } }));
  const [made, revoked] = [await make(), await make()];
  await ok(partner.call("POST", `/v1/api-keys/${String(revoked["id"])}/revoke`, { json: {} }));
  const add = (name: string) => ok(service.operator("POST", "/operator/v1/operators", { name, role: "admin" }));
  const [anna, bert] = [await add("anna"), await add("bert")];
  await ok(service.operator("POST", `/operator/v1/operators/${String(bert["id"])}/revoke`));
  return {
    apiKeys: [partner.secrets.apiKey, String(successor["secret"]), String(made["apiKey"])],
    revokedApiKey: String(revoked["apiKey"]),
    operatorToken: String(anna["token"]),
    revokedToken: String(bert["token"]),
  };
}

export async function ok(answer: Promise<HttpAnswer>): Promise<Fields> {
  const { status, body, text } = await answer;
  if (status >= 300) throw new Error(`${status} ${text}`);
  return body;
}

/** The same partner at another instance. */
export function at(instance: Instance, { secrets }: TestPartner) {
  return (method: string, path: string, json?: unknown) =>
    callHttp(instance.baseUrl, method, path, { key: secrets.apiKey, ...(json !== undefined && { json }) });
}

/** Everything that the APIs show of what is at rest, by path. Times of use are left out: they change with each look. */
export async function view(instance: Instance, { quiet, parked, paused }: Life): Promise<Record<string, unknown>> {
  const seen: Record<string, unknown> = {};
  const look = async (path: string) => {
    const { body } = await instance.operator("GET", path);
    seen[path] = JSON.parse(JSON.stringify(body, (name, value) => (name === "lastUsedAt" ? undefined : value)));
    return (body["items"] ?? []) as { id: string }[];
  };
  for (const partner of [...quiet, parked, paused]) {
    const { id } = partner;
    await look(`/operator/v1/partners/${id}`);
    await look(`/operator/v1/partners/${id}/terminals`);
    for (const kind of ["transactions", "batches", "reversals", "settlements", "events", "notifications"]) {
      const items = await look(`/operator/v1/${kind}?partner=${id}&limit=500`);
      for (const item of items) await look(`/operator/v1/${kind}/${item.id}`);
      if (kind !== "transactions") continue;
      const call = at(instance, partner);
      for (const item of items)
        seen[`/v1/transactions/${item.id}`] = (await call("GET", `/v1/transactions/${item.id}`)).body;
    }
  }
  await look("/operator/v1/operators");
  return seen;
}

/** The place of each transaction's first authentic IPN among what the partner was sent. */
export function placesOf(deliveries: readonly ReceivedDelivery[], ids: readonly string[]): readonly number[] {
  return ids.map((id) => deliveries.findIndex(({ received }) => received?.ipn.id === id));
}
