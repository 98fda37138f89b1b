/**
 * PostgreSQL settings of the embedded server, each with its reason. They are passed on the command line, so that a new
 * release of Paybell brings its own, whatever an older one left in the data directory.
 */
export const defaultSettings: Readonly<Record<string, string>> = {
  // Durability. A notification is promised to the caller at COMMIT, so COMMIT means "on the disk". None is for tuning.
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",

  // Memory. The pending table and the newest day partitions stay in memory; the operating system caches the rest.
  shared_buffers: "256MB",
  effective_cache_size: "1GB",
  wal_buffers: "16MB",
  max_connections: "100",
  // A statement over history locks every day partition and its indexes: 90 days of two tables pass the default of 64.
  max_locks_per_transaction: "256",

  // Write-ahead log. Each insert of a sealed IPN writes it once more here: compressing full pages costs less than
  // writing them, a large max_wal_size keeps checkpoints minutes apart, min_wal_size recycles files between bursts.
  wal_compression: "on",
  max_wal_size: "2GB",
  min_wal_size: "256MB",
  checkpoint_timeout: "15min",

  // Pending rows live for milliseconds: dead rows come as fast as completions do, so vacuum often and without long
  // pauses.
  autovacuum_naptime: "10s",
  autovacuum_vacuum_scale_factor: "0.05",
  autovacuum_vacuum_insert_scale_factor: "0.1",
  autovacuum_vacuum_cost_limit: "1000",
  // Each hot statement has one plan, whatever is known of its tables. With 5 % and 50 rows a young database was
  // analysed at every look, which was 60 us of each notification at 1,000 a second.
  autovacuum_analyze_scale_factor: "0.2",
  autovacuum_analyze_threshold: "20000",

  // Statements take well under a millisecond: compiling one takes a hundred times longer than running it.
  jit: "off",
  // The disk is an SSD nearly everywhere; the default of 4 drives the planner to sequential scans.
  random_page_cost: "1.1",

  timezone: "UTC",
  log_timezone: "UTC",
  // The log must not contain card data: no statement text, no DETAIL line (it quotes the failing row).
  log_statement: "none",
  log_min_error_statement: "panic",
  log_min_duration_statement: "-1",
  log_parameter_max_length: "0",
  log_parameter_max_length_on_error: "0",
  log_error_verbosity: "terse",
  log_line_prefix: "%m [%p] ",
};

/** Settings that the supervisor rules: it finds the server by them, so nobody else may set them. */
export function ownSettings(socketDirectory: string, port: number): Record<string, string> {
  return {
    listen_addresses: "",
    // The value is a list: quoted, so that a comma in the path does not part it.
    unix_socket_directories: `"${socketDirectory.replaceAll('"', '""')}"`,
    unix_socket_permissions: "0700",
    port: String(port),
    logging_collector: "off",
    log_destination: "stderr",
  };
}

export function settingArguments(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}
