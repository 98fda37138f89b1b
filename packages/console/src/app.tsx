import { type ComponentType, lazy, Suspense } from "react";
import { Route, Switch, useLocation } from "wouter";
import { Empty, ErrorBoundary, Loading } from "./display/loaded.tsx";
import { Page } from "./display/page.tsx";
import { NotificationPage } from "./notifications/notification-page.tsx";
import { NotificationsPage } from "./notifications/notifications-page.tsx";
import { SearchPage } from "./notifications/search-page.tsx";
import { OverviewPage } from "./overview/overview-page.tsx";
import { useSession } from "./session/session.ts";
import { Shell } from "./shell/shell.tsx";

/** A page that is loaded when it is opened, because it is not needed at first. */
function later<Name extends string>(load: () => Promise<Record<Name, ComponentType<{ id: string }>>>, name: Name) {
  return lazy(async () => ({ default: (await load())[name] }));
}

const settlement = () => import("./money/settlement-page.tsx");
const clearing = () => import("./money/clearing-page.tsx");
const transaction = () => import("./money/transaction-page.tsx");
const partners = () => import("./partners/partners-page.tsx");
const ReplayPage = later(() => import("./notifications/replay.tsx"), "ReplayPage");

/** By their paths. A page of one thing gets its id. */
type Pages = Readonly<Record<string, ComponentType<{ id: string }>>>;

const both: Pages = {
  "/search": SearchPage,
  "/notifications": NotificationsPage,
  "/notifications/:id": NotificationPage,
  "/replays/:id": ReplayPage,
};

const ofOperator: Pages = {
  "/": OverviewPage,
  ...both,
  "/parked": later(() => import("./notifications/parked-page.tsx"), "ParkedPage"),
  "/partners": later(partners, "PartnersPage"),
  "/partners/new": later(partners, "NewPartnerPage"),
  "/partners/:id": later(() => import("./partners/partner-page.tsx"), "PartnerPage"),
  "/money": later(() => import("./money/money-page.tsx"), "MoneyPage"),
  "/batches/:id": later(settlement, "BatchPage"),
  "/settlements/:id": later(settlement, "SettlementPage"),
  "/clearing": later(clearing, "ClearingPage"),
  "/clearing/:id": later(clearing, "ClearingFilePage"),
  "/acquirers": later(() => import("./money/acquirers-page.tsx"), "AcquirersPage"),
  "/transactions/:id": later(transaction, "TransactionPage"),
  "/try": later(() => import("./try-page.tsx"), "TryPage"),
  "/audit": later(() => import("./administration/audit-page.tsx"), "AuditPage"),
  "/operators": later(() => import("./administration/operators-page.tsx"), "OperatorsPage"),
  "/proposals": later(() => import("./administration/proposals-page.tsx"), "ProposalsPage"),
  "/settings": later(() => import("./administration/settings-page.tsx"), "SettingsPage"),
};

/** The same pages with fewer columns: only the partner's own rows. */
const ofPartner: Pages = {
  "/": later(() => import("./partners/my-partner-page.tsx"), "MyPartnerPage"),
  ...both,
  "/transactions/:id": later(transaction, "OwnTransactionPage"),
};

export function App() {
  const isOperator = useSession().session.kind === "operator";
  const [location] = useLocation();
  return (
    <Shell>
      <ErrorBoundary key={location}>
        <Suspense fallback={<Loading />}>
          <Switch>
            {Object.entries(isOperator ? ofOperator : ofPartner).map(([path, Shown]) => (
              <Route key={path} path={path}>
                {({ id = "" }: { id?: string }) => <Shown key={id} id={id} />}
              </Route>
            ))}
            <Route>
              <Page title="Not found">
                <Empty title="There is no such page">Use the search box, or a page from the menu.</Empty>
              </Page>
            </Route>
          </Switch>
        </Suspense>
      </ErrorBoundary>
    </Shell>
  );
}
