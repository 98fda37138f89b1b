import { defaultRetrySeconds, scheduleDays } from "../../packages/server/src/retry-schedule.ts";
import type { GeneratedFile } from "./document.ts";

/** Pictures of the guides. Their colours follow the page that shows them. */
export function pictures(): GeneratedFile[] {
  return [
    { path: "docs/partner/retries.svg", text: retries(defaultRetrySeconds) },
    { path: "docs/partner/flow.svg", text: flow() },
  ];
}

const rowHeight = 26;

/** A bar for each attempt, as long as the logarithm of the time since the first one. */
function retries(waits: readonly number[]): string {
  const elapsed = waits.map((_, at) => waits.slice(0, at + 1).reduce((sum, seconds) => sum + seconds, 0));
  const longest = Math.log(elapsed.at(-1) ?? 1);
  const rows = [0, ...elapsed].map((seconds, at) => {
    const y = at * rowHeight + 18;
    const width = seconds === 0 ? 4 : Math.round((Math.log(seconds) / longest) * 230);
    const when = at === 0 ? "at once" : `${duration(waits[at - 1] ?? 0)} later`;
    const total = at === 0 ? "" : duration(seconds);
    return [
      text(0, y, `${at + 1}`),
      text(28, y, when),
      `<rect x="130" y="${y - 12}" width="${width}" height="14" rx="3" class="bar"/>`,
      text(138 + width, y, total),
    ].join("");
  });
  const end = (waits.length + 1) * rowHeight + 18;
  const last = text(0, end, `Not accepted by then, after ${scheduleDays(waits).toFixed(1)} days: parked, and kept.`);
  const title = `The ${waits.length + 1} attempts to deliver an IPN, and the time since the first`;
  return picture(title, 440, end + 12, [...rows, last]);
}

/** 90 s is "1.5 min": at most one decimal, in the largest unit of which there is one. */
function duration(seconds: number): string {
  const units = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
  ] as const;
  const [unit, size] = units.find(([, length]) => seconds >= length) ?? ["s", 1];
  return `${Math.round((seconds / size) * 10) / 10} ${unit}`;
}

const lanes = ["Your program", "Paybell", "Acquirer", "Your callback"];
const lane = (at: number) => 65 + at * 150;

interface Step {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

const steps: readonly Step[] = [
  { from: 0, to: 1, label: "POST /v1/commands" },
  { from: 1, to: 2, label: "the command" },
  { from: 2, to: 1, label: "approved or declined" },
  { from: 1, to: 1, label: "result and IPN in one commit" },
  { from: 1, to: 0, label: "200, the result" },
  { from: 1, to: 3, label: 'POST {"data": …}, signed and encrypted' },
  { from: 3, to: 1, label: "2xx: accepted. Anything else: again" },
];

function flow(): string {
  const height = 70 + steps.length * 44;
  const heads = lanes.map(
    (name, at) =>
      text(lane(at), 20, name, "middle") +
      `<line x1="${lane(at)}" y1="32" x2="${lane(at)}" y2="${height - 10}" class="lane"/>`,
  );
  const arrows = steps.map(({ from, to, label }, at) => {
    const y = 76 + at * 44;
    if (from === to)
      return `<circle cx="${lane(from)}" cy="${y - 4}" r="6" class="bar"/>${text(lane(from) + 14, y, label)}`;
    const side = to > from ? -1 : 1;
    const tip = lane(to) + side * 2;
    return (
      `<line x1="${lane(from)}" y1="${y}" x2="${tip}" y2="${y}" class="arrow"/>` +
      `<path d="M${tip} ${y} l${side * 9} -5 v10 z" class="bar"/>` +
      text((lane(from) + lane(to)) / 2, y - 7, label, "middle")
    );
  });
  return picture("A command, its result, and its IPN", 585, height, [...heads, ...arrows]);
}

function text(x: number, y: number, words: string, anchor = "start"): string {
  const escaped = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${escaped}</text>`;
}

function picture(title: string, width: number, height: number, parts: readonly string[]): string {
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img">`,
    `<title>${title}</title>`,
    "<style>",
    "text { font: 14px system-ui, sans-serif; fill: #3c3c43 }",
    ".bar { fill: #3451b2 } .arrow { stroke: #3451b2; stroke-width: 1.5 } .lane { stroke: #c2c2c4; stroke-width: 1.5 }",
    "@media (prefers-color-scheme: dark) {",
    "text { fill: #dfdfd6 } .bar { fill: #a8b1ff } .arrow { stroke: #a8b1ff } .lane { stroke: #52525b }",
    "}",
    "</style>",
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}
