/** What promtool is to find: which alerts fire on these series, and that quiet is quiet. */
interface RuleTest {
  readonly name: string;
  /** A value a minute each, in promtool's notation. */
  readonly series: readonly string[];
  readonly fires?: readonly (readonly [when: string, summary: string, labels: Readonly<Record<string, string>>])[];
  /** The time and the alert. */
  readonly silent?: readonly string[];
}

/** @param everyAlert the names in the rules */
export const ruleTests = (everyAlert: readonly string[]): readonly RuleTest[] => [
  {
    name: "an instance that is well fires nothing, also after a planned stop and for a partner that got all at once",
    series: [
      'up{job="paybell",instance="a"} 1x60',
      'paybell_shards_unowned{instance="a"} 0x60',
      'paybell_oldest_pending_seconds{instance="a"} 3x60',
      'paybell_parked_notifications{instance="a"} 0x60',
      'paybell_lease_remaining_seconds{instance="a"} 4x60',
      'paybell_acquirer_links_in_use{acquirer="default",instance="a"} 1x60',
      'paybell_partner_attempts_failed_total{instance="a",partner="p",reason="timeout"} 0+1x60',
      'paybell_partner_accepted_total{instance="a",partner="p"} 0+9x60',
      'paybell_partner_attempts_failed_total{instance="a",partner="q",reason="connect"} 0x50 3x10',
      'paybell_partner_accepted_total{instance="a",partner="q"} 0x50 616x10',
      'paybell_http_requests_total{instance="a",method="POST",route="/v1/commands",status="503"} 0x53 9x10',
      'paybell_http_requests_total{instance="a",method="POST",route="/v1/commands",status="500"} 0x60',
      'paybell_group_commit_refused_total{instance="a",batch="inits"} 0x60',
      'paybell_alerts_total{instance="a",kind="audit_failed"} 0x60',
      'paybell_alerts_total{instance="a",kind="content_changed"} 0x60',
      'paybell_alerts_total{instance="a",kind="reversal_refused"} 0x60',
      'paybell_partitions_ahead{instance="a"} 7x60',
      'paybell_notifications_pending{instance="a"} 2000-10x60',
      'paybell_late_answers_total{instance="a",approved="true"} 0x60',
      'paybell_late_answers_total{instance="a",approved="false"} 0+1x60',
      'paybell_reversals_parked{instance="a"} 0x60',
      'paybell_settlements_compared_total{instance="a",result="different"} 0x60',
      'paybell_settlements_compared_total{instance="a",result="same"} 0+1x60',
      'paybell_reports_total{instance="a",command="SALE",result="refused"} 0x60',
      'paybell_intake_files_total{instance="a",result="failed"} 0x60',
      'paybell_intake_files_waiting{instance="a"} 0x60',
      'paybell_intake_kafka_connected{instance="a",topic="t"} 1x60',
      'paybell_intake_kafka_lag_messages{instance="a",topic="t"} 0x60',
      'paybell_group_commit_seconds_bucket{instance="a",batch="inits",le="0.25"} 0+60x60',
      'paybell_group_commit_seconds_bucket{instance="a",batch="inits",le="+Inf"} 0+60x60',
      'paybell_group_commit_waiting_rows{instance="a",batch="inits"} 10x60',
      'paybell_database_statements_pending{instance="a",pool="pool"} 0x60',
      'paybell_event_loop_delay_p99_seconds{instance="a"} 0.01x60',
      'paybell_loop_busy_seconds{instance="a"} 0+20x60',
      'process_resident_memory_bytes{job="paybell",instance="a"} 400000000x60',
      'paybell_callers_refused_total{instance="a",reason="wrong_key"} 0+1x60',
      'paybell_http_connections_closed_total{instance="a",reason="waiting"} 0x60',
    ],
    silent: everyAlert.map((name) => `57m ${name}`),
  },
  {
    name: "one partner that takes nothing, while another one does",
    series: [
      'paybell_partner_attempts_failed_total{instance="a",partner="p",reason="timeout"} 0+1x60',
      'paybell_partner_accepted_total{instance="a",partner="q"} 0+9x60',
    ],
    fires: [
      [
        "55m PaybellPartnerFailing",
        "The partner p has taken nothing for half an hour",
        { severity: "ticket", partner: "p" },
      ],
    ],
  },
  {
    name: "parked notifications, told once for all instances",
    series: ['paybell_parked_notifications{instance="a"} 3x60', 'paybell_parked_notifications{instance="b"} 3x60'],
    fires: [
      ["10m PaybellParked", "3 notifications are parked until somebody sends them again", { severity: "ticket" }],
    ],
  },
  {
    name: "parked Reversals, told once for all instances until they are resolved",
    series: ['paybell_reversals_parked{instance="a"} 2x120 0x20', 'paybell_reversals_parked{instance="b"} 2x120 0x20'],
    fires: [
      ["110m PaybellReversalsParked", "2 Reversals are parked: the acquirer refused them", { severity: "ticket" }],
    ],
    silent: ["125m PaybellReversalsParked"],
  },
  {
    name: "a route's first answer 500",
    series: ['paybell_http_requests_total{instance="a",method="GET",route="/v1/self",status="500"} 0x5 1x30'],
    fires: [
      ["8m PaybellErrors", "a answered 500 on /v1/self", { severity: "ticket", instance: "a", route: "/v1/self" }],
    ],
    silent: ["30m PaybellErrors"],
  },
  {
    name: "an instance that is gone",
    series: ['up{job="paybell",instance="a"} 1x5 0x60'],
    fires: [["10m PaybellInstanceDown", "a does not answer", { severity: "page", job: "paybell", instance: "a" }]],
  },
  {
    name: "a Reversal that the acquirer refused, told once for all instances",
    series: [
      'paybell_alerts_total{instance="a",kind="reversal_refused"} 0x5 1x60',
      'paybell_alerts_total{instance="b",kind="reversal_refused"} 0x60',
      'paybell_alerts_total{instance="a",kind="breaker_open"} 0x5 1x60',
    ],
    fires: [
      [
        "10m PaybellMoneyInDoubt",
        "The acquirer leaves money in doubt: reversal_refused",
        { severity: "ticket", kind: "reversal_refused" },
      ],
    ],
  },
  {
    name: "completions that are refused, from the first one on",
    series: [
      'paybell_reports_total{instance="a",command="SALE",result="refused"} 0x5 1x60',
      'paybell_reports_total{instance="a",command="SALE",result="unavailable"} 0+9x60',
      'paybell_reports_total{instance="a",command="SALE",result="accepted"} 0+9x60',
    ],
    fires: [
      [
        "10m PaybellReportsRefused",
        "1 completions of the switch were not taken: refused",
        { severity: "ticket", result: "refused" },
      ],
    ],
    silent: ["40m PaybellReportsRefused"],
  },
  {
    name: "files that are read, and a folder that stands still",
    series: [
      'paybell_intake_files_waiting{instance="a"} 4x200',
      'paybell_intake_files_total{instance="a",result="done"} 0+1x60 60x140',
      'paybell_intake_files_total{instance="a",result="failed"} 0x200',
    ],
    fires: [
      [
        "120m PaybellIntakeFilesStuck",
        "4 files of completions wait, and none was read to its end for half an hour",
        { severity: "page" },
      ],
    ],
    silent: ["60m PaybellIntakeFilesStuck", "60m PaybellIntakeFileFailed"],
  },
  {
    name: "a topic that one of two instances consumes, then nobody",
    series: [
      'paybell_intake_kafka_connected{instance="a",topic="t"} 1x30 0x30',
      'paybell_intake_kafka_connected{instance="b",topic="t"} 0x60',
    ],
    fires: [["50m PaybellIntakeKafkaDown", "No instance consumes the topic t", { severity: "page", topic: "t" }]],
    silent: ["30m PaybellIntakeKafkaDown"],
  },
  {
    name: "few messages that nobody takes, beside a busy topic",
    series: [
      'paybell_intake_kafka_lag_messages{instance="a",topic="t"} 3x90',
      'paybell_reports_total{instance="a",command="SALE",result="accepted"} 0+9x30 270x60',
    ],
    fires: [
      [
        "80m PaybellIntakeKafkaBehind",
        "3 messages of the topic t are not durable yet",
        { severity: "ticket", topic: "t" },
      ],
    ],
    silent: ["30m PaybellIntakeKafkaBehind"],
  },
  {
    name: "a proxy that refuses, while single origins fail",
    series: [
      'paybell_egress_failures_total{instance="a",kind="origin"} 0+5x60',
      'paybell_egress_failures_total{instance="a",kind="refused"} 0x40 1x20',
    ],
    fires: [
      [
        "45m PaybellEgressFails",
        "The egress proxy opens no connection (refused)",
        { severity: "page", kind: "refused" },
      ],
    ],
    silent: ["30m PaybellEgressFails"],
  },
  {
    name: "a collector that takes nothing",
    series: ['paybell_feed_lag_seconds{instance="a"} 0x20 0+60x40', 'paybell_feed_lag_seconds{instance="b"} 0x60'],
    fires: [["41m PaybellFeedBehind", "Events are written to the feed's target 1200 s late", { severity: "ticket" }]],
    silent: ["28m PaybellFeedBehind"],
  },
  {
    name: "PaybellNotDelivering fires",
    series: ['paybell_shards_unowned{instance="a"} 16x30'],
    fires: [["5m PaybellNotDelivering", "Nobody sends for the partners of 16 of 256 shards", { severity: "page" }]],
  },
  {
    name: "PaybellLeaseLost fires",
    series: ['paybell_lease_remaining_seconds{instance="a"} 0x30'],
    fires: [["5m PaybellLeaseLost", "a cannot renew a lease", { severity: "page", instance: "a" }]],
  },
  {
    name: "PaybellRefusing fires",
    series: [
      'paybell_http_requests_total{instance="a",method="POST",route="/v1/commands",status="503"} 0x5 0+9x30',
      'paybell_group_commit_refused_total{instance="a",batch="inits"} 0x40',
    ],
    fires: [["20m PaybellRefusing", "a refuses callers: nothing can be written", { severity: "page", instance: "a" }]],
  },
  {
    name: "PaybellAuditFails fires",
    series: ['paybell_alerts_total{instance="a",kind="audit_failed"} 0x5 1x30'],
    fires: [
      [
        "8m PaybellAuditFails",
        "The audit cannot be written: actions of operators and partners are refused",
        { severity: "page" },
      ],
    ],
  },
  {
    name: "PaybellContentChanged fires",
    series: ['paybell_alerts_total{instance="a",kind="content_changed"} 0x5 1x30'],
    fires: [
      [
        "8m PaybellContentChanged",
        "Somebody changed notifications, operators or API keys in the database",
        { severity: "page" },
      ],
    ],
  },
  {
    name: "PaybellHistoryShort fires",
    series: ['paybell_partitions_ahead{instance="a"} 2x30'],
    fires: [["15m PaybellHistoryShort", "History has room for 2 more days", { severity: "page" }]],
  },
  {
    name: "PaybellOldestPending fires",
    series: ['paybell_oldest_pending_seconds{instance="a"} 3600x30'],
    fires: [["15m PaybellOldestPending", "A notification has been pending for 1h 0m 0s", { severity: "ticket" }]],
  },
  {
    name: "PaybellBacklogGrowing fires",
    series: ['paybell_notifications_pending{instance="a"} 2000+10x120'],
    fires: [
      ["100m PaybellBacklogGrowing", "3000 notifications are pending, and more every minute", { severity: "ticket" }],
    ],
  },
  {
    name: "PaybellManyPartnersFailing fires",
    series: [
      'paybell_partner_attempts_failed_total{instance="a",partner="p",reason="dns"} 0+1x30',
      'paybell_partner_attempts_failed_total{instance="a",partner="q",reason="dns"} 0+1x30',
      'paybell_partner_attempts_failed_total{instance="a",partner="r",reason="dns"} 0+1x30',
      'paybell_partner_attempts_failed_total{instance="a",partner="s",reason="dns"} 0+1x30',
      'paybell_partner_attempts_failed_total{instance="a",partner="t",reason="dns"} 0+1x30',
    ],
    fires: [
      [
        "20m PaybellManyPartnersFailing",
        "5 partners cannot be reached: it is our own network perhaps",
        { severity: "page" },
      ],
    ],
  },
  {
    name: "PaybellAcquirerDown fires",
    series: ['paybell_acquirer_links_in_use{acquirer="default",instance="a"} 0x30'],
    fires: [
      [
        "5m PaybellAcquirerDown",
        "No host of the acquirer default is connected: its commands are refused",
        { severity: "page", acquirer: "default" },
      ],
    ],
  },
  {
    name: "PaybellLateApprovals fires",
    series: ['paybell_late_answers_total{instance="a",approved="true"} 0x5 2x55'],
    fires: [["60m PaybellLateApprovals", "2 approvals came after their time-out", { severity: "ticket" }]],
  },
  {
    name: "PaybellSettlementDiffers fires",
    series: ['paybell_settlements_compared_total{instance="a",result="different"} 0x5 1x55'],
    fires: [
      [
        "30m PaybellSettlementDiffers",
        "1 settlements of a switch are not what it reported before",
        { severity: "ticket" },
      ],
    ],
  },
  {
    name: "PaybellIntakeFileFailed fires",
    series: ['paybell_intake_files_total{instance="a",result="failed"} 0x5 1x30'],
    fires: [["8m PaybellIntakeFileFailed", "1 files of completions were set aside", { severity: "ticket" }]],
  },
  {
    name: "PaybellDatabaseSlow fires",
    series: ['paybell_group_commit_waiting_rows{instance="a",batch="inits"} 9000x30'],
    fires: [["15m PaybellDatabaseSlow", "The database is slow for a", { severity: "ticket", instance: "a" }]],
  },
  {
    name: "PaybellOutOfProcessor fires",
    series: ['paybell_event_loop_delay_p99_seconds{instance="a"} 0.4x30'],
    fires: [["20m PaybellOutOfProcessor", "a is out of processor time", { severity: "ticket", instance: "a" }]],
  },
  {
    name: "PaybellMemory fires",
    series: ['process_resident_memory_bytes{job="paybell",instance="a"} 1610612736x30'],
    fires: [["20m PaybellMemory", "a holds 1.5GiB", { severity: "ticket", instance: "a", job: "paybell" }]],
  },
  {
    name: "PaybellKeysTried fires",
    series: ['paybell_callers_refused_total{instance="a",reason="wrong_key"} 0+120x30'],
    fires: [["20m PaybellKeysTried", "Callers are refused for wrong_key", { severity: "ticket", reason: "wrong_key" }]],
  },
  {
    name: "PaybellConnectionsFull fires",
    series: ['paybell_http_connections_closed_total{instance="a",reason="waiting"} 0x5 0+3x30'],
    fires: [
      [
        "20m PaybellConnectionsFull",
        "a closes connections to make room (waiting)",
        { severity: "ticket", instance: "a", reason: "waiting" },
      ],
    ],
  },
];

/** The file for promtool. JSON is YAML, too. */
export function promtoolFile(rules: string, tests: readonly RuleTest[]): string {
  const at = (when: string) => {
    const [time, alertname = ""] = when.split(" ");
    return { eval_time: time, alertname };
  };
  return JSON.stringify({
    rule_files: [rules],
    evaluation_interval: "1m",
    tests: tests.map(({ name, series, fires = [], silent = [] }) => ({
      name,
      interval: "1m",
      input_series: series.map((one) => {
        const [, metric, values] = /^(.*\}) (.*)$/.exec(one) ?? [];
        return { series: metric, values };
      }),
      alert_rule_test: [
        ...silent.map(at),
        ...fires.map(([when, summary, labels]) => {
          const { alertname } = at(when);
          const runbook_url = `/docs/operator/runbook#${alertname.toLowerCase()}`;
          return { ...at(when), exp_alerts: [{ exp_labels: labels, exp_annotations: { summary, runbook_url } }] };
        }),
      ],
    })),
  });
}
