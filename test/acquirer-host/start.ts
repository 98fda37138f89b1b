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
  process.stdout.write("Its profile is docs/operator/acquirer-profile.json. Ctrl-C ends it.\n");
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => host.stop());
}
