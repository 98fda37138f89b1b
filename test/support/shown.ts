/** Finds a printed line, ignoring ids, times, codes and ports, which differ between runs. */
export function patternOf(line: string): RegExp {
  const literal = line.trim().replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const pattern = literal
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g, "[0-9a-f-]{36}")
    .replaceAll(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\\\.\d{3}Z/g, "\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z")
    .replaceAll(/^\d{2}:\d{2}:\d{2}/g, "\\d\\d:\\d\\d:\\d\\d")
    .replaceAll(/(refNo|refId)( +)\d{12}/g, "$1$2\\d{12}")
    .replaceAll(/(approveCode +)[0-9A-Z]{6}/g, "$1[0-9A-Z]{6}")
    .replaceAll(/(transDateTime +)\d{14}/g, "$1\\d{14}")
    .replaceAll(/(signature +)[0-9a-f]{20,}/g, "$1[0-9a-f]+")
    .replaceAll(/(127\\\.0\\\.0\\\.1|localhost):\d+/g, "$1:\\d+")
    .replaceAll(/\b\d+(?:\\\.\d+)? m?s\b/g, "[\\d.]+ m?s");
  return new RegExp(`^\\s*${pattern}\\s*$`);
}
