/** One item of GET /v1/notifications. */
export interface PulledNotification {
  readonly id: string;
  readonly createdAt: string;
  readonly kind: "card" | "settlement";
  readonly state: string;
  readonly data: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PulledPage {
  readonly items: readonly PulledNotification[];
  readonly next: string;
}

/** The body that a callback would carry: what webhook-signature covers. */
export function bodyOf({ data }: Pick<PulledNotification, "data">): string {
  return JSON.stringify({ data });
}
