import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** The service's metrics, in a registry of their own. Passed to the parts as one object. */
export type Metrics = ReturnType<typeof createMetrics>;

const fastSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30];
const flushSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
/** Few, because every partner has all of them. */
const partnerSeconds = [0.1, 0.5, 2, 10, 60, 600, 3_600];
const batchRows = [1, 2, 5, 10, 25, 50, 100, 250, 500];

/** @returns the metrics, and `close`, which stops measuring the event loop. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter<Label>({ name: `paybell_${name}`, help, labelNames, registers });
  const gauge = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge<Label>({ name: `paybell_${name}`, help, labelNames, registers });
  const histogram = <Label extends string = never>(
    name: string,
    help: string,
    buckets: readonly number[],
    ...labelNames: Label[]
  ) => new Histogram<Label>({ name: `paybell_${name}`, help, buckets: [...buckets], labelNames, registers });
  const readings: (() => Promise<void>)[] = [];
  return {
    registry,
    close: observeProcess(registry),
    /** `reading` sets current values, each time the metrics are read. */
    onRead(reading: () => Promise<void>): void {
      readings.push(reading);
    },
    /** In Prometheus' text format. A failed reading leaves its values unchanged. */
    async text(): Promise<string> {
      await Promise.allSettled(readings.map((reading) => reading()));
      return registry.metrics();
    },

    commands: counter("commands_total", "Commands processed; `outcome` is `SUCCESS` or `ERROR`", "command", "outcome"),
    commandSeconds: histogram("command_seconds", "From a command to its answer", fastSeconds, "command"),
    acquirerLinks: gauge(
      "acquirer_links_in_use",
      "Links over which an acquirer can be reached: 0 while none of its hosts is connected",
      "acquirer",
    ),
    macKeys: counter(
      "acquirer_mac_keys_total",
      "MAC keys that came over the link; `result` is `taken` or `refused`",
      "acquirer",
      "result",
    ),
    reports: counter(
      "reports_total",
      "Completions that a switch reported; `result` is `accepted`, `duplicate`, `conflict`, `refused` or `unavailable`",
      "command",
      "result",
    ),
    intakeFiles: counter(
      "intake_files_total",
      "Files of completions; `result` is `done`, or `failed` for those that could not be read to their end",
      "result",
    ),
    intakeFilesWaiting: gauge("intake_files_waiting", "Files of completions that this instance sees waiting"),
    intakeKafkaConnected: gauge(
      "intake_kafka_connected",
      "Whether this instance consumes the topic of completions; absent where none is set",
      "topic",
    ),
    intakeKafkaLag: gauge(
      "intake_kafka_lag_messages",
      "Messages of its partitions that this instance has not committed; absent while it consumes none",
      "topic",
    ),
    settlementsCompared: counter(
      "settlements_compared_total",
      "Settlements of a switch that were compared with the ledger; `result` is `same` or `different`",
      "result",
    ),

    notificationsCreated: counter("notifications_created_total", "Notifications created", "command"),
    notificationsAccepted: counter("notifications_accepted_total", "Notifications that a partner accepted", "command"),
    notificationsParked: counter(
      "notifications_parked_total",
      "Notifications that were parked, by their last failure",
      "reason",
    ),
    attemptsFailed: counter("attempts_failed_total", "Attempts that failed, by their reason", "reason"),
    attemptSeconds: histogram(
      "attempt_seconds",
      "How long one attempt took; `outcome` is `accepted`, or the reason why it failed",
      fastSeconds,
      "outcome",
    ),
    deliverySeconds: histogram(
      "delivery_seconds",
      "From a notification's creation to its acceptance",
      [...fastSeconds, 60, 300, 3_600, 86_400],
      "command",
    ),

    pending: gauge("notifications_pending", "Notifications neither accepted nor parked yet, of all instances"),
    // Not notifications_parked: that is the family of the counter above in OpenMetrics.
    parked: gauge("parked_notifications", "Notifications that are parked now, of all instances"),
    partnerAccepted: counter(
      "partner_accepted_total",
      "Notifications that this partner accepted; beyond PAYBELL_METRICS_PARTNERS together as `other`",
      "partner",
    ),
    partnerAttemptsFailed: counter(
      "partner_attempts_failed_total",
      "Attempts of this partner that failed",
      "partner",
      "reason",
    ),
    partnerDeliverySeconds: histogram(
      "partner_delivery_seconds",
      "From a notification's creation to its acceptance by this partner",
      partnerSeconds,
      "partner",
    ),
    partnerPending: gauge(
      "partner_pending",
      "This partner's notifications neither accepted nor parked yet, of all instances, up to 1000",
      "partner",
    ),
    partnerParked: gauge(
      "partner_parked",
      "This partner's parked notifications, of all instances, up to 1000",
      "partner",
    ),
    partnerOldestPendingSeconds: gauge(
      "partner_oldest_pending_seconds",
      "Age of this partner's oldest pending notification, of all instances",
      "partner",
    ),
    oldestPendingSeconds: gauge("oldest_pending_seconds", "Age of the oldest pending notification, of all instances"),
    slotsInUse: gauge("slots_in_use", "POSTs in flight on this instance"),
    loopBusySeconds: gauge("loop_busy_seconds", "For how long the event loop of this instance was busy since it began"),
    queuedRows: gauge("queued_rows", "Deliveries in the memory of this instance"),
    bytesInFlight: gauge("bytes_in_flight", "Content in flight on this instance"),
    unrecorded: gauge("outcomes_pending", "Deliveries of this instance whose outcome is not durable yet"),
    leaseRemainingSeconds: gauge("lease_remaining_seconds", "For how long this instance's lease is still held"),
    ledgerDropped: counter("ledger_rows_dropped_total", "Rows of the ledger dropped after their retention", "table"),
    shardsUnowned: gauge(
      "shards_unowned",
      "Shards, which are groups of partners, for which no worker of any instance sends",
    ),
    partitionsAhead: gauge("partitions_ahead", "Days for which history partitions are prepared"),

    groupCommitRows: histogram(
      "group_commit_rows",
      "Rows of one group commit; `batch` is `inits`, `completions` or `outcomes`",
      batchRows,
      "batch",
    ),
    groupCommitSeconds: histogram("group_commit_seconds", "How long one group commit took", flushSeconds, "batch"),

    groupCommitWaiting: gauge("group_commit_waiting_rows", "Rows that wait for a group commit", "batch"),
    groupCommitRefused: counter(
      "group_commit_refused_total",
      "Rows refused with 503: too much waited to be written, or the database was away for too long",
      "batch",
    ),
    databaseWaiting: gauge(
      "database_statements_pending",
      "Statements that wait for a connection to the database; `pool` is `engine` for delivery, `pool` for the rest",
      "pool",
    ),

    lateAnswers: counter(
      "late_answers_total",
      "Answers of the acquirer that came after the time-out; `approved` is `true` or `false`",
      "approved",
    ),
    reversalsParked: gauge(
      "reversals_parked",
      "Reversals that the acquirer refused and nobody has resolved yet, of all instances",
    ),
    egressFailures: counter(
      "egress_failures_total",
      "Tunnels through the egress proxy that did not open; `kind` is `unreachable`, `unauthorized`, `refused`, `origin` " +
        "or `every_origin`",
      "kind",
    ),
    feedLagSeconds: gauge(
      "feed_lag_seconds",
      "Age of the oldest entry that this instance has to write to the target of PAYBELL_FEED",
    ),
    feedWaiting: gauge(
      "feed_entries_waiting",
      "Events and entries of the audit that this instance has to write to the target of PAYBELL_FEED, up to 1000",
    ),
    alerts: counter("alerts_total", "Events that alert the operator", "kind"),

    connections: gauge("http_connections_in_use", "Connections of callers"),
    unreadBytes: gauge("http_unread_bytes", "Answers written that callers have not read yet"),
    connectionsClosed: counter(
      "http_connections_closed_total",
      "Connections closed to make room; `reason` is `waiting`, `unread`, `stream` or `busy`",
      "reason",
    ),
    pullsWaiting: gauge("pulls_pending", "Requests that wait for a partner's next notification"),
    callersRefused: counter(
      "callers_refused_total",
      "Callers who were not let in; `reason` is `wrong_key`, `too_many_wrong_keys`, or `address` for a valid key",
      "reason",
    ),
    requestsLimited: counter(
      "requests_limited_total",
      "Requests answered 429; `limit` is `requests`, `pulls`, `async`, `redeliveries`, `processor` or `anonymous`",
      "limit",
    ),
    traceSpansDropped: counter(
      "trace_spans_dropped_total",
      "Spans of traces that were not exported; `reason` is `not_accepted` or `queue_full`",
      "reason",
    ),
    requests: counter("http_requests_total", "HTTP requests answered", "method", "route", "status"),
    requestSeconds: histogram(
      "http_request_seconds",
      "From an HTTP request to its answer, except pulls that may wait",
      fastSeconds,
      "route",
    ),
  };
}

