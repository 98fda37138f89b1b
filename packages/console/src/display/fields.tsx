import { Fragment, type ReactNode } from "react";

/** Names with their values. What has no value is left out. */
export function Fields({ of }: { readonly of: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="fields">
      {Object.entries(of)
        .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "")
        .map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
    </dl>
  );
}
