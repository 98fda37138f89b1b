import { Kbd, Modal, Table } from "@mantine/core";

const shortcuts = [
  ["/", "Search"],
  ["j, k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["r", "Redeliver the notification that is open"],
  ["?", "This list"],
] as const;

export function Shortcuts({ opened, onClose }: { readonly opened: boolean; readonly onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title="Keyboard shortcuts" size="sm">
      <Table>
        <Table.Tbody>
          {shortcuts.map(([keys, meaning]) => (
            <Table.Tr key={keys}>
              <Table.Td w={90}>
                <Kbd>{keys}</Kbd>
              </Table.Td>
              <Table.Td>{meaning}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
