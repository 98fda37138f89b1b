import { randomUUID } from "node:crypto";
import type { Bench, Case, CaseStep, Words } from "./judge.ts";
import {
  cardNotification,
  type Deviation,
  type SampleNotification,
  settlementNotification,
  strangeKey,
} from "./notification.ts";

/** A settlement as long as a batch can be. */
const hugeEntries = 50_000;

const dedupe = {
  fix: "Deduplicate by the IPN's id: if it is already stored, do nothing and answer 2xx.",
  documentation: "/docs/partner/deduplicate",
} as const;

const ended: Words = {
  means: "One broken connection stops the endpoint: it receives no payments until it is started again.",
  fix: "Handle the error of a request that ends too early: it must not end the process.",
};

const notOrdered: Words = {
  means: "A Void that comes first is repeated until its Sale is there, or is parked: the customer waits for the money.",
  fix:
    "Store a Void whose Sale you have not seen, with its originalId or the transactionId that you sent, and join them " +
    "when the Sale comes; or fetch that with GET /v1/transactions/<id>. Then answer 2xx.",
  documentation: "/docs/partner/deduplicate#a-sale-after-its-void",
};

const tooLarge: Words = {
  means: "A large batch is settled, and its IPN never arrives: nothing reconciles that day.",
  fix:
    "Raise the body limit of the framework and of every proxy (nginx: client_max_body_size) to 16 MB: a batch " +
    "this long makes 4 to 7 MB, by encoding.",
};

