import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { settingListSchema } from "../schemas/console.ts";
import { responses } from "../schemas/problem.ts";

/** The settings of this instance, to look at: they are changed where it is started. */
export function settingRoutes(app: HttpApp, { settings }: HttpDependencies): void {
  app.get(
    "/operator/v1/settings",
    {
      schema: {
        operationId: "listSettings",
        tags: ["Service"],
        summary: "See the settings, with their sources and defaults",
        response: responses({ 200: { schema: settingListSchema, description: "All of them" } }),
      },
    },
    async () => ({ items: settings }),
  );
}
