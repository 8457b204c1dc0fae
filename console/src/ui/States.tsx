/** What a page shows when there is nothing to show yet, nothing at all, or something went wrong. */
import type { ReactNode } from "react";
import { tell } from "../api/client";

export function Loading({ label = "Loading" }: { label?: string }) {
  return (
    <div className="empty" role="status">
      <div className="spinner" aria-hidden="true" />
      <span>{label}…</span>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div className="note bad" role="alert">
      <span>{tell(error)}</span>
      {retry && (
        <div>
          <button className="mini" onClick={retry}>
            Try again
          </button>
        </div>
      )}
    </div>
  );
}

export function Busy<T>({ of, children }: { of: Loaded<T>; children: (value: T) => ReactNode }) {
  if (of.value !== null) return <>{children(of.value)}</>;
  if (of.error) return <Failure error={of.error} retry={of.reload} />;
  return <Loading />;
}

export interface Loaded<T> {
  value: T | null;
  error: unknown;
  reload: () => void;
}
