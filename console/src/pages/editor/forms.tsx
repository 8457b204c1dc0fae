/** Forms of operators: conditions, attributes, functions and windows as the language writes them. */
import { useId } from "react";
import type { Column, DrawnWindow, Problem, Stream } from "../../api/types";
import { Words } from "../../ui/Words";
import type { Operator } from "./model";

export interface FormProps {
  node: Operator;
  set: (part: Partial<Operator>) => void;
  problems: Problem[];
  /** What can be named. */
  known: Column[];
}

const FUNCTIONS = ["COUNT", "COUNT DISTINCT", "AVG", "SUM", "MIN", "MAX", "FIRST", "LAST"];

interface TextProps {
  label: string;
  value: string;
  onChange: (text: string) => void;
  problem?: Problem;
  hint?: string;
  list?: string;
  lines?: number;
  hideLabel?: boolean;
}

function Text({ label, value, onChange, problem, hint, list, lines, hideLabel }: TextProps) {
  const id = useId();
  const shared = {
    id,
    value,
    className: "mono",
    placeholder: hint,
    spellCheck: false,
    autoComplete: "off",
    "aria-invalid": problem ? true : undefined,
    "aria-describedby": problem ? `${id}-wrong` : undefined,
  };
  return (
    <div className="field grow">
      <label htmlFor={id} className={hideLabel ? "hidden-label" : undefined}>
        {label}
      </label>
      {lines ? (
        <textarea {...shared} rows={lines} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input {...shared} list={list} onChange={(event) => onChange(event.target.value)} />
      )}
      {problem && (
        <span className="wrong" id={`${id}-wrong`}>
          <Words of={problem.help ? `${problem.message} — ${problem.help}` : problem.message} />
        </span>
      )}
    </div>
  );
}

function find(problems: Problem[], field: string): Problem | undefined {
  return problems.find((each) => each.field === field);
}

function nameColumn(column: Column, all: Column[]): string {
  const isShared = all.filter((each) => each.name === column.name).length > 1;
  const quote = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
  return isShared && column.qualifier ? `${quote(column.qualifier)}.${quote(column.name)}` : quote(column.name);
}

function Names({ id, known }: { id: string; known: Column[] }) {
  return (
    <datalist id={id}>
      {known.map((each) => (
        <option key={`${each.qualifier}.${each.name}`} value={nameColumn(each, known)}>
          {each.type}
        </option>
      ))}
    </datalist>
  );
}

function Chips({ known, add }: { known: Column[]; add: (name: string) => void }) {
  return (
    <div className="chips" role="group" aria-label="Attributes to insert">
      {known.map((each) => (
        <button key={`${each.qualifier}.${each.name}`} type="button" className="chip" onClick={() => add(nameColumn(each, known))}>
          {nameColumn(each, known)}
        </button>
      ))}
    </div>
  );
}

