import type { ReactNode } from "react";
import { Bell } from "../shell/bell.tsx";

/** The first page: what this is, and the way in beside it. */
export function Welcome({ children }: { readonly children: ReactNode }) {
  return (
    <main className="welcome">
      <section className="story" aria-label="Paybell">
        <Bell size={56} />
        <p className="claim">Every payment told. None lost.</p>
        <p>
          Who received what, when, and if not, why: for each notification, from its command to the answer that counted.
        </p>
      </section>
      <div className="way-in">{children}</div>
    </main>
  );
}
