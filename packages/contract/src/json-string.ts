const backslash = 0x5c;

/** The place after the closing quote of the string that begins at `start`; 0 when it has none. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

/** Whether an odd number of backslashes stands before a place. */
function isEscaped(text: string, place: number): boolean {
  let before = place - 1;
  while (text.charCodeAt(before) === backslash) before -= 1;
  return (place - before) % 2 === 0;
}
