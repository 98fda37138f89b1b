import type { ReactNode } from "react";

/** A part of a page, under its own heading. */
export function Panel({
  title,
  actions,
  children,
  flush = false,
}: {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Tables reach its edges. */
  readonly flush?: boolean;
}) {
  return (
    <section className="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {flush ? children : <div className="inside">{children}</div>}
    </section>
  );
}
