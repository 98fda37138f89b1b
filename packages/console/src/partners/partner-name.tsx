import { Link } from "wouter";
import type { ListColumn } from "../display/list.tsx";
import { usePartners } from "./use-partners.ts";

/** By name; by id until the names are known. */
export function PartnerName({ id }: { readonly id: string }) {
  const name = usePartners().data?.find((one) => one.id === id)?.settings.name ?? id.slice(0, 8);
  return (
    <Link href={`/partners/${id}`} title={name}>
      {name}
    </Link>
  );
}

/** The column of a list of all partners, also on a phone. */
export const partnerColumnEverywhere: ListColumn<{ readonly partnerId: string | null }> = {
  name: "Partner",
  show: ({ partnerId }) => partnerId !== null && <PartnerName id={partnerId} />,
  look: "clipped",
};

/** The same where a phone has no room for it. */
export const partnerColumn = { ...partnerColumnEverywhere, from: "tablet" } as const;
