import { ActionIcon, CopyButton, PasswordInput, TextInput } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";

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
