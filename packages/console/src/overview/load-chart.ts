import { lazy } from "react";

/**
 * The chart, loaded when it is shown. uPlot makes a number format of the browser's language at that moment, and a
 * browser in a POSIX locale names one that Intl refuses (en-US@posix).
 */
export const Chart = lazy(() => {
  try {
    new Intl.NumberFormat(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { value: "en" });
  }
  return import("./chart.tsx");
});
