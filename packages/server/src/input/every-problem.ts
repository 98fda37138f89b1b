import { type Command, commands } from "@paybell/contract";
import { completionProblems } from "../commands/reports/check-completion.ts";
import { type CompletionRequest, completionFields, completionKind } from "../commands/reports/completion.ts";
import { convertReport } from "../commands/reports/convert-report.ts";
import { requestProblems } from "../commands/requests/check.ts";
import { type CommandRequest, reqIdField, requestFields } from "../commands/requests/request.ts";
import { exemptDevice, reqIdRule } from "../commands/requests/rules.ts";
import type { FieldProblem } from "../errors.ts";
import { type PartnerId, readId } from "../ids.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import { callbackUrlProblem } from "../partners/settings/callback-rules.ts";
import { defaultSettings } from "../partners/settings/settings.ts";
import { shapeError } from "./issues.ts";
import { anyCommandSchema, wellTyped } from "./shapes.ts";

/** The facts about a partner that the rules need. */
export interface Judges {
  readonly directory: Pick<PartnerDirectory, "find">;
  /** Whether this is a sandbox, whose callbacks may be local. */
  readonly sandbox?: boolean;
  /** Whether the operator registered this device for the partner: its serial number is known to be no card number. */
  isRegisteredDevice(partnerId: PartnerId, deviceId: string): Promise<boolean>;
}

interface CommandJudges extends Judges {
  /** Why the acquirer of this terminal cannot take this card token; undefined when it can. */
  refusesToken(partnerId: PartnerId, tid: string, token: string): Promise<string | undefined>;
}

/** A rule about two fields does not apply while the other one is invalid. */
const otherFieldOf: Readonly<Record<string, string>> = {
  "aid_required card.aid": "paymentType",
  "missing_field transactionId": "originalReqId",
};

/** Every invalid field of a command whose shape is wrong: `known` from its shape, the others by the rules. */
export async function everyProblemOfCommand(
  known: readonly FieldProblem[],
  body: unknown,
  partner: Partner,
  judges: CommandJudges,
): Promise<FieldProblem[]> {
  const command = commandIn(body);
  // Without a known command the allowed fields are unknown, but a value that no command accepts is wrong anyway.
  if (command === undefined) return withOthers(known, problemsOfAnyCommand(body));
  const request = { command, ...wellTyped([reqIdField, ...requestFields[command]], body) } as unknown as CommandRequest;
  const found = await judged(request, requestProblems(request, partner.settings), partner, judges);
  const token = "card" in request ? request.card.token : "";
  const tid = "tid" in request ? (request.tid ?? "") : "";
  const refusal = token === "" ? undefined : await judges.refusesToken(partner.id, tid, token);
  if (refusal !== undefined) found.push({ field: "card.token", code: "unknown_test_card", message: refusal });
  return withOthers(known, found);
}

/** The same for an item of a report, and for one whose partner is not known. @param path of the item, as in `known` */
export async function everyProblemOfCompletion(
  { known, item, path }: { readonly known: readonly FieldProblem[]; readonly item: unknown; readonly path: string },
  judges: Judges,
): Promise<FieldProblem[]> {
  const fields = completionFields[completionKind(commandIn(item) ?? "SALE")];
  const given = wellTyped(fields, item) as unknown as CompletionRequest;
  // A partner that cannot be read now is read when the item is sent again.
  const partner = await partnerOf(given, judges).catch(() => null);
  const agreement = partner?.settings.reports ?? defaultSettings.reports;
  const completion = convertReport(given, agreement);
  const found = await judged(completion, completionProblems(completion, agreement), partner ?? undefined, judges);
  if (partner === undefined && completion.partnerId !== "") {
    found.push({ field: "partnerId", code: "unknown_partner", message: "No partner has this partnerId." });
  }
  return withOthers(known, found, path);
}

function problemsOfAnyCommand(body: unknown): FieldProblem[] {
  const { error } = anyCommandSchema.safeParse(body);
  const reqId = String(wellTyped([reqIdField], body)["reqId"]);
  return [
    ...(error === undefined ? [] : shapeError(error, body).fields),
    ...[reqIdRule("reqId", reqId)].filter((problem) => problem !== undefined),
  ];
}

async function partnerOf({ partnerId }: CompletionRequest, { directory }: Judges): Promise<Partner | undefined> {
  const id = readId<"partner">(partnerId);
  return id && (await directory.find(id));
}

/** By what is known of the partner. Without it, the registration of the device is unknown. */
async function judged(
  values: { readonly deviceId?: string | undefined; readonly callBackUrl?: string | undefined } | CommandRequest,
  problems: readonly FieldProblem[],
  partner: Partner | undefined,
  { sandbox = false, isRegisteredDevice }: Judges,
): Promise<FieldProblem[]> {
  const deviceId = "deviceId" in values ? (values.deviceId ?? "") : "";
  const callBackUrl = "callBackUrl" in values ? values.callBackUrl : undefined;
  const isRegistered = async () => partner === undefined || (await isRegisteredDevice(partner.id, deviceId));
  const found = await exemptDevice(problems, isRegistered);
  const problem = callBackUrl && callbackUrlProblem("callBackUrl", callBackUrl, { sandbox }, partner?.settings);
  return problem ? [...found, problem] : [...found];
}

/** The shape's problems replace other problems of the same field and of its parts. */
function withOthers(known: readonly FieldProblem[], found: readonly FieldProblem[], path = ""): FieldProblem[] {
  const named = new Set(known.map(({ field }) => field));
  const others = found.filter(({ field, code }) => {
    const other = otherFieldOf[`${code} ${field}`];
    return !isNamed(named, path + field) && (other === undefined || !named.has(path + other));
  });
  return [...known, ...others.map((problem) => ({ ...problem, field: path + problem.field }))];
}

function isNamed(named: ReadonlySet<string>, field: string): boolean {
  if (named.has(field)) return true;
  const outer = field.search(/(?:\.|\[\d+\])[^.[]*$/);
  return outer > 0 && isNamed(named, field.slice(0, outer));
}

function commandIn(body: unknown): Command | undefined {
  if (typeof body !== "object" || body === null || !("command" in body)) return undefined;
  return commands.find((command) => command === body.command);
}
