/** The mark of Paybell, in the colour of the text around it. */
export function Bell({ size }: { readonly size: number }) {
  return (
    <svg viewBox="0 0 32 32" width={size} height={size} aria-hidden="true" className="bell">
      <rect width="32" height="32" rx="8" fill="currentColor" opacity="0.16" />
      <path
        d="M16 6.5c-4 0-6.5 3-6.5 7 0 5-2 6-2.5 8h18c-.5-2-2.5-3-2.5-8 0-4-2.5-7-6.5-7zM13.5 23.5a2.5 2.5 0 0 0 5 0z"
        fill="currentColor"
      />
    </svg>
  );
}