/** Everything that the service sends: each must be answered 2xx. */
export const acceptedCases: readonly Case[] = [
  one("sale", "an approved Sale", (bench) => approvedSale(bench, "sale")),
  {
    ...chain("void", "a Sale, then its Void", "SALE", "VOID", { transaction_type: "VOID", refId: "" }),
    words: {
      refused_authentic: {
        means: "The customer has the money back, and your books still show the Sale.",
        fix: "Accept transaction_type VOID. Its refId is empty: that must not make it invalid.",
      },
    },
  },
  one("preauth", "an approved PreAuth", preAuth),
  chain("preauth-complete", "a PreAuth, then its PreAuth-Complete", "PREAUTH", "PREAUTH_COMPLETE", {
    transaction_type: "SALE",
  }),
  {
    ...chain("cancel", "a PreAuth, then its Void", "PREAUTH", "VOID", { transaction_type: "CANCEL", refId: "" }),
    words: {
      refused_authentic: {
        means: "The customer's money is released, and your books still show the hold.",
        fix: "Accept transaction_type CANCEL, the Void of a PreAuth. Its refId and batchNo are empty.",
      },
    },
  },
  {
    ...one("decline", "a declined Sale, by magnetic stripe", declined),
    words: {
      refused_authentic: {
        means: "A decline is an IPN too. Paybell repeats it for about three days, and a Void behind it waits.",
        fix:
          "Accept status ERROR, and empty values: aid, approveCode, cardScheme, refId. In the signed string an empty " +
          "value keeps its key (cardScheme= and the next &).",
      },
    },
  },
  settled("settlement", "three Sales, then the settlement of their batch", 3),
  settled("empty-settlement", "a settlement of an empty batch", 0),
  aliases(
    one(
      "sample-names",
      "a Sale under the key names of the specification's sample",
      (bench) => approvedSale(bench, "sample-names", { cardScheme: "Visa" }),
      { wireNames: "sample" },
    ),
    "approve_code, device_id and payment_type, and cardScheme in mixed case",
  ),
  aliases(
    settled("sample-names-settlement", "a settlement under the key names of the specification's sample", 2, {
      wireNames: "sample",
      unsigned: (wire) => ({ ...wire, transaction_time: iso8601(String(wire["transaction_time"])) }),
    }),
    "deviceID, request_body and response, and an ISO 8601 time",
  ),
  {
    ...one("non-ascii", "a Sale with non-ASCII text, also in signed fields", ({ facts }) => {
      const text = {
        cardHolder: "NGUYỄN VĂN A",
        billId: "Hóa đơn №7 🧾",
        extraData: '{"ghi chú":"a&b=c \\"d\\" \\\\"}',
      };
      const sale = facts.card("non-ascii", text);
      return cardNotification("SALE", { ...sale, merchantTransId: `${sale.merchantTransId}-Đơn` });
    }),
    words: {
      refused_authentic: {
        means: "Every payment with such a name or order code is refused, and only those.",
        fix: "Build the signed string from the unchanged values of the JSON, and sign its UTF-8 bytes.",
      },
    },
  },
  {
    ...one(
      "unknown-fields",
      "a Sale with fields that you do not know",
      (bench) => approvedSale(bench, "unknown-fields"),
      {
        unsigned: (wire) => ({ ...wire, later: "1", more: { nested: ["1"] } }),
      },
    ),
    words: {
      refused_authentic: {
        means: "The day a later version of Paybell adds a field, every payment is refused.",
        fix: "Read the fields that you know, and pass over the others. With signing whole they are signed too.",
      },
    },
  },
  {
    code: "duplicate",
    title: "the same notification twice",
    expects: "accepted",
    steps: (bench) => {
      const sale = approvedSale(bench, "duplicate");
      return [
        accepted("a Sale", bench.post(sale)),
        accepted("the same again, encrypted anew", bench.post(sale, { attempt: 2 })),
      ];
    },
    words: {
      server_error: {
        means:
          "Delivery is at least once: an answer can get lost. Paybell repeats what you have already stored for about " +
          "three days, and the IPNs that follow it (its Void, the settlement) wait for it, up to ten minutes.",
        ...dedupe,
      },
      refused_authentic: { means: "Paybell repeats what you have already stored, then parks it.", ...dedupe },
    },
  },
  {
    code: "reordered",
    title: "a Void before its Sale",
    expects: "accepted",
    steps: (bench) => {
      const sale = bench.facts.card("reordered");
      const voided = bench.facts.following(sale, { transaction_type: "VOID", refId: "" });
      const late = { originalId: sale.id, originalReqId: sale.reqId, outOfOrder: true };
      return [
        accepted("the Void of a Sale that has not come", bench.post(cardNotification("VOID", voided, late))),
        accepted("the Sale", bench.post(cardNotification("SALE", sale))),
      ];
    },
    words: {
      server_error: notOrdered,
      refused_authentic: notOrdered,
    },
  },
  {
    code: "raw-bytes",
    title: "a Sale in a body with white space, signed as it is sent",
    expects: "accepted",
    steps: (bench) => [
      accepted(
        "a Sale in a body with white space, which webhook-signature covers",
        bench.post(approvedSale(bench, "raw-bytes"), { body: spaced }),
      ),
    ],
    words: {
      refused_authentic: {
        means: "You do not verify the bytes that were sent: one byte serialised differently, and a payment is refused.",
        fix: "Compute webhook-signature over the raw bytes of the body. Do not parse and re-serialise it first.",
        documentation: "/docs/partner/headers#the-headers-signature",
      },
    },
  },
  {
    code: "key-rotation",
    title: "webhook-signature with two entries, as during a rotation",
    expects: "accepted",
    steps: (bench) => {
      const sale = approvedSale(bench, "key-rotation");
      const keys = { webhookSecret: strangeKey(), otherWebhookSecrets: [bench.keys.webhookSecret] };
      const post = bench.post(sale, { keys });
      return [accepted("a Sale; the second entry is made with your webhook secret", post)];
    },
    words: {
      refused_authentic: {
        means: "When the webhook secret is rotated, every notification is refused until you have changed it too.",
        fix: "Split webhook-signature at spaces, and accept if one entry is right.",
        documentation: "/docs/partner/rotate-keys#old-and-new-in-your-receiver",
      },
    },
  },
  {
    ...one("huge-settlement", `a settlement of ${hugeEntries.toLocaleString("en")} transactions`, ({ facts }) => {
      facts.newBatch();
      // They were not sent. refNo may repeat: here it does.
      const list = Array.from({ length: hugeEntries }, (_, at) => ({ reqId: randomUUID(), refNo: `R${at >> 1}` }));
      return settlementNotification(facts.settlement("huge-settlement", list));
    }),
    words: {
      too_large: tooLarge,
      reset: tooLarge,
      refused_authentic: tooLarge,
      server_error: tooLarge,
      timeout: {
        means: "A large batch is settled, and its IPN never arrives: nothing reconciles that day.",
        fix: "Write settlementList to the database in bulk, or store the IPN, answer, and process it afterwards.",
      },
    },
  },
  {
    code: "slow-body",
    title: "a body that is sent in pieces, over two seconds",
    expects: "accepted",
    steps: (bench) => {
      const sale = approvedSale(bench, "slow-body");
      return [accepted("a Sale, its body in 20 pieces", bench.post(sale, { pace: "slow" }))];
    },
    words: {
      refused_authentic: {
        means: "On a slow connection authentic notifications are refused.",
        fix: "Read the body to its end, then verify it: the first piece is not the body.",
      },
      timeout: {
        means: "On a slow connection notifications are never acknowledged.",
        fix: "Answer when the body is complete: content-length is its length.",
      },
    },
  },
  {
    code: "cut-body",
    title: "half of a Sale, then the connection is cut; then another Sale, whole",
    expects: "accepted",
    steps: (bench) => {
      const post = (deviation: Deviation) => bench.post(approvedSale(bench, "cut-body"), deviation);
      return [
        { what: "half of a Sale, then the connection is cut", post: post({ pace: "cut" }), expects: "anything" },
        accepted("another Sale", post({})),
      ];
    },
    words: { no_connection: ended, reset: ended },
  },
];

