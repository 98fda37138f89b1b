/** The states of a notification. They are derived: a row in pending, one in parked, or neither. */
export const notificationStates = ["pending", "accepted", "parked"] as const;
export type NotificationState = (typeof notificationStates)[number];
