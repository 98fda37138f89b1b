import { ActionIcon, AppShell, Burger, Group, Menu, NavLink, Text, useMantineColorScheme } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { IconHelp, IconMoon, IconSun, IconUser } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { moveRow } from "../display/rows.tsx";
import { useSession } from "../session/session.ts";
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
            <Burger opened={isMenuOpen} onClick={menu.toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
            <Link href="/" aria-label="Paybell, overview" className="brand">
              Paybell
            </Link>
            {session.sandbox && (
              <Text size="xs" c="dimmed" visibleFrom="sm">
                sandbox
              </Text>
            )}
          </Group>
          <SearchBox />
          <Group gap={4} wrap="nowrap">
            <ActionIcon
              variant="subtle"
              color="gray"
              onClick={help.open}
              aria-label="Keyboard shortcuts"
              visibleFrom="sm"
            >
              <IconHelp size={18} />
            </ActionIcon>
            <SchemeSwitch />
            <Menu position="bottom-end" withArrow>
              <Menu.Target>
                <ActionIcon variant="subtle" color="gray" aria-label={`Signed in as ${session.name}`}>
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
        {children}
      </AppShell.Main>
      <Shortcuts opened={isHelpOpen} onClose={help.close} />
    </AppShell>
  );
}

function SchemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const isDark =
    colorScheme === "dark" || (colorScheme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  const next = isDark ? "light" : "dark";
  return (
    <ActionIcon variant="subtle" color="gray" onClick={() => setColorScheme(next)} aria-label={`Use ${next} colours`}>
      {isDark ? <IconSun size={18} /> : <IconMoon size={18} />}
    </ActionIcon>
  );
}
