import { lazy, Suspense } from "react";
import { Route, Switch, useLocation } from "wouter";
import { ErrorBoundary } from "./display/failure.tsx";
import { Loading } from "./display/list.tsx";
import { Empty, Page } from "./display/page.tsx";
import { NotificationPage } from "./notifications/notification-page.tsx";
import { NotificationsPage } from "./notifications/notifications-page.tsx";
import { SearchPage } from "./notifications/search-page.tsx";
import { OverviewPage } from "./overview/overview-page.tsx";
import { useSession } from "./session/session.ts";
import { Shell } from "./shell/shell.tsx";

const AcquirersPage = lazy(async () => ({ default: (await import("./money/acquirers-page.tsx")).AcquirersPage }));
const AuditPage = lazy(async () => ({ default: (await import("./administration/audit-page.tsx")).AuditPage }));
const BatchPage = lazy(async () => ({ default: (await import("./money/settlement-page.tsx")).BatchPage }));
const ClearingPage = lazy(async () => ({ default: (await import("./money/clearing-page.tsx")).ClearingPage }));
const ClearingFilePage = lazy(async () => ({
  default: (await import("./money/clearing-page.tsx")).ClearingFilePage,
}));
const MoneyPage = lazy(async () => ({ default: (await import("./money/money-page.tsx")).MoneyPage }));
const MyPartnerPage = lazy(async () => ({ default: (await import("./partners/my-partner-page.tsx")).MyPartnerPage }));
const NewPartnerPage = lazy(async () => ({
  default: (await import("./partners/partners-page.tsx")).NewPartnerPage,
}));
const OperatorsPage = lazy(async () => ({
  default: (await import("./administration/operators-page.tsx")).OperatorsPage,
}));
const ParkedPage = lazy(async () => ({ default: (await import("./notifications/parked-page.tsx")).ParkedPage }));
const PartnerPage = lazy(async () => ({ default: (await import("./partners/partner-page.tsx")).PartnerPage }));
const PartnersPage = lazy(async () => ({ default: (await import("./partners/partners-page.tsx")).PartnersPage }));
const ReplayPage = lazy(async () => ({ default: (await import("./notifications/replay.tsx")).ReplayPage }));
const ProposalsPage = lazy(async () => ({
  default: (await import("./administration/proposals-page.tsx")).ProposalsPage,
}));
const SettlementPage = lazy(async () => ({ default: (await import("./money/settlement-page.tsx")).SettlementPage }));
const SettingsPage = lazy(async () => ({ default: (await import("./administration/settings-page.tsx")).SettingsPage }));
const TransactionPage = lazy(async () => ({ default: (await import("./money/transaction-page.tsx")).TransactionPage }));
const TryPage = lazy(async () => ({ default: (await import("./try-page.tsx")).TryPage }));

/** The routes of the pages. Pages that are not needed at first are loaded when they are opened. */
export function App() {
  const isOperator = useSession().session.kind === "operator";
  const [location] = useLocation();
  return (
    <Shell>
      <ErrorBoundary key={location}>
        <Suspense fallback={<Loading />}>{isOperator ? <OperatorPages /> : <PartnerPages />}</Suspense>
      </ErrorBoundary>
    </Shell>
  );
}

function OperatorPages() {
  return (
    <Switch>
      <Route path="/" component={OverviewPage} />
      <Route path="/search" component={SearchPage} />
      <Route path="/notifications" component={NotificationsPage} />
      <Route path="/notifications/:id">{({ id }) => <NotificationPage key={id} id={id} />}</Route>
      <Route path="/parked" component={ParkedPage} />
      <Route path="/replays/:id">{({ id }) => <ReplayPage key={id} id={id} />}</Route>
      <Route path="/partners" component={PartnersPage} />
      <Route path="/partners/new" component={NewPartnerPage} />
      <Route path="/partners/:id">{({ id }) => <PartnerPage key={id} id={id} />}</Route>
      <Route path="/money" component={MoneyPage} />
      <Route path="/batches/:id">{({ id }) => <BatchPage key={id} id={id} />}</Route>
      <Route path="/settlements/:id">{({ id }) => <SettlementPage key={id} id={id} />}</Route>
      <Route path="/clearing" component={ClearingPage} />
      <Route path="/clearing/:id">{({ id }) => <ClearingFilePage key={id} id={id} />}</Route>
      <Route path="/acquirers" component={AcquirersPage} />
      <Route path="/transactions/:id">{({ id }) => <TransactionPage key={id} id={id} />}</Route>
      <Route path="/try" component={TryPage} />
      <Route path="/audit" component={AuditPage} />
      <Route path="/operators" component={OperatorsPage} />
      <Route path="/proposals" component={ProposalsPage} />
      <Route path="/settings" component={SettingsPage} />
      <Route component={NotFound} />
    </Switch>
  );
}

/** The same pages with fewer columns: only the partner's own rows. */
function PartnerPages() {
  return (
    <Switch>
      <Route path="/" component={MyPartnerPage} />
      <Route path="/search" component={SearchPage} />
      <Route path="/notifications" component={NotificationsPage} />
      <Route path="/notifications/:id">{({ id }) => <NotificationPage key={id} id={id} />}</Route>
      <Route path="/replays/:id">{({ id }) => <ReplayPage key={id} id={id} />}</Route>
      <Route component={NotFound} />
    </Switch>
  );
}

function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is no such page">Use the search box, or a page from the menu.</Empty>
    </Page>
  );
}
