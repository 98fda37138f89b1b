import { afterAll, beforeAll, describe, test } from "vitest";
import { LedgerBench } from "../../packages/server/src/ledger/ledger.fixture.ts";
import { ledgerModel } from "../../packages/server/src/ledger/model-suite.fixture.ts";
import { type AcquirerHost, needsHost, startHost } from "./host.ts";
import { HostedBank } from "./hosted-bank.fixture.ts";

const needed = needsHost();

describe("the ledger over a host on jPOS", needed, () => {
  let host: AcquirerHost;
  beforeAll(async () => {
    host = await startHost();
  });
  afterAll(() => host.stop());

  const open = () => LedgerBench.open({ acquirerTimeoutMs: 30_000, otherBank: new HostedBank(host) });
  ledgerModel(test, { open, runs: 10, runMs: 30_000 });
});
