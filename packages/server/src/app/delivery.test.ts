import { expect, onTestFinished, test, vi } from "vitest";
import type { Hint } from "../delivery/store.ts";
import { newId } from "../ids.ts";
import { sampleNotification } from "../store/rows.fixture.ts";
import { deliveryNotifier } from "./delivery.ts";

test("a notification whose original has to be looked up is hinted by its queue alone, any other is offered, and pulls hear of both", () => {
  const hinted: Hint[] = [];
  const offered: { readonly id: string }[] = [];
  const notified: string[] = [];
  const notifier = deliveryNotifier(
    { due: (hint) => void hinted.push(hint), offer: (delivery) => void offered.push(delivery) },
    { notify: (of) => void notified.push(of) },
  );
  const partnerId = newId<"partner">();
  const notification = sampleNotification(partnerId, newId<"transaction">());
  notifier.notify({ ...notification, originalId: null, originalExternalId: "sale 1" }, 1_700_000_000_000, 0);
  expect(hinted).toEqual([{ partnerId, queue: notification.queue }]);
  expect(offered).toEqual([]);
  vi.useFakeTimers({ now: 1_700_003_600_000, toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  notifier.notify(notification, 1_700_000_000_000, 0);
  expect(hinted).toHaveLength(1);
  const { id } = notification;
  expect(offered).toMatchObject([{ id, scheduleStartMs: 1_700_000_000_000, clockAheadMs: 3_600_000 }]);
  expect(notified).toEqual([partnerId, partnerId]);
});
