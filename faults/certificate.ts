import { networkInterfaces } from "node:os";
import { generate } from "selfsigned";

/** In PEM. */
export interface PartnerCertificate {
  readonly key: string;
  readonly cert: string;
  /** The certificate that a client must trust. */
  readonly ca: string;
}

/** Names of partners: `<anything>.partners.test`. */
export const partnerDomain = "partners.test";

/** Makes the certificate of an HTTPS server that partners' names and this address lead to. It vouches for no other. */
export async function partnerCertificate(address: string): Promise<PartnerCertificate> {
  const made = await generate([{ name: "commonName", value: "Partners of the fault suite" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: `*.${partnerDomain}` },
          { type: 7, ip: address },
        ],
      },
    ],
  });
  return { key: made.private, cert: made.cert, ca: made.cert };
}

/** An address of this machine that production may call; undefined if it has only loopback addresses. */
export function machineAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flatMap((addresses = []) => addresses)
    .find(({ internal, family }) => !internal && family === "IPv4")?.address;
}
