import { createInterface } from "node:readline";
import { startEmbeddedPostgres } from "../embedded.ts";
import { PostgresStartError } from "../start-error.ts";

// A service of its own, for tests that kill one or run one as another user:
//   node service.fixture.ts <home> [<system directory>]
// One JSON line says how the start went; a line on standard input stops it.
const [home = "", systemDirectory] = process.argv.slice(2);
try {
  const postgres = await startEmbeddedPostgres({
    home,
    settings: { fsync: "off" },
    log: (line) => process.stderr.write(`${line}\n`),
    ...(systemDirectory === undefined ? {} : { systemDirectory }),
  });
  const { pid, connectionString, superuserConnectionString, socketDirectory } = postgres;
  const report = { pid, connectionString, superuserConnectionString, socketDirectory };
  process.stdout.write(`${JSON.stringify(report)}\n`);
  createInterface(process.stdin).once("line", async () => {
    await postgres.stop();
    process.exit(0);
  });
} catch (error) {
  if (!(error instanceof PostgresStartError)) throw error;
  const { code, message, remedy } = error;
  process.stdout.write(`${JSON.stringify({ code, message, remedy })}\n`);
}