export function SourceForm({ node, set, problems, streams }: FormProps & { streams: Stream[] }) {
  const id = useId();
  return (
    <>
      <div className="field">
        <label htmlFor={id}>Stream</label>
        <select id={id} value={node.stream} aria-invalid={find(problems, "stream") ? true : undefined} onChange={(event) => set({ stream: event.target.value })}>
          <option value="">choose</option>
          {streams.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
        {find(problems, "stream") && <span className="wrong">{find(problems, "stream")?.message}</span>}
      </div>
      <Text label="Alias" value={node.alias ?? ""} hint={node.stream} problem={find(problems, "alias")} onChange={(alias) => set({ alias })} />
    </>
  );
}

export function SelectForm({ node, set, problems, known }: FormProps) {
  const predicate = node.predicate ?? "";
  return (
    <>
      <Text label="Condition" lines={3} value={predicate} hint="Pos >= 100 AND Type = 'cargo'" problem={find(problems, "predicate")} onChange={(text) => set({ predicate: text })} />
      <Chips known={known} add={(name) => set({ predicate: predicate ? `${predicate.trimEnd()} ${name}` : name })} />
    </>
  );
}

export function ProjectForm({ node, set, problems, known }: FormProps) {
  const id = useId();
  const items = node.items ?? [];
  const put = (at: number, part: Partial<(typeof items)[number]>): void => set({ items: items.map((each, place) => (place === at ? { ...each, ...part } : each)) });
  return (
    <div className="stack tight">
      <Names id={id} known={known} />
      <span className="label small muted">Attributes</span>
      {items.map((each, at) => (
        <div className="row top" key={at}>
          <Text label={`Value ${at + 1}`} hideLabel value={each.value} list={id} hint="attribute or expression" problem={find(problems, `items.${at}.value`)} onChange={(value) => put(at, { value })} />
          <Text label={`Name ${at + 1}`} hideLabel value={each.name} hint="name" problem={find(problems, `items.${at}.name`)} onChange={(name) => put(at, { name })} />
          <button className="quiet mini" aria-label={`Remove attribute ${at + 1}`} onClick={() => set({ items: items.filter((_, place) => place !== at) })}>
            ✕
          </button>
        </div>
      ))}
      {find(problems, "items") && <span className="wrong">{find(problems, "items")?.message}</span>}
      <Chips known={known.filter((each) => !items.some((item) => item.value === nameColumn(each, known)))} add={(name) => set({ items: [...items, { value: name, name: "" }] })} />
      <button className="mini" onClick={() => set({ items: [...items, { value: "", name: "" }] })}>
        Add an expression
      </button>
    </div>
  );
}

export function AggregateForm({ node, set, problems, known }: FormProps) {
  const id = useId();
  const calls = node.calls ?? [];
  const groups = node.group_by ?? [];
  const put = (at: number, part: Partial<(typeof calls)[number]>): void => set({ calls: calls.map((each, place) => (place === at ? { ...each, ...part } : each)) });
  return (
    <div className="stack tight">
      <Names id={id} known={known} />
      <span className="label small muted">Functions</span>
      {calls.map((each, at) => (
        <div className="row top" key={at}>
          <select className="narrow" aria-label={`Function ${at + 1}`} value={each.function} onChange={(event) => put(at, { function: event.target.value })}>
            {FUNCTIONS.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          <Text label={`Argument ${at + 1}`} hideLabel value={each.argument} list={id} hint="attribute" problem={find(problems, `calls.${at}.argument`)} onChange={(argument) => put(at, { argument })} />
          <button className="quiet mini" aria-label={`Remove function ${at + 1}`} onClick={() => set({ calls: calls.filter((_, place) => place !== at) })}>
            ✕
          </button>
        </div>
      ))}
      {find(problems, "calls") && <span className="wrong">{find(problems, "calls")?.message}</span>}
      <button className="mini" onClick={() => set({ calls: [...calls, { function: "AVG", argument: "" }] })}>
        Add a function
      </button>
      <span className="label small muted">Group by</span>
      {groups.map((each, at) => (
        <div className="row top" key={at}>
          <Text label={`Group ${at + 1}`} hideLabel value={each.value} list={id} hint="attribute" problem={find(problems, `group_by.${at}.value`)} onChange={(value) => set({ group_by: groups.map((one, place) => (place === at ? { value } : one)) })} />
          <button className="quiet mini" aria-label={`Remove group ${at + 1}`} onClick={() => set({ group_by: groups.filter((_, place) => place !== at) })}>
            ✕
          </button>
        </div>
      ))}
      <button className="mini" onClick={() => set({ group_by: [...groups, { value: "" }] })}>
        Add a group
      </button>
      <WindowForm title="Window" window={node.window ?? null} place="window." problems={problems} set={(window) => set({ window })} />
    </div>
  );
}

export function JoinForm({ node, set, problems, known }: FormProps) {
  const predicate = node.predicate ?? "";
  const windows = node.windows ?? [null, null];
  return (
    <>
      <Text label="Join where" lines={2} value={predicate} hint="a.SID = b.SID" problem={find(problems, "predicate")} onChange={(text) => set({ predicate: text })} />
      <Chips known={known} add={(name) => set({ predicate: predicate ? `${predicate.trimEnd()} ${name}` : name })} />
      {[0, 1].map((at) => (
        <WindowForm
          key={at}
          title={at ? "Window on the right" : "Window on the left"}
          window={windows[at] ?? null}
          place={`windows.${at}.`}
          problems={problems}
          set={(window) => set({ windows: windows.map((each, place) => (place === at ? window : each)) })}
        />
      ))}
    </>
  );
}

function WindowForm({ title, window, place, problems, set }: { title: string; window: DrawnWindow | null; place: string; problems: Problem[]; set: (window: DrawnWindow | null) => void }) {
  const now = window ?? { size: "", step: "", rows: false };
  const put = (part: Partial<DrawnWindow>): void => {
    const next = { ...now, ...part };
    set(next.size || next.step || next.rows ? next : null);
  };
  return (
    <fieldset className="window">
      <legend>{title}</legend>
      <div className="row">
        <label className="small">
          <input type="radio" checked={!now.rows} onChange={() => put({ rows: false })} /> time
        </label>
        <label className="small">
          <input type="radio" checked={now.rows} onChange={() => put({ rows: true })} /> rows
        </label>
      </div>
      <div className="row top">
        <Text label="Size" value={now.size} hint={now.rows ? "10" : "1 hour"} problem={find(problems, `${place}size`)} onChange={(size) => put({ size })} />
        <Text label="Step" value={now.step} hint={now.rows ? "5" : "10 minutes"} problem={find(problems, `${place}step`)} onChange={(text) => put({ step: text })} />
      </div>
    </fieldset>
  );
}
