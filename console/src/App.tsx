/** The console: signed in or not, and the page that the address names. */
import { lazy, Suspense, useEffect, useSyncExternalStore, type ComponentType } from "react";
import { get } from "./api/client";
import { getState, subscribe } from "./api/session";
import type { Me, Stream } from "./api/types";
import Access from "./pages/access/Access";
import { SignIn } from "./pages/signin/SignIn";
import { usePlace } from "./ui/route";
import { Shell, type Entry } from "./ui/Shell";
import { Empty, Failure, Loading } from "./ui/States";
import { useLoaded } from "./ui/useLoaded";

export interface PageProps {
  me: Me;
  streams: Stream[];
}

interface Page extends Entry {
  show: ComponentType<PageProps>;
  isFor: (props: PageProps) => boolean;
}

const all = (): boolean => true;
const owners = ({ me, streams }: PageProps): boolean => me.is_admin || streams.some((each) => each.is_owner);

const PAGES: Page[] = [
  { page: "access", title: "What I may see", icon: "eye", show: Access, isFor: all },
  { page: "query", title: "Query", icon: "query", show: lazy(() => import("./pages/query/QueryPage")), isFor: all },
  { page: "live", title: "Live results", icon: "live", show: lazy(() => import("./pages/live/LivePage")), isFor: all },
  { page: "policies", title: "Policies", icon: "shield", show: lazy(() => import("./pages/policies/PoliciesPage")), isFor: owners },
  { page: "operations", title: "Operations", icon: "gear", show: lazy(() => import("./pages/operations/OperationsPage")), isFor: all },
];

export function App() {
  const { session, ended } = useSyncExternalStore(subscribe, getState);
  if (!session) return <SignIn ended={ended} />;
  return <SignedIn key={session.token} />;
}

async function load(signal: AbortSignal): Promise<PageProps> {
  const [me, streams] = await Promise.all([get<Me>("/v1/me", signal), get<{ streams: Stream[] }>("/v1/streams", signal)]);
  return { me, streams: streams.streams };
}

function SignedIn() {
  const found = useLoaded(load, []);
  const place = usePlace();
  const page = place.page || "access";
  const shown = PAGES.find((each) => each.page === page);
  useEffect(() => {
    document.title = shown ? `${shown.title} · sluicegate` : "sluicegate";
  }, [shown]);
  if (found.error) return <Failure error={found.error} retry={found.reload} />;
  if (!found.value) return <Loading label="Signing in" />;
  const props = found.value;
  const entries = PAGES.filter((each) => each.isFor(props));
  return (
    <Shell me={props.me} entries={entries} page={page}>
      <Suspense fallback={<Loading />}>
        {shown?.isFor(props) ? <shown.show {...props} /> : <Empty title="There is nothing here">Choose a page from the menu.</Empty>}
      </Suspense>
    </Shell>
  );
}
