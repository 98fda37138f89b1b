/** The time in which both versions of a rotated key are valid: unless agreed otherwise, and at most. */
export const overlapHours = { initial: 24, max: 720 } as const;
