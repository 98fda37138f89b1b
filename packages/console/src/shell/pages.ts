import {
  IconAdjustments,
  IconBell,
  IconBuildingBank,
  IconBuildingStore,
  IconChartHistogram,
  IconCoins,
  IconFlask,
  IconHistory,
  IconParking,
  IconScale,
  IconUserCheck,
  IconUsers,
} from "@tabler/icons-react";
import type { Session } from "../api/operations.ts";

interface MenuEntry {
  readonly to: string;
  readonly label: string;
  readonly icon: typeof IconBell;
  /** The paths of pages that show its items. */
  readonly alsoAt?: readonly string[];
}

const notifications = { to: "/notifications", label: "Notifications", icon: IconBell };

/** The menu of the current session. */
export function pagesOf(session: Session): readonly MenuEntry[] {
  if (session.kind === "partner") return [{ to: "/", label: "My partner", icon: IconBuildingStore }, notifications];
  return [
    { to: "/", label: "Overview", icon: IconChartHistogram },
    notifications,
    { to: "/parked", label: "Parked", icon: IconParking },
    { to: "/partners", label: "Partners", icon: IconBuildingStore },
    { to: "/money", label: "Money", icon: IconCoins, alsoAt: ["/transactions", "/batches", "/settlements"] },
    { to: "/clearing", label: "Clearing", icon: IconScale },
    { to: "/acquirers", label: "Acquirers", icon: IconBuildingBank },
    ...(session.sandbox ? [{ to: "/try", label: "Try it", icon: IconFlask }] : []),
    ...(session.role === "admin"
      ? [
          { to: "/audit", label: "Audit", icon: IconHistory },
          { to: "/operators", label: "Operators", icon: IconUsers },
          { to: "/proposals", label: "Proposals", icon: IconUserCheck },
        ]
      : []),
    { to: "/settings", label: "Settings", icon: IconAdjustments },
  ];
}

/** Whether the page at this path belongs to the entry. */
export function isOf({ to, alsoAt = [] }: MenuEntry, path: string): boolean {
  if (to === "/") return path === "/";
  return [to, ...alsoAt].some((one) => path === one || path.startsWith(`${one}/`));
}

/** The page of a transaction: a Settlement has one of its own kind. */
export function pageOf({ id, command }: { readonly id: string; readonly command: string }): string {
  return command === "SETTLEMENT" || command === "BATCH_UPLOAD" ? `/settlements/${id}` : `/transactions/${id}`;
}
