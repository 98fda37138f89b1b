import { Button, Group } from "@mantine/core";

/** The next page of a list, where there is one. */
export function More({
  pages,
}: {
  readonly pages: { readonly hasNextPage: boolean; readonly isFetchingNextPage: boolean; fetchNextPage(): unknown };
}) {
  if (!pages.hasNextPage) return null;
  return (
    <Group justify="center" mt="sm">
      <Button size="xs" variant="default" loading={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
        Show more
      </Button>
    </Group>
  );
}
