import { registerHooks } from "node:module";
import { isMainThread } from "node:worker_threads";

// Given to a process by --import: it says which modules of OpenTelemetry are loaded, in whichever thread.
registerHooks({
  load(url, context, next) {
    const [, name] = /\/(@opentelemetry\/[^/]+)\//.exec(url) ?? [];
    if (name !== undefined) process.stderr.write(`loaded ${name} in ${isMainThread ? "main" : "a worker"}\n`);
    return next(url, context);
  },
});