/**
 * Each sample wakes the process. Measured on an idle one: every 20 ms, they were 50 of its 57 wakeups per second; every
 * 100 ms, half of them. Fewer samples are as good over a minute.
 */
const loopSampleMs = 250;

/** @param sampledNs the time between two samples, as Node measures it: without any delay it is the sampling interval */
export function loopDelaySeconds(sampledNs: number): number {
  const seconds = (sampledNs - loopSampleMs * 1e6) / 1e9;
  return seconds > 0 ? seconds : 0;
}

/** The process and its event loop, read when the metrics are. */
function observeProcess(registry: Registry): () => void {
  const delay = monitorEventLoopDelay({ resolution: loopSampleMs });
  delay.enable();
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  const secondsAt = (percentile: number) => loopDelaySeconds(delay.percentile(percentile));
  gauge("paybell_event_loop_delay_p50_seconds", "Delay of the event loop, median since the last reading", () =>
    secondsAt(50),
  );
  gauge(
    "paybell_event_loop_delay_p99_seconds",
    "Delay of the event loop, 99th percentile since the last reading",
    () => {
      const seconds = secondsAt(99);
      delay.reset();
      return seconds;
    },
  );
  gauge("process_resident_memory_bytes", "Memory of this process", () => process.memoryUsage.rss());
  new Counter({
    name: "process_cpu_seconds_total",
    help: "Processor time of this process",
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  return () => {
    delay.disable();
  };
}
