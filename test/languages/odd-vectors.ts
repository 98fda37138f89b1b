import { createHmac } from "node:crypto";
import { IpnRefused, receiver } from "@paybell/partner";
import { testEnvelope } from "@paybell/partner/testing";

/** As in docs/partner/vectors.json: an accepted card IPN, signed by the specification's fields. */
export interface Vector {
  readonly name: string;
  readonly nowSeconds: number;
  readonly cipher: "aes-256-gcm" | "aes-256-cbc" | "jwe";
  readonly encoding: "base64" | "base64url" | "hex";
  readonly signing: { readonly mode: "fields" };
  readonly encryptionKey: readonly { readonly id: string; readonly key: string }[];
  readonly signingKey: readonly { readonly key: string }[];
  readonly webhookSecret: readonly { readonly key: string }[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The id of the key that opens it. */
  readonly keyId?: string;
  readonly ipn?: unknown;
  /** The code of the refusal, where the receiver names one. */
  readonly code?: string;
}

/**
 * Unusual inputs, with the result of @paybell/partner: every receiver has to agree. All
 * are encrypted and signed with the keys of `like`, so that only the unusual part can be refused.
 */
export function oddVectors(like: Vector): Vector[] {
  const content = JSON.stringify(like.ipn);
  const contents = [...oddTexts(content), ...oddValues.map((value) => `${content.slice(0, -1)},"x":${value}}`)];
  const { data } = JSON.parse(seal(like, content)) as { data: string };
  return [
    ...contents.map((odd) => signed(like, odd, seal(like, odd))),
    ...oddBodies(data).map((body) => signed(like, body, body)),
    ...kids.map(([kid, known]) =>
      signed({ ...jweBy(like, known), keyId: kid }, `kid ${kid}, key ${known}`, seal(jweBy(like, kid), content)),
    ),
    ...oddIds.map((id) => signed({ ...like, headers: { ...like.headers, "webhook-id": id } }, `id ${id}`, like.body)),
    ...oddTimestamps(like.nowSeconds).map((timestamp) =>
      signed({ ...like, headers: { ...like.headers, "webhook-timestamp": timestamp } }, `time ${timestamp}`, like.body),
    ),
  ];
}

/** The IPN's JSON, written in ways that some parsers accept and others refuse. */
function oddTexts(content: string): string[] {
  const open = content.slice(0, -1);
  return [
    ...["x", "\0", "\f", content, "// c", "/* c */", ","].map((end) => content + end),
    ...["\v", "\u00a0", "\ufeff", ",", "/* c */", "// c\n", "\0"].map((start) => start + content),
    ` \t\r\n${content} \t\r\n`,
    ...[",", ",,", "/* c */", " ", "", ':"x"', ',"x"', ',"x":', ",x:1", ",'x':'y'"].map((end) => `${open}${end}}`),
    ...["", " ", "{", "{}", "[]", "null", "1", '"x"', "[{}]", `[${content}]`, open, `{,${content.slice(1)}`],
    ...["__proto__", "constructor", "length", "", "1", "json_class", "a\\u0000"].flatMap((key) => [
      `${open},"${key}":"x"}`,
      `${open},"${key}":"x","${key}":"y"}`,
    ]),
  ];
}

const levels = [3, 60, 62, 63, 64, 65, 100, 600, 3000];

/** JSON and almost-JSON, as the value of an unknown field that no signature covers. */
const oddValues: readonly string[] = [
  ...["true", "false", "null", "0", "-1", "1.5", "1e5", "01", "NaN", "Infinity", "undefined", "'x'", "{}", "[]"],
  ...["[1]", '["a",]', '[,"a"]', '["a" "b"]', '["a":"b"]', '{"a"}', '{"a":"b",}', '["a"', '{"a":[null]}'],
  ...['{"a":"1","a":"2"}', '[{"a":"1","\\u0061":"2"}]', '{"amount":"1"}', '[{"amount":"1"},{"amount":"2"}]'],
  ...['"\\"amount\\":"', '":"', '"\\\\"', '"\\\\\\""', '"\\\\u0061"', '"/* c */"', '"\\/"', '"{}[],:"'],
  ...['"\\q"', '"\\x41"', '"\\\'"', '"\\u00zz"', '"\\u00"', '"\\u"', '"\\', '"\\U0041"', '"\\u00\uff11\uff11"'],
  ...['"\u0000"', '"\u0001"', '"\n"', '"\t"', '"\u007f"', '"\\u0000"', '"\u2028"', '"\ufffd"', '"\uffff"'],
  ...['"\\ud83d"', '"\\ude00"', '"\\ud83d\\ude00"', '"\\uD83D\\uDE00"', '"\\ude00\\ud83d"', '"\\ud83dx"'],
  ...['"\\ud83d\\ud83d\\ude00"', '"\\ud83d\\u0041"', '"\\\\ud83d"', '"\\\\\\ud83d"', '{"\\ud83d":"x"}'],
  ...levels.flatMap((depth) => [
    "[".repeat(depth) + "]".repeat(depth),
    `${'{"a":'.repeat(depth)}"b"${"}".repeat(depth)}`,
  ]),
];

function oddBodies(data: string): string[] {
  const changed = [
    ...[
      `${data}\\n`,
      ` ${data}`,
      `${data}=`,
      `${data.slice(0, 8)}=${data.slice(9)}`,
      `\uff21${data.slice(1)}`,
      `é${data}`,
    ],
    ...[data.replaceAll("/", "\\/"), `\\u${data.charCodeAt(0).toString(16).padStart(4, "0")}${data.slice(1)}`],
    ...[data.replaceAll("+", "-").replaceAll("/", "_"), data.replaceAll("=", ""), "", "AAAA", "=", "\\u0000"],
  ];
  return [
    ...changed.map((text) => `{"data":"${text}"}`),
    ...[`{"data":["${data}"]}`, `{"data":{"data":"${data}"}}`, '{"data":null}', '{"data":1}', `{"Data":"${data}"}`],
    ...[`{"data":"${data}","x":"y"}`, `{"data":"${data}","x":1}`, `{"data":"x","data":"${data}"}`, `"${data}"`],
    ...[`\ufeff{"data":"${data}"}`, `{"data":"${data}",}`, `{"data":"${data}"/**/}`, `{"data":"${data}"}\n`, data],
  ];
}

/** The id that a JWE names, and that of the key that opens it: a key without an id is tried for any name. */
const kids = [
  ["k1", "k1"],
  ["k1", ""],
  ["", "k1"],
  ["k1", "k2"],
] as const;

function jweBy(like: Vector, id: string): Vector {
  return { ...like, cipher: "jwe", encryptionKey: like.encryptionKey.map(({ key }) => ({ id, key })) };
}

const oddIds = ["a.b", "a b", " ", "a\tb", "x".repeat(256), "x".repeat(257), "-", "a,b", "../a"];

function oddTimestamps(nowSeconds: number): string[] {
  const now = String(nowSeconds);
  return [
    ` ${now}`,
    `${now} `,
    `+${now}`,
    `-${now}`,
    `0${now}`,
    `000${now}`,
    `${now}.0`,
    `${now}e0`,
    "9".repeat(12),
    "0x1",
  ];
}

function seal(like: Vector, content: string): string {
  return testEnvelope(options(like), content).body;
}

/** The body with the headers' signature that belongs to it, and with what the library makes of it. */
function signed(like: Vector, name: string, body: string): Vector {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "" } = like.headers;
  const [secret] = like.webhookSecret;
  const key = Buffer.from(secret?.key.slice("whsec_".length) ?? "", "base64");
  const mac = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  const { ipn: _, ...posted } = { ...like, body, headers: { ...like.headers, "webhook-signature": `v1,${mac}` } };
  // One readable line; its end is the most informative part.
  const vector = {
    ...posted,
    name: JSON.stringify(name)
      .replaceAll(/[^\x21-\x7e]+/g, "?")
      .slice(-80),
  };
  return judged(vector);
}

/** The vector with what @paybell/partner makes of it: the IPN, or the code of its refusal. */
export function judged(vector: Vector): Vector {
  const { open } = receiver(options(vector));
  try {
    return { ...vector, ipn: open(vector.body, vector.headers).ipn };
  } catch (error) {
    if (!(error instanceof IpnRefused)) throw error;
    return { ...vector, code: error.reason };
  }
}

function options({ cipher, encoding, signing, encryptionKey, signingKey, webhookSecret, nowSeconds }: Vector) {
  return {
    cipher,
    encoding,
    signing,
    encryptionKey,
    signingKey,
    webhookSecret,
    clock: { nowMs: () => nowSeconds * 1000 },
  };
}
