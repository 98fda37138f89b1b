/** RFC 7240: preferences are separated by commas, in any case, and each may have parameters. */
export function prefersAsync(header: string | string[] | undefined): boolean {
  if (header === undefined) return false;
  const preferences = [header].flat().join(",").split(",");
  return preferences.some((preference) => /^respond-async$/i.test((preference.split(";")[0] ?? "").trim()));
}
