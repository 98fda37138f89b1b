import { type Kind, listOf, oneOf, text, url } from "./kind.ts";
import { optional, setting } from "./setting.ts";

const headerPattern = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([\x20-\x7e]*)$/;

/** One header as the standard variable has it: its value is percent-encoded. */
const header: Kind<readonly [name: string, value: string]> = {
  description: "name=value",
  read(pair) {
    const [, name, value] = headerPattern.exec(pair) ?? [];
    if (name === undefined || value === undefined) return undefined;
    try {
      const decoded = decodeURIComponent(value.trim());
      return /^[\x20-\x7e]*$/.test(decoded) ? [name, decoded] : undefined;
    } catch {
      return undefined;
    }
  },
};

const share: Kind<number> = {
  description: "a number from 0 to 1",
  read: (value) => (/^(0|1|0?\.\d{1,9}|1\.0+)$/.test(value) ? Number(value) : undefined),
};

/** The export of traces. The names are those that OpenTelemetry defines for every service. */
export const traceSettings = {
  tracesEndpoint: optional({
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    kind: url("https:", "http:"),
    meaning:
      "Collector to which traces are sent by OTLP over HTTP, such as http://collector:4318; `v1/traces` is appended. " +
      "Not set: there are no traces.",
    secret: true,
  }),
  tracesHeaders: setting({
    name: "OTEL_EXPORTER_OTLP_HEADERS",
    kind: listOf(header, "headers, each as name=value with a percent-encoded value", 50),
    default: [],
    meaning: "Headers of each export, such as `authorization=Bearer%20…`.",
    secret: true,
  }),
  tracesServiceName: setting({
    name: "OTEL_SERVICE_NAME",
    kind: text,
    default: "paybell",
    meaning: "The service's name in traces.",
  }),
  tracesSampler: setting({
    name: "OTEL_TRACES_SAMPLER",
    kind: oneOf([
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio",
    ]),
    default: "parentbased_always_on" as const,
    meaning:
      "Which traces are exported. With `parentbased_…` the sampled flag of a caller's `traceparent` decides about " +
      "its request; the rest of the name decides about everything else.",
  }),
  tracesShare: setting({
    name: "OTEL_TRACES_SAMPLER_ARG",
    kind: share,
    default: 1,
    unit: "share of the traces",
    meaning: "For the samplers that end in `traceidratio`: the share that is exported, such as 0.05.",
  }),
};
