import { Kbd, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { useLocation } from "wouter";

const boxId = "search";

export function focusSearch(): void {
  const box = document.getElementById(boxId);
  if (box instanceof HTMLInputElement) {
    box.focus();
    box.select();
  }
}

/** Searches for any id that a partner quotes. A single hit opens by itself; several are listed. */
export function SearchBox() {
  const [text, setText] = useState("");
  const [, navigate] = useLocation();
  return (
    <search className="search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const q = text.trim();
          if (q !== "") navigate(`/search?${new URLSearchParams({ q })}`);
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
