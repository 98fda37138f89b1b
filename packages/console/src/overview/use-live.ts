import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Overview } from "../api/operations.ts";

/** Keeps a query's answer up to date by server-sent events. @returns whether they arrive */
export function useLive(span: string): boolean {
  const queries = useQueryClient();
  const [isLive, setIsLive] = useState(false);
  useEffect(() => {
    const source = new EventSource(`/operator/v1/overview/live?span=${span}`);
    source.onopen = () => setIsLive(true);
    source.onmessage = ({ data }: MessageEvent<string>) => {
      queries.setQueryData(["overview", span], JSON.parse(data) as Overview);
    };
    source.onerror = () => {
      setIsLive(false);
      // A browser stops after an error response: the query shows which one.
      if (source.readyState === EventSource.CLOSED) void queries.invalidateQueries({ queryKey: ["overview", span] });
    };
    return () => source.close();
  }, [queries, span]);
  return isLive;
}
