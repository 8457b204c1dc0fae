/** Queries by hand: operators on a canvas, edges between them, forms beside it. The gateway reads every step. */
import { Background, Controls, ReactFlow, ReactFlowProvider, useReactFlow, type Connection, type Edge, type NodeChange, type EdgeChange } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useCallback, useEffect, useMemo, useRef, useState, type DragEvent } from "react";
import { post, tell } from "../../api/client";
import type { Drawn, Problem, Stream, Written } from "../../api/types";
import { Loading } from "../../ui/States";
import { arrange, fromDrawing, measure, WIDTH } from "./arrange";
import { Inspector } from "./Inspector";
import { change, connect, disconnect, EMPTY, findHindrance, makeOperator, nextId, redo, remove, step, TITLES, toDrawing, undo, type History, type Kind, type Operator, type Sketch } from "./model";
import { OperatorNode, type FlowNode } from "./OperatorNode";
import "./editor.css";

interface Props {
  text: string;
  streams: Stream[];
  onText: (text: string) => void;
}

const KINDS: Kind[] = ["select", "project", "aggregate", "join", "union"];
const NODE_TYPES = { operator: OperatorNode };
const NOTHING: Written = { text: null, fields: {}, problems: [] };

export default function GraphEditor({ text, streams, onText }: Props) {
  const [opened, setOpened] = useState<{ sketch: Sketch; problems: Problem[] } | null>(null);
  const first = useRef(text);
  useEffect(() => {
    const asked = first.current.trim();
    if (!asked) {
      setOpened({ sketch: EMPTY, problems: [] });
      return;
    }
    post<Drawn>("/v1/graph/read", { query: asked }).then(
      (found) => setOpened({ sketch: found.drawing ? fromDrawing(found.drawing) : EMPTY, problems: found.drawing ? [] : found.problems }),
      (error: unknown) => setOpened({ sketch: EMPTY, problems: [{ code: "", message: tell(error), help: null, severity: "error", start: null, end: null, node: "", field: "" }] }),
    );
  }, []);
  if (!opened) return <Loading label="Drawing the query" />;
  return (
    <ReactFlowProvider>
      {opened.problems.length > 0 && (
        <div className="note warn editor-note" role="status">
          The text cannot be drawn as it is: {opened.problems[0]?.message}. What is drawn here takes its place.
        </div>
      )}
      <Canvas start={opened.sketch} streams={streams} onText={onText} />
    </ReactFlowProvider>
  );
}

/** Asks the gateway what is drawn, a moment after the last change; an older answer never follows a newer one. */
function useWritten(sketch: Sketch, onText: (text: string) => void): [Written, () => Written] {
  const [written, setWritten] = useState<Written>(NOTHING);
  const latest = useRef(written);
  latest.current = written;
  const mark = useMemo(() => JSON.stringify(toDrawing(sketch)), [sketch]);
  useEffect(() => {
    const stop = new AbortController();
    const timer = window.setTimeout(() => {
      post<Written>("/v1/graph/write", JSON.parse(mark), stop.signal).then(
        (found) => {
          setWritten(found);
          if (found.text !== null) onText(found.text);
        },
        () => undefined,
      );
    }, 180);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [mark]);
  return [written, () => latest.current];
}

function Canvas({ start, streams, onText }: { start: Sketch; streams: Stream[]; onText: (text: string) => void }) {
  const [history, setHistory] = useState<History>({ past: [], now: start, future: [] });
  const [chosen, setChosen] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const flow = useReactFlow();
  const sketch = history.now;
  const [written, getWritten] = useWritten(sketch, onText);
  const apply = useCallback((make: (now: Sketch) => Sketch) => setHistory((before) => step(before, make(before.now))), []);
  const node = sketch.nodes.find((each) => each.id === chosen) ?? null;

  const add = (kind: Kind, stream?: Stream, at?: { x: number; y: number }): void => {
    const id = nextId(sketch);
    const place = at ?? findFree(sketch);
    apply((now) => ({ ...now, nodes: [...now.nodes, makeOperator(kind, id, place.x, place.y, stream)] }));
    setChosen(id);
  };

  const tryEdge = async (from: string, to: string, place: number | null): Promise<void> => {
    const next = connect(sketch, from, to, place);
    setRefused(null);
    if (!next) {
      setRefused("These two cannot be connected.");
      return;
    }
    const found = await post<Written>("/v1/graph/write", toDrawing(next)).catch(() => null);
    const hindrance = found ? findHindrance(getWritten().problems, found.problems, to) : null;
    if (!found || hindrance) setRefused(hindrance ? `This edge cannot be drawn: ${hindrance.message}.` : "The gateway could not check this edge.");
    else apply(() => next);
  };

  const { nodes, edges } = useMemo(() => toFlow(sketch, written.problems, chosen), [sketch, written.problems, chosen]);
  const onNodes = (changes: NodeChange<FlowNode>[]): void => {
    const gone = new Set(changes.filter((each) => each.type === "remove").map((each) => each.id));
    if (gone.size) apply((now) => remove(now, gone));
    for (const each of changes) {
      if (each.type === "select") setChosen((now) => (each.selected ? each.id : now === each.id ? null : now));
      if (each.type === "position" && each.position) {
        const { x, y } = each.position;
        // a drag is one step back, which its beginning makes, not one for each point on its way
        setHistory((before) => ({ ...before, now: change(before.now, each.id, { x, y }) }));
      }
    }
  };
  const onEdges = (changes: EdgeChange[]): void => {
    for (const each of changes) {
      if (each.type !== "remove") continue;
      const [, to = "", place = "0"] = each.id.split("|");
      apply((now) => disconnect(now, to, Number(place)));
    }
  };
  const isValid = (edge: Connection | Edge): boolean => connect(sketch, edge.source, edge.target, toPlace(edge.targetHandle)) !== null;
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    const [kind, name] = event.dataTransfer.getData("text/plain").split("|");
    const place = flow.screenToFlowPosition({ x: event.clientX - WIDTH / 2, y: event.clientY - 30 });
    if (kind && kind in TITLES) add(kind as Kind, streams.find((each) => each.name === name), place);
  };
  const tidy = (): void => {
    apply(arrange);
    window.setTimeout(() => void flow.fitView({ padding: 0.15, maxZoom: 1 }), 30);
  };

  return (
    <div
      className="graph-editor"
      onKeyDown={(event) => {
        const isField = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
        if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || isField) return;
        event.preventDefault();
        setHistory(event.shiftKey ? redo : undo);
      }}
    >
      <Palette streams={streams} add={add} />
      <div className="canvas" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        <div className="canvas-tools">
          <button className="mini" disabled={!history.past.length} onClick={() => setHistory(undo)}>
            Undo
          </button>
          <button className="mini" disabled={!history.future.length} onClick={() => setHistory(redo)}>
            Redo
          </button>
          <button className="mini" disabled={!sketch.nodes.length} onClick={tidy}>
            Arrange
          </button>
        </div>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          onNodesChange={onNodes}
          onEdgesChange={onEdges}
          onConnect={(edge) => void tryEdge(edge.source, edge.target, toPlace(edge.targetHandle))}
          isValidConnection={isValid}
          onNodeDragStart={() => apply((now) => ({ ...now }))}
          onPaneClick={() => setChosen(null)}
          deleteKeyCode={["Delete", "Backspace"]}
          fitView
          fitViewOptions={{ padding: 0.15, maxZoom: 1 }}
          minZoom={0.2}
          proOptions={{ hideAttribution: true }}
        >
          <Background gap={18} />
          <Controls showInteractive={false} />
        </ReactFlow>
        {!sketch.nodes.length && <p className="canvas-hint">Put a stream here: drag it from the list, or press its button.</p>}
        {refused && (
          <div className="note bad canvas-refused" role="alert">
            {refused}
          </div>
        )}
      </div>
      <Inspector
        sketch={sketch}
        node={node}
        streams={streams}
        fields={written.fields}
        problems={written.problems}
        set={(part) => node && apply((now) => change(now, node.id, part))}
        setWhole={(part) => apply((now) => ({ ...now, ...part }))}
        connect={(from, place) => node && void tryEdge(from, node.id, place)}
        cut={(place) => node && apply((now) => disconnect(now, node.id, place))}
        remove={() => node && apply((now) => remove(now, new Set([node.id])))}
      />
      <pre className="written" aria-label="The text of the graph">
        {written.text ?? (sketch.nodes.length ? "The graph has no text yet: something is missing or wrong." : "")}
      </pre>
    </div>
  );
}

