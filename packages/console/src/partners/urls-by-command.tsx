import type { Partner } from "../api/operations.ts";

export type UrlsByCommand = Partner["settings"]["callBackUrlByCommand"];

/** The URLs of commands that have one of their own, one on a line. */
export function UrlsByCommandList({ urls }: { readonly urls: UrlsByCommand }) {
  const named = Object.entries(urls);
  if (named.length === 0) return "none: all IPNs go to the callback URL";
  return named.map(([command, url]) => (
    <div key={command} className="wraps">
      {command} {url}
    </div>
  ));
}

/** As in the form: a command and its URL on each line. */
export function textOfUrls(urls: UrlsByCommand): string {
  return Object.entries(urls)
    .map(([command, url]) => `${command} ${url}`)
    .join("\n");
}

/** A line without a URL, and a command on two lines, become no URL: the API reports them at the field. */
export function urlsOfText(text: string): Record<string, string> {
  const urls: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const [command = "", ...url] = line.trim().split(/\s+/);
    if (command !== "") urls[command] = [...(urls[command] === undefined ? [] : [urls[command]]), ...url].join(" ");
  }
  return urls;
}
