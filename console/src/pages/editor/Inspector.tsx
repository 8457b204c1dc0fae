/** The form of the chosen operator; what is wrong stands at its field. */
import type { Column, Problem, Stream } from "../../api/types";
import { AggregateForm, JoinForm, ProjectForm, SelectForm, SourceForm } from "./forms";
import { listInputs, PLACES, reaches, TITLES, type Operator, type Sketch } from "./model";
import { describe } from "./arrange";

export interface InspectorProps {
  sketch: Sketch;
  node: Operator | null;
  streams: Stream[];
  fields: Record<string, Column[]>;
  problems: Problem[];
  set: (part: Partial<Operator>) => void;
  setWhole: (part: Partial<Sketch>) => void;
  connect: (from: string, place: number) => void;
  cut: (place: number) => void;
  remove: () => void;
}

export function Inspector(props: InspectorProps) {
  const { node } = props;
  if (!node) return <Whole {...props} />;
  const own = props.problems.filter((each) => each.node === node.id);
  const form = { node, set: props.set, problems: own, known: listInputs(node, props.fields) };
  const loose = own.filter((each) => ["inputs", "kind", ""].includes(each.field));
  return (
    <aside className="inspector" aria-label="The chosen operator">
      <div className="row apart">
        <h3>
          <span aria-hidden="true">{TITLES[node.kind].sign}</span> {TITLES[node.kind].title}
        </h3>
        <button className="mini danger" onClick={props.remove}>
          Delete
        </button>
      </div>
      {node.kind === "source" && <SourceForm {...form} streams={props.streams} />}
      {node.kind === "select" && <SelectForm {...form} />}
      {node.kind === "project" && <ProjectForm {...form} />}
      {node.kind === "aggregate" && <AggregateForm {...form} />}
      {node.kind === "join" && <JoinForm {...form} />}
      <Inputs {...props} node={node} />
      {loose.map((each, at) => (
        <p key={at} className="wrong">
          {each.message}
        </p>
      ))}
      <Gives fields={props.fields[node.id]} />
    </aside>
  );
}

/** Edges by keyboard: each place of an operator with what it is fed by. */
function Inputs({ sketch, node, connect, cut }: InspectorProps & { node: Operator }) {
  const count = node.kind === "union" ? node.inputs.length + 1 : PLACES[node.kind];
  if (!count) return null;
  const others = sketch.nodes.filter((each) => !reaches(sketch, node.id, each.id));
  return (
    <>
      {Array.from({ length: count }, (_, place) => (
        <div className="field" key={place}>
          <label htmlFor={`input-${place}`}>{node.kind === "join" ? (place ? "Right input" : "Left input") : "Input"}</label>
          <select
            id={`input-${place}`}
            value={node.inputs[place] ?? ""}
            onChange={(event) => (event.target.value ? connect(event.target.value, place) : cut(place))}
          >
            <option value="">nothing</option>
            {others.map((each) => (
              <option key={each.id} value={each.id}>
                {TITLES[each.kind].sign} {describe(each)[0]}
              </option>
            ))}
          </select>
        </div>
      ))}
    </>
  );
}

function Gives({ fields }: { fields: Column[] | undefined }) {
  if (!fields?.length) return null;
  return (
    <div className="field">
      <span className="label">Gives</span>
      <ul className="gives">
        {fields.map((each) => (
          <li key={`${each.qualifier}.${each.name}`}>
            <span className="mono">{each.qualifier ? `${each.qualifier}.${each.name}` : each.name}</span> <span className="muted">{each.type}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Whole({ sketch, problems, setWhole }: InspectorProps) {
  const own = problems.filter((each) => !each.node);
  return (
    <aside className="inspector" aria-label="The whole query">
      <h3>The query</h3>
      <p className="muted small">Choose an operator to edit it. Drag from a lower dot to an upper one to connect.</p>
      <label className="row small">
        <input type="checkbox" checked={sketch.united} onChange={(event) => setWhole({ united: event.target.checked })} /> United: one result of all grants
      </label>
      <div className="field">
        <label htmlFor="ending">Start and result</label>
        <input id="ending" className="mono" value={sketch.ending} placeholder="START AT EARLIEST" onChange={(event) => setWhole({ ending: event.target.value })} />
      </div>
      {sketch.nodes.length > 0 &&
        own.map((each, at) => (
          <p key={at} className="wrong">
            {each.message}
            {each.help ? ` — ${each.help}` : ""}
          </p>
        ))}
    </aside>
  );
}
