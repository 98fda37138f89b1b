import { randomUUID } from "node:crypto";
import { deduplicate, memoryStore, receiver } from "@paybell/partner";
import { ApiError, CursorRefused, catchUp, client } from "@paybell/partner/client";
import { afterAll, describe, expect, it } from "vitest";
import { startTestService } from "../../../test/support/service.ts";

const service = await startTestService();
const partner = await service.register();
afterAll(() => service.stop());

const paybell = () => client({ baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
const sale = (reqId: string = randomUUID()) =>
  ({
    command: "SALE",
    reqId,
    amount: "150000",
    currency: "VND",
    tid: "T0000001",
    mid: "M00000001",
    merchantTransId: "order-1",
    card: { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
  }) as const;

describe("the client and the service", () => {
  it("agree on every operation", async () => {
    const command = sale();
    const sold = await paybell().runCommand(command);
    expect(sold).toMatchObject({ command: "SALE", status: "SUCCESS", amount: "150000" });
    expect(await paybell().runCommand(command)).toMatchObject({ id: sold.id });
    expect(await paybell().findTransaction({ reqId: command.reqId })).toMatchObject({ id: sold.id });
    const detail = await paybell().getTransaction(sold.id);
    expect(detail).toMatchObject({ id: sold.id, batch: { state: "open" }, chain: [{ id: sold.id }] });
    const id = detail.notification?.id ?? "";
    await partner.settled(id, "accepted");
    expect(await paybell().getNotification(id)).toMatchObject({ attempts: [{ attemptNo: 1, httpStatus: 204 }] });
    expect(await paybell().redeliverNotification(id, { to: "registered" })).toMatchObject({ id });
    expect(await paybell().sendTestNotification()).toMatchObject({ transactionId: null });
    expect(await paybell().listEndpoints({ state: "open" })).toEqual({ items: [], next: null });
    expect(await paybell().getSelf()).toMatchObject({ id: partner.id, settings: { cipher: "aes-256-gcm" } });
  });

  it("agree on problems", async () => {
    const unknown = randomUUID();
    await expect(paybell().getTransaction(unknown)).rejects.toMatchObject({ code: "not_found", status: 404 });
    await expect(paybell().closeEndpoint(unknown)).rejects.toThrow(ApiError);
    const stranger = client({ baseUrl: service.baseUrl, apiKey: "pb_of-nobody" });
    await expect(stranger.getSelf()).rejects.toMatchObject({ code: "unauthorized", status: 401 });
    const wrong = { ...sale(), amount: "-1" };
    const errors = [{ field: "amount", code: "invalid_amount" }];
    await expect(paybell().runCommand(wrong)).rejects.toMatchObject({ problem: { errors } });
  });

  it("catch up on everything, once, and continue from the cursor", async () => {
    const ids = new Set<string>();
    const once = deduplicate(memoryStore())(({ ipn }) => ids.add(ipn.id));
    let cursor: string | undefined;
    const takeAll = async () => {
      for await (const caught of catchUp(paybell(), cursor, receiver(partner.keys), { pageMax: 3 })) {
        await once(caught.received);
        cursor = caught.cursor ?? cursor;
      }
    };
    const first = await Promise.all([1, 2, 3, 4].map(() => paybell().runCommand(sale())));
    // A page ends before anything that another transaction of the same PostgreSQL may still write, and other tests have
    // some.
    await expect.poll(() => takeAll().then(() => [...ids])).toEqual(expect.arrayContaining(first.map(({ id }) => id)));
    const later = await paybell().runCommand(sale());
    await expect.poll(() => takeAll().then(() => [...ids])).toContain(later.id);
  });

  it("agree on an invalid cursor", async () => {
    await expect(catchUp(paybell(), "made-up", receiver(partner.keys)).next()).rejects.toThrow(CursorRefused);
  });
});
