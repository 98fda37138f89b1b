import {
  IconAdjustments,
  IconBell,
  IconBuildingStore,
  IconChartHistogram,
  IconCoins,
  IconFlask,
  IconHistory,
  IconParking,
  IconUsers,
} from "@tabler/icons-react";
import type { Session } from "../api/operations.ts";

interface MenuEntry {
  readonly to: string;
  readonly label: string;
  readonly icon: typeof IconBell;
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
    { to: "/money", label: "Money", icon: IconCoins },
    ...(session.sandbox ? [{ to: "/try", label: "Try it", icon: IconFlask }] : []),
    ...(session.role === "admin"
      ? [
          { to: "/audit", label: "Audit", icon: IconHistory },
          { to: "/operators", label: "Operators", icon: IconUsers },
        ]
      : []),
    { to: "/settings", label: "Settings", icon: IconAdjustments },
  ];
}
