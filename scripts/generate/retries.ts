import { defaultRetrySeconds, scheduleDays } from "../../packages/server/src/config/retry-schedule.ts";
import type { GeneratedFile } from "./document.ts";

/** The picture of the retries. Its colours follow the page that shows it. */
export function retryPicture(): GeneratedFile {
  return { path: "docs/partner/retries.svg", text: retries(defaultRetrySeconds) };
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

function text(x: number, y: number, words: string): string {
  const escaped = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x}" y="${y}">${escaped}</text>`;
}

function picture(title: string, width: number, height: number, parts: readonly string[]): string {
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img">`,
    `<title>${title}</title>`,
    "<style>",
    "text { font: 14px system-ui, sans-serif; fill: #3c3c43 }",
    ".bar { fill: #3451b2 }",
    "@media (prefers-color-scheme: dark) {",
    "text { fill: #dfdfd6 } .bar { fill: #a8b1ff }",
    "}",
    "</style>",
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}
