import { ActionIcon, CopyButton, PasswordInput, TextInput, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { Link } from "wouter";

const keptCharacters = 13;

/** Shortened in the middle, copied whole. */
export function Identifier({
  id,
  to,
  whole = false,
}: {
  readonly id: string;
  readonly to?: string;
  readonly whole?: boolean;
}) {
  const text = whole || id.length <= keptCharacters ? id : `${id.slice(0, 8)}…${id.slice(-4)}`;
  return (
    <span className={whole ? "identifier wraps" : "identifier"}>
      {to === undefined ? (
        <span title={id}>{text}</span>
      ) : (
        <Link href={to} title={id}>
          {text}
        </Link>
      )}
      <CopyButton value={id} timeout={1_500}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? "Copied" : "Copy"} withArrow openDelay={300}>
            <ActionIcon
              size={18}
              variant="subtle"
              color={copied ? "green" : "gray"}
              onClick={copy}
              aria-label={`Copy ${id}`}
            >
              {copied ? <IconCheck size={12} /> : <IconCopy size={12} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </span>
  );
}

/** A value that is shown once: hidden from onlookers, and copied by a click. */
export function Secret({
  label,
  value,
  isHidden = true,
}: {
  readonly label: string;
  readonly value: string;
  readonly isHidden?: boolean;
}) {
  const Input = isHidden ? PasswordInput : TextInput;
  return (
    <div className="secret">
      <Input label={label} value={value} readOnly size="sm" />
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <ActionIcon variant="default" size={34} onClick={copy} aria-label={`Copy ${label}`}>
            {copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
          </ActionIcon>
        )}
      </CopyButton>
    </div>
  );
}
