import { z } from "zod";
import { bodyOf, component, componentOf, described } from "../../input/descriptions.ts";
import { terminalLengthsMax } from "../../partners/terminal.ts";

const terminalText = (name: keyof typeof terminalLengthsMax) => z.string().max(terminalLengthsMax[name]);

export const terminalBody = bodyOf(
  "TerminalRegistration",
  "A terminal's merchant and device; what is left out becomes empty",
  {
    mid: terminalText("mid"),
    merchantId: terminalText("merchantId").optional(),
    merchantName: terminalText("merchantName").optional(),
    merchantAddress: terminalText("merchantAddress").optional(),
    deviceId: terminalText("deviceId").optional(),
    appName: terminalText("appName").optional(),
    acquirer: described(
      terminalText("acquirer"),
      "The name of the acquirer that its commands go to; empty: the one of the settings",
    ).optional(),
  },
);
export const terminalSchema = componentOf("Terminal", "A terminal as registered", {
  tid: z.string(),
  ...terminalBody.required().shape,
});
export const terminalPageSchema = z.object({ items: z.array(terminalSchema), next: z.string().nullable() });

export const terminalQuery = z.strictObject({
  q: described(z.string().min(1).max(128), "A tid, a mid, or the beginning of a merchant's name"),
});
export const foundTerminalsSchema = z.object({
  items: z.array(component(terminalSchema.extend({ partnerId: z.uuid() }), "FoundTerminal", "A terminal of a partner")),
});
