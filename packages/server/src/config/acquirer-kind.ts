import type { Kind } from "./kind.ts";

/** @param lengths in bytes */
export function keyInHex(lengths: readonly number[]): Kind<Buffer> {
  return {
    description: `the hexadecimal of ${lengths.slice(0, -1).join(", ")} or ${lengths.at(-1)} bytes`,
    read(value) {
      const bytes = Buffer.from(value, "hex");
      return lengths.includes(bytes.length) && value.length === bytes.length * 2 ? bytes : undefined;
    },
  };
}

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** A name or an IPv4 address, or an IPv6 address in brackets, and a port. */
export const hostAndPort: Kind<HostAndPort> = {
  description: "a host and its port, such as host.example:5000",
  read(value) {
    const [, bracketed, name, digits = ""] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(value) ?? [];
    const host = bracketed ?? name;
    const port = Number(digits);
    return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
  },
};

/** As it is written in a setting. */
export function hostText({ host, port }: HostAndPort): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

export function isHostAndPort(value: unknown): value is HostAndPort {
  return typeof value === "object" && value !== null && "host" in value && "port" in value;
}
