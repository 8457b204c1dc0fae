/** An operator on the canvas: what it is, what it says, and where edges go in and out. */
import { Handle, Position, type NodeProps, type Node } from "@xyflow/react";
import { describe, WIDTH, measure } from "./arrange";
import { TITLES, type Operator } from "./model";

export type FlowNode = Node<{ operator: Operator; problems: number }, "operator">;

export function OperatorNode({ data, selected }: NodeProps<FlowNode>) {
  const { operator, problems } = data;
  const { sign, title } = TITLES[operator.kind];
  const places = operator.kind === "source" ? [] : operator.kind === "join" ? ["0", "1"] : ["0"];
  return (
    <div className={`operator ${operator.kind} ${selected ? "chosen" : ""} ${problems ? "faulty" : ""}`} style={{ width: WIDTH, height: measure(operator) }}>
      {places.map((place, at) => (
        <Handle
          key={place}
          id={place}
          type="target"
          position={Position.Top}
          style={{ left: `${((at + 1) * 100) / (places.length + 1)}%` }}
        />
      ))}
      <div className="operator-head">
        <span className="sign" aria-hidden="true">
          {sign}
        </span>
        {title}
        {problems > 0 && <span className="badge bad">{problems === 1 ? "1 problem" : `${problems} problems`}</span>}
      </div>
      <div className="operator-text">
        {describe(operator).map((line, at) => (
          <div key={at}>{line}</div>
        ))}
      </div>
      <Handle id="out" type="source" position={Position.Bottom} />
    </div>
  );
}
