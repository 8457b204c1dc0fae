/** What the gateway answers; as `/openapi.json` describes it. */
export interface Me {
  user: string;
  roles: string[];
  scopes: string[];
  is_admin: boolean;
  sign_in: string;
  session: string;
  expires: string;
}

export interface SignedIn {
  token: string;
  expires: string;
  user: string;
  roles: string[];
}

export interface Attribute {
  name: string;
  type: string;
}

export interface Stream {
  name: string;
  attributes: Attribute[];
  event_time: string | null;
  owner: string | null;
  is_owner: boolean;
  may_append: boolean;
  paused: boolean;
}

export interface Area {
  grant: string;
  miles: number;
  point?: [number, number];
  polygon?: number[][][][];
  follow?: { stream: string; on: string; value: unknown };
}

export interface OwnGrant {
  name: string;
  kind: "read" | "aggregate" | "append";
  role: string | null;
  streams: string[];
  attributes: string[];
  functions: string[];
  by: string[];
  condition: string | null;
  window: string | null;
  min_group: number;
  since: string | null;
  until: string | null;
  grant_option: boolean;
  closed: boolean;
  words: string;
  areas: Area[];
}

export interface OwnGrants {
  user: string;
  profile: Record<string, unknown>;
  grants: OwnGrant[];
}

export interface Notice {
  code: string;
  kind: string;
  message: string;
  witness?: Record<string, unknown> | null;
}

export interface Query {
  handle: string;
  uri: string;
  user: string;
  roles: string[] | null;
  query: string;
  decision: string;
  notices: Notice[];
  version: number;
  paused: boolean;
  rows_delivered: number;
}

export interface Column {
  qualifier: string;
  name: string;
  type: string;
}

export interface GraphNode {
  id: number;
  kind: string;
  inputs: number[];
  text: string[];
  policy: boolean;
  grants: string[];
  fields: Column[];
}

export interface Graph {
  root: number;
  nodes: GraphNode[];
}

export interface Explanation {
  user: string;
  decision: "permit" | "partial" | "empty" | "deny";
  grants: string[];
  reasons: { grant: string; used: boolean; reason: string }[];
  notices: Notice[];
  graph: Graph;
  plan: { graph: Graph; outputs: { name: string; type: string; always: boolean }[]; labelled: boolean } | null;
  merged: { source: string; condition: string }[];
  count: { total: number; valid: number };
  version: number;
}

export interface Problem {
  code: string;
  message: string;
  help: string | null;
  severity: string;
  start: number | null;
  end: number | null;
  node: string;
  field: string;
}

export interface DrawnWindow {
  size: string;
  step: string;
  rows: boolean;
}

export interface DrawnItem {
  value: string;
  name: string;
}

export interface DrawnCall {
  function: string;
  argument: string;
}

export interface DrawnNode {
  id: string;
  kind: "source" | "select" | "project" | "aggregate" | "join" | "union";
  inputs: string[];
  stream?: string;
  alias?: string;
  predicate?: string;
  items?: DrawnItem[];
  calls?: DrawnCall[];
  group_by?: { value: string }[];
  window?: DrawnWindow | null;
  windows?: (DrawnWindow | null)[];
}

export interface Drawing {
  nodes: DrawnNode[];
  united: boolean;
  ending: string;
}

export interface Drawn {
  drawing: Drawing | null;
  outputs: Column[];
  problems: Problem[];
}

export interface Written {
  text: string | null;
  fields: Record<string, Column[]>;
  problems: Problem[];
}

export interface Saved {
  name: string;
  query: string;
  changed: string;
}

export interface Fact {
  name: string;
  args: unknown[];
  value: unknown;
  public: boolean;
}

export interface User {
  name: string;
  roles: string[];
  profile: Record<string, unknown>;
  disabled: boolean;
  has_password: boolean;
}

export interface Changed {
  version: number;
  withdrawn: number;
  changed: number;
  dry_run: boolean;
  queries: string[];
}

export interface HistoryEntry {
  version: number;
  statements: string[];
  author: string | null;
  actor: string;
  time: string;
  reason: string;
  hash: string;
}

export interface WhoEntry {
  principal: string;
  grant: string;
  kind: string;
  role: string | null;
  attributes: string[];
  functions: string[];
  streams: string[];
  condition: string | null;
  window: string | null;
  min_group: number;
  since: string | null;
  until: string | null;
  open: boolean;
  through: string | null;
}

export interface AuditEvent {
  number: number;
  time: string;
  principal: string;
  action: string;
  subject: string;
  version: number;
  grants: string[];
  decision: string;
  notices: string[];
  request: string;
}

export interface Vocabulary {
  keywords: string[];
  functions: { name: string; told: string }[];
  aggregates: string[];
}

export type Row = Record<string, unknown>;
