import { ActionIcon, Alert, AppShell, Burger, Group, Menu, NavLink, Text, useMantineColorScheme } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { IconEye, IconHelp, IconMoon, IconSun, IconUser } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { moveRow } from "../display/rows.tsx";
import { duration, useNow } from "../display/time.tsx";
import { useSession } from "../session/session.ts";
import { Bell } from "./bell.tsx";
import { isOf, pagesOf } from "./pages.ts";
import { Reachability } from "./reachability.tsx";
import { focusSearch, SearchBox } from "./search-box.tsx";
import { Shortcuts } from "./shortcuts.tsx";

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
