import { Command } from "commander";

/** Commands of the service live in a package of their own: a partner's machine needs none of it. */
async function service() {
  try {
    return await import("@paybell/server");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    process.stderr.write("paybell: this command runs the service. Install it first: npm install @paybell/server\n");
    process.exit(1);
  }
}

const program = new Command("paybell")
  .description("Card payment commands, and the notifications that must not be lost.")
  .showHelpAfterError()
  .addHelpText("after", "\nExample:\n  $ paybell sandbox");

program
  .command("sandbox")
  .description("run the service for this machine alone, with a partner and its receiver")
  .addHelpText("after", "\nExample:\n  $ PAYBELL_PORT=7500 paybell sandbox")
  .action(async () => {
    process.exitCode = await (await service()).runSandbox({ process });
  });

program
  .command("serve")
  .description("run the service: on DATABASE_URL, or on a PostgreSQL of its own")
  .addHelpText("after", '\nExample:\n  $ PAYBELL_MASTER_KEY="$(openssl rand -base64 32)" paybell serve')
  .action(async () => {
    process.exitCode = await (await service()).runServe({ process });
  });

program
  .command("check")
  .description("say whether these settings can carry a service, and what to mend")
  .option("--json", "print the findings as JSON", false)
  .addHelpText("after", "\nExample:\n  $ DATABASE_URL=postgres://paybell@db.example/paybell paybell check")
  .action(async (options: { json: boolean }) => {
    process.exitCode = await (await service()).runCheck({ process }, options);
  });

await program.parseAsync();
// Nothing of the service stays open after its end; if something did, it must not keep the process.
process.exit(process.exitCode ?? 0);