function accepted(what: string, post: CaseStep["post"]): CaseStep {
  return { what, post, expects: "accepted" };
}

function one(code: string, title: string, make: (bench: Bench) => SampleNotification, deviation: Deviation = {}): Case {
  const steps = (bench: Bench) => [accepted(title, bench.post(make(bench), deviation))];
  return { code, title, expects: "accepted", steps };
}

function chain(
  code: string,
  title: string,
  first: "SALE" | "PREAUTH",
  second: "VOID" | "PREAUTH_COMPLETE",
  changes: Parameters<Bench["facts"]["following"]>[1],
): Case {
  const steps = (bench: Bench) => {
    const batchNo = first === "PREAUTH" ? { batchNo: "" } : {};
    const original = bench.facts.card(code, batchNo);
    const following = bench.facts.following(
      original,
      second === "PREAUTH_COMPLETE" ? { batchNo: bench.facts.batchNo } : {},
    );
    const of = { originalId: original.id, originalReqId: original.reqId };
    const later = cardNotification(second, { ...following, ...changes }, of);
    return [
      accepted(first === "SALE" ? "a Sale" : "a PreAuth", bench.post(cardNotification(first, original))),
      accepted(second === "VOID" ? "its Void" : "its PreAuth-Complete", bench.post(later)),
    ];
  };
  return { code, title, expects: "accepted", steps };
}

function approvedSale(
  { facts }: Bench,
  code: string,
  changes: Parameters<Bench["facts"]["card"]>[1] = {},
): SampleNotification {
  return cardNotification("SALE", facts.card(code, changes));
}

function preAuth({ facts }: Bench): SampleNotification {
  return cardNotification("PREAUTH", facts.card("preauth", { batchNo: "" }));
}

function declined({ facts }: Bench): SampleNotification {
  const empty = { aid: "", approveCode: "", cardHolder: "", cardScheme: "", refId: "" } as const;
  return cardNotification(
    "SALE",
    facts.card("decline", { ...empty, isoResponseCode: "51", status: "ERROR", swipeType: "S" }),
  );
}

/** A batch of its own: the Sales that its settlement lists are sent first. */
function settled(code: string, title: string, count: number, deviation: Deviation = {}): Case {
  const steps = ({ facts, post }: Bench) => {
    const batchNo = facts.newBatch();
    const sales = Array.from({ length: count }, () => facts.card(code, { batchNo }));
    const list = sales.map(({ reqId, refId }) => ({ reqId, refNo: refId }));
    const settlement = settlementNotification(facts.settlement(code, list, { batchNo }));
    facts.newBatch();
    const { wireNames } = deviation;
    return [
      ...sales.map((sale) => accepted("a Sale", post(cardNotification("SALE", sale), wireNames && { wireNames }))),
      accepted("the settlement of this batch", post(settlement, deviation)),
    ];
  };
  return { code, title, expects: "accepted", steps };
}

function aliases(made: Case, names: string): Case {
  const words = {
    means: "When the operator sets wireNames to sample, or an older service calls, every payment is refused.",
    fix: `Accept either name of a field, and build the signed string under the tables' names. Here: ${names}.`,
  };
  return { ...made, words: { refused_authentic: words, server_error: words } };
}

function iso8601(yyyymmddhhmmss: string): string {
  return yyyymmddhhmmss.replace(/^(....)(..)(..)(..)(..)(..)$/, "$1-$2-$3T$4:$5:$6Z");
}

function spaced(body: string): string {
  return `${body.replace(/^\{"data":/, '{ "data" : ').replace(/\}$/, " }")}\n`;
}
