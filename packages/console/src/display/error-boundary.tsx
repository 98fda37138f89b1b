import { Component, type ReactNode } from "react";
import { Failure } from "./failure.tsx";

interface Props {
  readonly children: ReactNode;
}

/** Shows an error in place of the part that failed; the rest of the page continues. */
export class ErrorBoundary extends Component<Props, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    return error === undefined ? (
      this.props.children
    ) : (
      <Failure error={error} onRetry={() => this.setState({ error: undefined })} />
    );
  }
}
