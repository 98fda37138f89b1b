/** PREAUTH_COMPLETE is shown as PREAUTH-COMPLETE. */
export function shownCommand(command: string): string {
  return command.replace("_", "-");
}
