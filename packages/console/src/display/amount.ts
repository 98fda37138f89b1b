import { currencyDecimals } from "@paybell/contract";

/** Such as "150,000 VND": with its currency's decimals, as the API has it. */
export function shownAmount(amount: string | null | undefined, currency: string | null | undefined): string {
  if (amount === null || amount === undefined || amount === "") return "";
  const [whole = "", fraction] = amount.split(".");
  const decimals = currency ? (currencyDecimals(currency) ?? 0) : (fraction?.length ?? 0);
  const grouped = whole.replace(/\B(?=(?:\d{3}){1,20}(?!\d))/g, ",");
  const shown = decimals === 0 ? grouped : `${grouped}.${(fraction ?? "").padEnd(decimals, "0")}`;
  return currency ? `${shown} ${currency}` : shown;
}

/** An amount in the currency's smallest unit, as the ledger counts it. */
export function shownMinor(minor: string, currency: string | null): string {
  const decimals = currency ? (currencyDecimals(currency) ?? 0) : 0;
  if (decimals === 0) return shownAmount(minor, currency);
  const digits = minor.padStart(decimals + 1, "0");
  return shownAmount(`${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`, currency);
}
