import ipaddr from "ipaddr.js";

/** The type of a setting: its description in the documentation, and how its text is parsed. */
export interface Kind<Value> {
  /** As in "must be …". */
  readonly description: string;
  /** Undefined if the text is not of this kind. */
  read(text: string): Value | undefined;
}

export const text: Kind<string> = { description: "a string", read: (value) => value };

export function wholeNumber(min: number, max: number): Kind<number> {
  return {
    description: `a whole number from ${min} to ${max}`,
    read(value) {
      if (!/^[0-9]{1,15}$/.test(value)) return undefined;
      const number = Number(value);
      return number >= min && number <= max ? number : undefined;
    },
  };
}

export function oneOf<const Values extends readonly string[]>(values: Values): Kind<Values[number]> {
  return { description: `one of ${values.join(", ")}`, read: (value) => values.find((known) => known === value) };
}

export function listOf<Item>(item: Kind<Item>, items: string, itemsMax = 1_000): Kind<readonly Item[]> {
  return {
    description: `${items}, separated by commas`,
    read(value) {
      const read = value.split(",").map((part) => item.read(part.trim()));
      return read.length <= itemsMax && read.every((one) => one !== undefined) ? read : undefined;
    },
  };
}

export function url(...protocols: readonly string[]): Kind<string> {
  return {
    description: `a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`,
    read: (value) => (URL.canParse(value) && protocols.includes(new URL(value).protocol) ? value : undefined),
  };
}

const postgres = url("postgres:", "postgresql:");

/** As PostgreSQL's own clients parse it: without a host it means a socket, `postgres://user@/database?host=/folder`. */
export const postgresUrl: Kind<string> = {
  description: postgres.description,
  read(value) {
    const withHost = value.replace(/^(\w+:\/\/(?:[^@/?#]*@)?)(?=\/)/, "$1socket");
    return postgres.read(withHost) === undefined ? undefined : value;
  },
};

export const addressRange: Kind<string> = {
  description: "an IP address or a CIDR range",
  read: (value) => (ipaddr.isValid(value) || ipaddr.isValidCIDR(value) ? value : undefined),
};
