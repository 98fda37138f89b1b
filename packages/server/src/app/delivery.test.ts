import { expect, test } from "vitest";
import type { Hint } from "../delivery/store.ts";
import { newId } from "../ids.ts";
import { sampleNotification } from "../store/rows.fixture.ts";
import { deliveryNotifier } from "./delivery.ts";

test("a notification whose original has to be looked up is hinted by its queue alone, without its content", () => {
  const hinted: Hint[] = [];
  const offered: unknown[] = [];
  const notifier = deliveryNotifier(
    { due: (hint) => void hinted.push(hint), offer: (delivery) => void offered.push(delivery) },
    { notify: () => undefined },
  );
  const partnerId = newId<"partner">();
  const notification = sampleNotification(partnerId, newId<"transaction">());
  notifier.notify({ ...notification, originalId: null, originalExternalId: "sale 1" }, 1_700_000_000_000, 0);
  expect(hinted).toEqual([{ partnerId, queue: notification.queue }]);
  expect(offered).toEqual([]);
});
