import type { ReactElement, ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { AbortSettlement, ResolveSettlement, RetryDoneReversal, ReversalActions } from "./in-doubt.tsx";

afterEach(() => vi.unstubAllGlobals());

interface Shown {
  readonly label: string;
  readonly needsReason?: boolean;
  onConfirm(reason: string): Promise<unknown>;
  readonly children?: readonly ReactElement<Shown>[];
}

function decisionsIn(made: ReactNode): readonly Shown[] {
  const { props } = made as ReactElement<Shown>;
  return props.children?.map((one) => one.props) ?? [props];
}

test("each decision on money in doubt asks for a reason that is kept, and calls its own operation", async () => {
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", async (url: string, { method, body }: { method: string; body: string }) => {
    sent.push(`${method} ${url} ${body}`);
    return Response.json({});
  });
  const id = "t-1";
  const made = [ReversalActions({ id }), RetryDoneReversal({ id }), AbortSettlement({ id }), ResolveSettlement({ id })];
  const decisions = made.flatMap(decisionsIn);
  for (const { onConfirm } of decisions) await onConfirm("asked");
  const reason = '{"reason":"asked"}';
  expect(decisions.map(({ label, needsReason = false }, at) => [label, needsReason, sent[at]])).toEqual([
    ["Retry", false, "POST /operator/v1/reversals/t-1/retry {}"],
    ["Resolve", true, `POST /operator/v1/reversals/t-1/resolve ${reason}`],
    ["It stands", true, `POST /operator/v1/reversals/t-1/stands ${reason}`],
    ["Reverse again", true, `POST /operator/v1/reversals/t-1/retry ${reason}`],
    ["Abort", true, `POST /operator/v1/settlements/t-1/abort ${reason}`],
    ["Resolve", true, `POST /operator/v1/settlements/t-1/resolve ${reason}`],
  ]);
});
