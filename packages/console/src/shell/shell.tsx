import {
  ActionIcon,
  Alert,
  AppShell,
  Burger,
  Group,
  Kbd,
  Menu,
  Modal,
  NavLink,
  Text,
  TextInput,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { IconEye, IconHelp, IconMoon, IconPlugConnectedX, IconSearch, IconSun, IconUser } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState, useSyncExternalStore } from "react";
import { Link, useLocation } from "wouter";
import { isPassing } from "../api/query.ts";
import { moveRow, Table } from "../display/list.tsx";
import { duration, useNow } from "../display/time.tsx";
import { useSession } from "../session/session.ts";
import { Bell } from "../session/sign-in.tsx";
import { isOf, pagesOf } from "./pages.ts";

/** Header with the search box, menu, and the page beside it. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const { session, signOut } = useSession();
  const [isMenuOpen, menu] = useDisclosure(false);
  const [isHelpOpen, help] = useDisclosure(false);
  const [location] = useLocation();
  useHotkeys([
    ["/", focusSearch],
    ["j", () => moveRow(1)],
    ["k", () => moveRow(-1)],
    ["shift+?", help.open],
  ]);
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 184, breakpoint: "sm", collapsed: { mobile: !isMenuOpen } }}
      padding="md"
      transitionDuration={0}
    >
      <AppShell.Header>
        <Group h="100%" px="md" gap="md" wrap="nowrap" justify="space-between">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={isMenuOpen}
              onClick={menu.toggle}
              hiddenFrom="sm"
              size="sm"
              color="white"
              aria-label="Menu"
            />
            <Link href="/" aria-label="Paybell, overview" className="brand">
              <Bell size={24} />
              Paybell
            </Link>
            {session.sandbox && (
              <Text size="xs" visibleFrom="sm">
                sandbox
              </Text>
            )}
          </Group>
          <SearchBox />
          <Group gap={4} wrap="nowrap">
            <ActionIcon variant="transparent" onClick={help.open} aria-label="Keyboard shortcuts" visibleFrom="sm">
              <IconHelp size={18} />
            </ActionIcon>
            <SchemeSwitch />
            <Menu position="bottom-end" withArrow>
              <Menu.Target>
                <ActionIcon variant="transparent" aria-label={`Signed in as ${session.name}`}>
                  <IconUser size={18} />
                </ActionIcon>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Label>
                  {session.name} · {session.kind === "operator" ? session.role : "partner"}
                </Menu.Label>
                <Menu.Item onClick={signOut}>Sign out</Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Pages">
        {pagesOf(session).map((entry) => (
          <NavLink
            key={entry.to}
            component={Link}
            href={entry.to}
            label={entry.label}
            leftSection={<entry.icon size={16} aria-hidden />}
            active={isOf(entry, location)}
            onClick={menu.close}
          />
        ))}
      </AppShell.Navbar>
      <AppShell.Main>
        <Reachability />
        <ByLink />
        {children}
      </AppShell.Main>
      <Shortcuts opened={isHelpOpen} onClose={help.close} />
    </AppShell>
  );
}

/** Says whose pages a link has opened, and for how long. */
function ByLink() {
  const { session } = useSession();
  const now = useNow();
  if (session.kind !== "partner" || session.view === null) return null;
  const leftMs = Date.parse(session.view.until) - now;
  return (
    <Alert color="accent" variant="light" mb="md" icon={<IconEye size={16} />} role="status">
      {session.view.by} shows you the pages of {session.name}: to read, for{" "}
      {leftMs > 0 ? `another ${duration(leftMs)}` : "no longer"}.
    </Alert>
  );
}

function SchemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const isDark =
    colorScheme === "dark" || (colorScheme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  const next = isDark ? "light" : "dark";
  return (
    <ActionIcon variant="transparent" onClick={() => setColorScheme(next)} aria-label={`Use ${next} colours`}>
      {isDark ? <IconSun size={18} /> : <IconMoon size={18} />}
    </ActionIcon>
  );
}

/** Says that the service cannot be reached, or cannot answer now, while the page shows what it knew last. */
function Reachability() {
  const cache = useQueryClient().getQueryCache();
  const isAway = useSyncExternalStore(
    (changed) => cache.subscribe(changed),
    () =>
      // Nobody asks again for what the page no longer shows: its failure is of long ago.
      cache.getAll().some((query) => query.isActive() && isPassing(query.state.fetchFailureReason)),
  );
  if (!isAway) return null;
  return (
    <Alert color="accent" variant="light" mb="md" icon={<IconPlugConnectedX size={16} />} role="status">
      The service does not answer. What you see is what was known last; the page tries again by itself.
    </Alert>
  );
}

const boxId = "search";

function focusSearch(): void {
  const box = document.getElementById(boxId);
  if (box instanceof HTMLInputElement) {
    box.focus();
    box.select();
  }
}

/** Searches for any id that a partner quotes. A single hit opens by itself; several are listed. */
function SearchBox() {
  const [text, setText] = useState("");
  const [, navigate] = useLocation();
  return (
    <search className="search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          navigate(`/search?${new URLSearchParams({ q: text.trim() })}`);
        }}
      >
        <TextInput
          id={boxId}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          placeholder="Order, id, refId, last four, partner, terminal, setting"
          aria-label="Search"
          leftSection={<IconSearch size={15} aria-hidden />}
          rightSection={<Kbd size="xs">/</Kbd>}
          size="sm"
          autoComplete="off"
          spellCheck={false}
        />
      </form>
    </search>
  );
}

const shortcuts = [
  ["/", "Search"],
  ["j, k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["r", "Redeliver the notification that is open"],
  ["?", "This list"],
] as const;

function Shortcuts({ opened, onClose }: { readonly opened: boolean; readonly onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title="Keyboard shortcuts" size="sm">
      <Table
        items={shortcuts}
        columns={[
          { name: "Key", show: ([keys]) => <Kbd>{keys}</Kbd>, look: "nowrap" },
          { name: "Does", show: ([, meaning]) => meaning },
        ]}
        keyOf={([keys]) => keys}
      />
    </Modal>
  );
}
