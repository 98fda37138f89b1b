import { Iso8583Acquirer } from "../acquirer/iso8583/iso8583.ts";
import { matchProblems } from "../acquirer/iso8583/profile/match.ts";
import type { Config } from "../config.ts";
import { messageOf } from "../errors.ts";
import type { SchemaUrls } from "../store/schema/migrate.ts";
import { type HostOptions, iso8583Options } from "./acquirer.ts";
import { type AcquirerLinks, withAcquirerLinks } from "./acquirer-links.ts";
import { type CheckFinding, error, ok, warning } from "./check-finding.ts";
import { openMasterKey } from "./master-key.ts";

const signOnTimeoutMs = 5_000;

/** Whether the acquirer of the settings and each registered one can be asked: each is signed on at, in its turn. */
export async function acquirerFindings({ databaseUrl }: SchemaUrls, config: Config): Promise<CheckFinding[]> {
  const masterKey = await openMasterKey(config).catch(() => undefined);
  // Without the master key or the database, which have findings of their own, no registered acquirer is known.
  if (masterKey === undefined) return [await ofSettings(config, undefined)];
  return withAcquirerLinks(databaseUrl, masterKey, async (links) => {
    const names = await links.names().catch(() => undefined);
    if (names === undefined) return [await ofSettings(config, undefined)];
    const findings = [await ofSettings(config, links)];
    for (const name of names) findings.push(await ofRegistered(name, links));
    return findings;
  });
}

async function ofSettings(config: Config, links: AcquirerLinks | undefined): Promise<CheckFinding> {
  const what = "acquirer";
  const remedy = "Connect a host with PAYBELL_ACQUIRER=iso8583, or report completions from your switch.";
  if (config.acquirer === null) return warning(what, "there is none: commands are refused", remedy);
  if (config.acquirer !== "iso8583") {
    return warning(what, "commands are answered by the simulator: no card is charged", remedy);
  }
  try {
    const options = await iso8583Options(config);
    return await linkFinding(
      what,
      "",
      options,
      links,
      "Check PAYBELL_ACQUIRER_HOSTS, the network to them, and the profile.",
    );
  } catch (failure) {
    return error(what, messageOf(failure), "Correct the file, or the setting that names it.");
  }
}

async function ofRegistered(name: string, links: AcquirerLinks): Promise<CheckFinding> {
  const what = `acquirer ${name}`;
  const remedy = `Check its hosts, the network to them, and its profile: \`paybell acquirer show ${name}\`.`;
  try {
    const options = await links.registered(name);
    if (options === undefined) return warning(what, "was removed meanwhile", "Check again.");
    return await linkFinding(what, name, options, links, remedy);
  } catch (failure) {
    return error(what, `cannot be opened: ${messageOf(failure)}`, remedy);
  }
}

/** A second session would end the one that an instance has, where the host allows only one. */
async function linkFinding(
  what: string,
  name: string,
  options: HostOptions,
  links: AcquirerLinks | undefined,
  remedy: string,
): Promise<CheckFinding> {
  const problems = matchProblems(options.profile);
  if (problems.length > 0) return error(what, problems.join("; "), "Name fields in matchBy that tell requests apart.");
  if (options.profile.network.sessions === "one" && links !== undefined) {
    const { leaseId, isUp, detail } = await links.sessionHolder(name);
    const told = `an instance has the one session that the host allows: ${detail}`;
    if (leaseId !== null) return isUp ? ok(what, told) : error(what, told, remedy);
  }
  const acquirer = new Iso8583Acquirer(links?.withShared(name, options) ?? options);
  try {
    const isUp = await acquirer.isUpWithin(signOnTimeoutMs);
    const { detail } = acquirer.health();
    return isUp ? ok(what, detail) : error(what, detail, remedy);
  } finally {
    await acquirer.close();
  }
}
