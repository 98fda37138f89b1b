import "@fontsource-variable/inter/wght.css";
import "@mantine/core/styles.css";
import "./page.css";
import "./history.css";
import "./face.css";
import { createTheme, type MantineColorsTuple, MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { queryClient } from "./api/query.ts";
import { App } from "./app.tsx";
import { SessionGate } from "./session/session-gate.tsx";

const indigo: MantineColorsTuple = [
  "#eef2ff",
  "#dde4fb",
  "#b8c5f3",
  "#91a5ec",
  "#7089e6",
  "#5b78e2",
  "#4a68dd",
  "#3b57c8",
  "#324db3",
  "#26419e",
];

const inputs = [
  "Button",
  "Checkbox",
  "CheckboxGroup",
  "NumberInput",
  "PasswordInput",
  "SegmentedControl",
  "Select",
  "Switch",
  "TextInput",
  "Textarea",
];

/** Dense and calm: one accent colour, small type, tabular figures. */
const theme = createTheme({
  primaryColor: "accent",
  primaryShade: 7,
  colors: { accent: indigo },
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: "ui-monospace, 'SF Mono', 'Cascadia Mono', 'DejaVu Sans Mono', monospace",
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  headings: {
    fontWeight: "600",
    sizes: { h1: { fontSize: "18px" }, h2: { fontSize: "15px" }, h3: { fontSize: "13px" } },
  },
  defaultRadius: "sm",
  focusRing: "auto",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Text: { defaultProps: { size: "sm" } },
    ...Object.fromEntries(inputs.map((name) => [name, { defaultProps: { size: "xs" } }])),
  },
});

const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
const page = document.getElementById("page");
if (page === null) throw new Error("The page has lost its root.");

// Mantine's dialogs keep the page behind from scrolling by a style that asks here for its nonce.
setNonce(nonce);

createRoot(page).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={queryClient}>
        <Router base="/console">
          <SessionGate>
            <App />
          </SessionGate>
        </Router>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
