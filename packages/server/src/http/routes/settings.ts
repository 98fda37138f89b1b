import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { settingListSchema } from "../schemas/console.ts";
import { operations, responses } from "../schemas/problem.ts";

const operation = operations("Service");

/** The settings of this instance, to look at: they are changed where it is started. */
export function settingRoutes(app: HttpApp, { settings }: HttpDependencies): void {
  app.get(
    "/operator/v1/settings",
    operation("listSettings", "See the settings, with their sources and defaults", {
      response: responses([200, settingListSchema, "All of them"]),
    }),
    async () => ({ items: settings }),
  );
}
