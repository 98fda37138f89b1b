import { Client, type ClientConfig } from "pg";

/** Runs `use` on a connection of its own, outside of any pool. */
export async function withClient<Result>(
  config: ClientConfig,
  use: (client: Client) => Promise<Result>,
): Promise<Result> {
  const client = new Client({ connectionTimeoutMillis: 5_000, ...config });
  // The query in flight, or the next one, fails if the connection is lost. Without a listener the process would end.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
