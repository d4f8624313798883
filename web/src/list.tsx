// A list that keeps only the rows in sight in the document.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface Props<T> {
  rows: T[];
  height: number;
  label: string;
  keyOf: (row: T) => string;
  selected: string;
  select: (key: string) => void;
  draw: (row: T) => ComponentChildren;
}

const kMargin = 6;

export function List<T>({ rows, height, label, keyOf, selected, select, draw }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [size, setSize] = useState(600);
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setSize(element.clientHeight);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / height) - kMargin);
  const last = Math.min(rows.length, Math.ceil((top + size) / height) + kMargin);
  const at = rows.findIndex((row) => keyOf(row) === selected);
  const go = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (!row) return;
    select(keyOf(row));
    const element = box.current!;
    const y = rows.indexOf(row) * height;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + height > element.scrollTop + element.clientHeight)
      element.scrollTop = y + height - element.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(size / height) - 1);
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  };
  return (
    <div
      class="list"
      ref={box}
      role="listbox"
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={at >= first && at < last ? `row-${at}` : undefined}
      onScroll={(event) => setTop((event.target as HTMLElement).scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div class="list-all" role="presentation" style={{ height: `${rows.length * height}px` }}>
        {rows.slice(first, last).map((row, offset) => {
          const index = first + offset;
          const key = keyOf(row);
          return (
            <div
              key={key}
              id={`row-${index}`}
              class="row"
              role="option"
              aria-selected={key === selected}
              aria-setsize={rows.length}
              aria-posinset={index + 1}
              style={{ top: `${index * height}px`, height: `${height}px` }}
              onClick={() => select(key)}
            >
              {draw(row)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
