import "@fontsource-variable/inter/wght.css";
import "@mantine/core/styles.css";
import "./page.css";
import "./shell/face.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { queryClient } from "./api/query.ts";
import { App } from "./app.tsx";
import { SessionGate } from "./session/session-gate.tsx";
import { theme } from "./theme.ts";

const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
const page = document.getElementById("page");
if (page === null) throw new Error("The page has lost its root.");

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
