import type { CurrentCounts, CurrentCountsStore } from "../notifications/overview.ts";
import type { Homes } from "./database/homes.ts";
import { planned } from "./database/statement.ts";

/** Counts are exact up to here, so that no query grows with the number of rows. */
const countedMax = 10_000;

const counts = planned<CurrentCounts>(`
  SELECT
    (SELECT count(*) FROM (SELECT FROM parked LIMIT ${countedMax}) AS few)::integer AS parked,
    (SELECT count(*) FROM (SELECT FROM endpoints WHERE state IN ('open', 'gone') LIMIT ${countedMax}) AS few)::integer
      AS tripped,
    (SELECT count(*) FROM (SELECT FROM reversals WHERE state = 'PARKED' LIMIT ${countedMax}) AS few)::integer
      AS "reversalsParked",
    (SELECT count(*) FROM (SELECT FROM reversals WHERE state = 'PENDING' LIMIT ${countedMax}) AS few)::integer
      AS "reversalsPending",
    (SELECT count(*) FROM (SELECT FROM settlements WHERE tries > 1 LIMIT ${countedMax}) AS few)::integer
      AS "settlementsWaiting"`);

export function postgresCurrentCounts(homes: Homes): CurrentCountsStore {
  return {
    async counts() {
      const rows = await homes.gather(({ pool }) => counts.rows(pool));
      const counted = (of: keyof CurrentCounts) =>
        Math.min(
          countedMax,
          rows.reduce((all, row) => all + row[of], 0),
        );
      return {
        parked: counted("parked"),
        tripped: counted("tripped"),
        reversalsParked: counted("reversalsParked"),
        reversalsPending: counted("reversalsPending"),
        settlementsWaiting: counted("settlementsWaiting"),
      };
    },
  };
}
