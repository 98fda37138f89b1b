import { beforeEach, expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { newId, type PartnerId } from "../../ids.ts";
import { insertPartner } from "../rows.fixture.ts";
import { postgresPartnerMessages } from "./messages.ts";

const { pool } = await openTestDatabase();
const messages = postgresPartnerMessages(pool);
let partner: PartnerId;
beforeEach(async () => {
  partner = await insertPartner(pool);
});

const claim = (kind: "failing" | "recovered", leaseS = 300) =>
  messages.claim(partner, kind, "mail", newId<"notification">(), leaseS);

/** The instance that tells the end has seen that it was told before. */
async function forget(channel: "mail" | "webhook"): Promise<void> {
  const told = (await messages.informed()).filter((one) => one.partnerId === partner && one.channel === channel);
  for (const one of told) await messages.forget(one);
}

test("one of several instances gets a message, and nobody once it was sent", async () => {
  const claimed = await Promise.all(Array.from({ length: 8 }, () => claim("failing")));
  expect(claimed.filter((id) => id !== undefined)).toHaveLength(1);
  await messages.sent(partner, "failing", "mail");
  await pool.query("UPDATE partner_messages SET claimed_until = '-infinity'");
  expect(await claim("failing")).toBeUndefined();
});

test("a message that was not accepted is tried again with its id", async () => {
  const id = await claim("failing", -1);
  expect(id).toBeDefined();
  expect(await claim("failing")).toBe(id);
  expect(await messages.informed()).not.toContainEqual(expect.objectContaining({ partnerId: partner }));
});

test("a message that was given up is claimed again only after the trouble is forgotten", async () => {
  await claim("failing", -1);
  await messages.giveUp(partner, "failing", "mail");
  expect(await claim("failing")).toBeUndefined();
  expect(await messages.informed()).toContainEqual(
    expect.objectContaining({ partnerId: partner, channel: "mail", isInformed: false }),
  );
  await forget("mail");
  expect(await claim("failing")).toBeDefined();
});

test("a recovery is told once, and only where the trouble was told", async () => {
  expect(await claim("recovered")).toBeUndefined();
  const id = await claim("failing");
  expect(await claim("recovered")).toBeUndefined();
  await messages.sent(partner, "failing", "mail");
  const notificationId = newId<"notification">();
  await messages.found(partner, notificationId);
  expect(await messages.informed()).toContainEqual({
    partnerId: partner,
    channel: "mail",
    id,
    notificationId,
    isInformed: true,
  });
  expect(await messages.claim(partner, "recovered", "webhook", null, 300)).toBeUndefined();
  expect(await claim("recovered")).toBeDefined();
  await forget("mail");
  expect(await claim("recovered")).toBeUndefined();
});

test("the next trouble is told though the last one's end is not forgotten", async () => {
  const onWebhook = () => messages.claim(partner, "failing", "webhook", null, 300);
  await onWebhook();
  await claim("failing");
  await messages.sent(partner, "failing", "mail");
  const last = (await messages.informed()).find(({ partnerId }) => partnerId === partner);
  await claim("recovered");
  const next = await Promise.all(Array.from({ length: 8 }, () => claim("failing")));
  expect(next.filter((id) => id !== undefined)).toHaveLength(1);
  // The instance that tells the last one's end is slow.
  if (last !== undefined) await messages.forget(last);
  expect(await claim("failing")).toBeUndefined();
  await messages.sent(partner, "failing", "mail");
  expect([await claim("failing"), await onWebhook()]).toEqual([undefined, undefined]);
});

test("each channel is told, and forgotten, for itself, and so is each kind", async () => {
  const onWebhook = (kind: "failing" | "parking") => messages.claim(partner, kind, "webhook", null, 300);
  const informed = async () =>
    (await messages.informed()).filter(({ partnerId }) => partnerId === partner).map(({ channel }) => channel);
  await claim("failing");
  await onWebhook("failing");
  await messages.sent(partner, "failing", "mail");
  expect(await informed()).toEqual(["mail"]);
  await pool.query("UPDATE partner_messages SET claimed_until = '-infinity' WHERE partner_id = $1", [partner]);
  expect([await claim("failing"), await onWebhook("failing")]).toEqual([undefined, expect.any(String)]);
  await messages.sent(partner, "failing", "webhook");
  expect(await onWebhook("parking")).toBeDefined();
  expect(await informed()).toEqual(["mail", "webhook"]);
  await messages.giveUp(partner, "parking", "webhook");
  expect((await messages.informed()).filter(({ partnerId }) => partnerId === partner)).toMatchObject([
    { channel: "mail", isInformed: true },
    { channel: "webhook", isInformed: true },
  ]);
  await forget("webhook");
  expect(await informed()).toEqual(["mail"]);
});

test("an instance that finds the end while another one forgets it tells nothing", async () => {
  await claim("failing");
  await messages.sent(partner, "failing", "mail");
  const other = await pool.connect();
  try {
    await other.query("BEGIN");
    await other.query("DELETE FROM partner_messages WHERE partner_id = $1", [partner]);
    const late = claim("recovered");
    await lockWaits(pool);
    await other.query("COMMIT");
    expect(await late).toBeUndefined();
  } finally {
    other.release(true);
  }
});
