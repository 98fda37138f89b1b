import { Link } from "wouter";

/** One number and its name; with `to` it leads to what it counts. */
export function Figure({
  label,
  value,
  note,
  tone,
  to,
}: {
  readonly label: string;
  readonly value: string;
  readonly note?: string | undefined;
  readonly tone?: "wait" | "bad" | undefined;
  readonly to?: string;
}) {
  const inside = (
    <>
      <div className="label">{label}</div>
      <div className="value">{value}</div>
      <div className="label">{note ?? "\u00a0"}</div>
    </>
  );
  if (to === undefined)
    return (
      <div className="figure" data-tone={tone}>
        {inside}
      </div>
    );
  return (
    <Link href={to} className="figure" data-tone={tone}>
      {inside}
    </Link>
  );
}
