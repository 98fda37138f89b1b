/** By name, with the id that tells apart those of the same name. */
export function Merchant({ of: { merchantName, mid } }: { readonly of: { merchantName: string; mid: string } }) {
  return (
    <>
      {merchantName} <span className="mono">{mid}</span>
    </>
  );
}
