import { test } from "vitest";
import { LedgerBench } from "./ledger.fixture.ts";
import { ledgerModel } from "./model-suite.fixture.ts";

ledgerModel(test, { open: () => LedgerBench.open({ acquirerTimeoutMs: 60, lateByMs: 10 }), runs: 10, runMs: 4_000 });
