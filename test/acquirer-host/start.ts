import { needsHost, startHost } from "./host.ts";

const portDefault = 9583;

// `npm run acquirer-host [-- port]`: starts the host of the tests. Ctrl-C ends it.
if (import.meta.main) {
  const { missing = [] } = needsHost().meta;
  if (missing.length > 0) {
    process.stderr.write(`The acquirer's host needs what this machine lacks:\n  ${missing.join("\n  ")}\n`);
    process.exit(1);
  }
  const host = await startHost({ port: Number(process.argv[2] ?? portDefault) });
  process.stdout.write(`An acquirer's host on jPOS listens on 127.0.0.1:${host.port}.\n`);
  process.stdout.write(
    "Test cards: tok_approve tok_decline_51 tok_timeout tok_late tok_break tok_partial tok_then_timeout\n",
  );
  process.stdout.write("  export PAYBELL_ACQUIRER=iso8583 PAYBELL_ACQUIRER_TLS=off\n");
  process.stdout.write(`  export PAYBELL_ACQUIRER_HOSTS=127.0.0.1:${host.port}\n`);
  process.stdout.write("  export PAYBELL_ACQUIRER_PROFILE=docs/operator/acquirer-profile.json\n");
  process.stdout.write("Ctrl-C ends it.\n");
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => host.stop());
}
