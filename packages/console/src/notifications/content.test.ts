import { expect, test } from "vitest";
import { curlOf } from "./content.tsx";

test("a curl command quotes what a shell would take apart", () => {
  const url = "https://shop.example/ipn?a=1&b='";
  expect(curlOf({ url, headers: { "webhook-id": "1" }, body: '{"data":"$x"}' }).split(" \\\n")).toEqual([
    String.raw`curl -X POST 'https://shop.example/ipn?a=1&b='\'''`,
    "  -H 'webhook-id: 1'",
    `  --data-binary '{"data":"$x"}'`,
  ]);
});
