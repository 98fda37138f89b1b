import { Link } from "wouter";
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