function toPlace(handle: string | null | undefined): number | null {
  return handle ? Number(handle) : null;
}

function findFree(sketch: Sketch): { x: number; y: number } {
  const lowest = sketch.nodes.reduce((found, each) => Math.max(found, each.y + measure(each)), -40);
  const sources = sketch.nodes.filter((each) => each.kind === "source");
  if (sketch.nodes.length && sketch.nodes.length === sources.length) {
    const right = Math.max(...sources.map((each) => each.x));
    return { x: right + WIDTH + 50, y: sources[0]?.y ?? 0 };
  }
  return { x: sketch.nodes.at(-1)?.x ?? 0, y: lowest + 40 };
}

function toFlow(sketch: Sketch, problems: Problem[], chosen: string | null): { nodes: FlowNode[]; edges: Edge[] } {
  const nodes = sketch.nodes.map((operator: Operator) => ({
    id: operator.id,
    type: "operator" as const,
    position: { x: operator.x, y: operator.y },
    selected: operator.id === chosen,
    data: { operator, problems: problems.filter((each) => each.node === operator.id).length },
    ariaLabel: TITLES[operator.kind].title,
    width: WIDTH,
    height: measure(operator),
  }));
  const edges = sketch.nodes.flatMap((operator) =>
    operator.inputs.flatMap((input, place) =>
      input ? [{ id: `${input}|${operator.id}|${place}`, source: input, target: operator.id, sourceHandle: "out", targetHandle: operator.kind === "join" ? String(place) : "0" }] : [],
    ),
  );
  return { nodes, edges };
}

function Palette({ streams, add }: { streams: Stream[]; add: (kind: Kind, stream?: Stream) => void }) {
  const carry = (event: DragEvent, text: string): void => event.dataTransfer.setData("text/plain", text);
  return (
    <div className="palette" aria-label="Operators" role="group">
      <span className="label">Streams</span>
      {streams.map((each) => (
        <button key={each.name} draggable className="mini" onDragStart={(event) => carry(event, `source|${each.name}`)} onClick={() => add("source", each)}>
          <span aria-hidden="true">{TITLES.source.sign}</span> {each.name}
        </button>
      ))}
      <span className="label">Operators</span>
      {KINDS.map((kind) => (
        <button key={kind} draggable className="mini" onDragStart={(event) => carry(event, kind)} onClick={() => add(kind)}>
          <span aria-hidden="true">{TITLES[kind].sign}</span> {TITLES[kind].title}
        </button>
      ))}
    </div>
  );
}
