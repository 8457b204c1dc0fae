/** A table of any length: only the rows in sight are there. */
import { useRef, useState, type ReactNode } from "react";
import "./table.css";

const HEIGHT = 32;
const MARGIN = 8;

export interface Props<T> {
  label: string;
  columns: { key: string; title: string; width?: string }[];
  rows: T[];
  cell: (row: T, key: string) => ReactNode;
  rowKey?: (row: T, at: number) => string | number;
  onRow?: (row: T) => void;
  height?: number;
}

export function VirtualTable<T>({ label, columns, rows, cell, rowKey, onRow, height = 440 }: Props<T>) {
  const [top, setTop] = useState(0);
  const place = useRef<HTMLDivElement>(null);
  const first = Math.max(0, Math.floor(top / HEIGHT) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((top + height) / HEIGHT) + MARGIN);
  const template = columns.map((each) => each.width ?? "minmax(110px, 1fr)").join(" ");
  return (
    <div className="vtable-wrap">
      <div
        ref={place}
        className="vtable"
        role="table"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        tabIndex={0}
        style={{ maxHeight: height }}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <div role="rowgroup" className="vhead">
          <div role="row" aria-rowindex={1} className="vrow" style={{ gridTemplateColumns: template }}>
            {columns.map((each) => (
              <div role="columnheader" key={each.key}>
                {each.title}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" className="vbody" style={{ height: rows.length * HEIGHT }}>
          {rows.slice(first, last).map((row, offset) => {
            const at = first + offset;
            return (
              <div
                role="row"
                aria-rowindex={at + 2}
                key={rowKey ? rowKey(row, at) : at}
                className={onRow ? "vrow link" : "vrow"}
                style={{ gridTemplateColumns: template, top: at * HEIGHT }}
                onClick={onRow ? () => onRow(row) : undefined}
              >
                {columns.map((each) => (
                  <div role="cell" key={each.key}>
                    {cell(row, each.key)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
