import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PacketAnswer } from "./protocol";
import { NO_PACKET } from "./protocol";
import type { PacketsPart, Page, Store } from "./store";
import { nanoseconds, whole } from "./text";
import { timeText } from "./timeline/time";

const LINE = 22;
const SPARE = 12;

type Order = "packet" | "size_bytes" | "latency_ps" | "cycles" | "settled_ps";

const COLUMNS: readonly (readonly [Order | "disposition" | "core", string, string])[] = [
  ["packet", "Packet", "number"],
  ["size_bytes", "Size", "number"],
  ["disposition", "Disposition", "text"],
  ["settled_ps", "Settled", "number"],
  ["latency_ps", "Latency", "number"],
  ["core", "Core", "number"],
  ["cycles", "Cycles", "number"],
];

export function Packets(props: { page: Page; store: Store }) {
  const { page, store } = props;
  const part = page.results.packets;
  const [only, setOnly] = useState(-1);
  const [order, setOrder] = useState<{ by: Order; down: boolean }>({ by: "packet", down: false });
  const shown = useMemo(() => (part ? selected(part, only, order) : new Uint32Array()), [part, only, order]);
  if (!part) return <p class="note">The list of packets comes with the run.</p>;
  const { dispositions, left_out: leftOut } = part.header;
  return (
    <div class="packets">
      <div class="list">
        <div class="tools">
          <label for="packets-only">Show</label>
          <select id="packets-only" value={only} onChange={(event) => setOnly(Number(event.currentTarget.value))}>
            <option value={-1}>all {whole(part.header.rows)}</option>
            {dispositions.map((each, at) => (
              <option key={each.name} value={at}>
                {each.name} ({whole(each.packets)})
              </option>
            ))}
          </select>
          {leftOut > 0 && <span class="faint">{whole(leftOut)} later packets are left out</span>}
        </div>
        <List part={part} shown={shown} order={order} onOrder={setOrder} page={page} store={store} />
      </div>
      <div class="detail" tabIndex={0} role="group" aria-label="Chosen packet">
        <Detail page={page} store={store} part={part} />
      </div>
    </div>
  );
}

function selected(part: PacketsPart, only: number, order: { by: Order; down: boolean }): Uint32Array {
  const { disposition } = part.columns;
  const found: number[] = [];
  for (let at = 0; at < part.header.rows; at += 1) if (only < 0 || disposition[at] === only) found.push(at);
  const shown = Uint32Array.from(found);
  const values = part.columns[order.by];
  const sign = order.down ? -1 : 1;
  // A missing value is last in both directions.
  const missing = (value: number) => Number.isNaN(value) || value === NO_PACKET;
  if (order.by !== "packet" || order.down)
    shown.sort((one, other) => {
      const [first, second] = [values[one], values[other]];
      if (missing(first) || missing(second)) return Number(missing(first)) - Number(missing(second)) || one - other;
      return sign * (first - second) || one - other;
    });
  return shown;
}

function List(props: {
  part: PacketsPart;
  shown: Uint32Array;
  order: { by: Order; down: boolean };
  onOrder: (order: { by: Order; down: boolean }) => void;
  page: Page;
  store: Store;
}) {
  const { part, shown, order, page, store } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(300);
  const chosen = page.view.packet;
  const numbers = part.columns.packet;
  const place = useMemo(
    () => (chosen === undefined ? -1 : shown.findIndex((at) => numbers[at] === chosen)),
    [chosen, shown],
  );
  useEffect(() => {
    const around = box.current;
    if (!around) return;
    const seen = new ResizeObserver(() => setHeight(around.clientHeight));
    seen.observe(around);
    return () => seen.disconnect();
  }, []);
  const choose = (at: number) => {
    const next = Math.min(Math.max(at, 0), shown.length - 1);
    if (next < 0) return;
    store.look({ packet: numbers[shown[next]] });
    const around = box.current;
    if (!around) return;
    // The head of the table stays above the lines.
    if (next * LINE < around.scrollTop) around.scrollTop = next * LINE;
    if ((next + 2) * LINE > around.scrollTop + around.clientHeight)
      around.scrollTop = (next + 2) * LINE - around.clientHeight;
  };
  const keys = (event: KeyboardEvent) => {
    const page = Math.max(Math.floor(height / LINE) - 2, 1);
    const to: Record<string, number> = {
      ArrowDown: place + 1,
      ArrowUp: place - 1,
      PageDown: place + page,
      PageUp: place - page,
      Home: 0,
      End: shown.length - 1,
    };
    if (!(event.key in to)) return;
    event.preventDefault();
    choose(to[event.key]);
  };
  const first = Math.max(Math.floor(top / LINE) - SPARE, 0);
  const last = Math.min(Math.ceil((top + height) / LINE) + SPARE, shown.length);
  const lines: number[] = [];
  for (let at = first; at < last; at += 1) lines.push(at);
  return (
    <div
      class="lines"
      ref={box}
      role="grid"
      aria-label="Packets"
      aria-rowcount={shown.length + 1}
      aria-activedescendant={place >= first && place < last ? `packet-${place}` : undefined}
      tabIndex={0}
      onKeyDown={keys}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div role="row" class="head" aria-rowindex={1}>
        {COLUMNS.map(([name, title, kind]) => {
          const sorted = order.by === name;
          const direction = order.down ? "descending" : "ascending";
          return (
            <span key={name} role="columnheader" class={kind} aria-sort={sorted ? direction : undefined}>
              {name === "disposition" || name === "core" ? (
                title
              ) : (
                <button
                  type="button"
                  tabIndex={-1}
                  class="link"
                  onClick={() => props.onOrder({ by: name, down: sorted ? !order.down : false })}
                >
                  {title}
                  {sorted ? (order.down ? " ↓" : " ↑") : ""}
                </button>
              )}
            </span>
          );
        })}
      </div>
      <div role="presentation" style={{ height: `${first * LINE}px` }} />
      {lines.map((at) => (
        <Line key={at} at={at} row={shown[at]} part={part} chosen={at === place} choose={choose} />
      ))}
      <div role="presentation" style={{ height: `${(shown.length - last) * LINE}px` }} />
    </div>
  );
}

function Line(props: { at: number; row: number; part: PacketsPart; chosen: boolean; choose: (at: number) => void }) {
  const { at, row, part, chosen } = props;
  const { columns } = part;
  const disposition = part.header.dispositions[columns.disposition[row]];
  const bad = disposition?.is_failure || disposition?.is_loss;
  const count = (value: number) => (value === NO_PACKET ? "–" : whole(value));
  const time = (value: number) => (Number.isNaN(value) ? "–" : timeText(value));
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys of its lines
    <div
      role="row"
      id={`packet-${at}`}
      class={`line ${chosen ? "chosen" : ""} ${bad ? "bad" : ""}`}
      aria-rowindex={at + 2}
      aria-selected={chosen}
      onClick={() => props.choose(at)}
    >
      <span role="gridcell" class="number">
        {whole(columns.packet[row])}
      </span>
      <span role="gridcell" class="number">
        {whole(columns.size_bytes[row])} B
      </span>
      <span role="gridcell" class="text">
        {disposition?.name ?? "–"}
      </span>
      <span role="gridcell" class="number">
        {time(columns.settled_ps[row])}
      </span>
      <span role="gridcell" class="number">
        {time(columns.latency_ps[row])}
      </span>
      <span role="gridcell" class="number">
        {count(columns.core[row])}
      </span>
      <span role="gridcell" class="number">
        {count(columns.cycles[row])}
      </span>
    </div>
  );
}

function Detail(props: { page: Page; store: Store; part: PacketsPart }) {
  const { page, store, part } = props;
  const number = page.view.packet;
  if (number === undefined) return <p class="note">Choose a packet for its times and bytes.</p>;
  const row = part.columns.packet.indexOf(number);
  return (
    <>
      <h3>
        Packet {whole(number)}{" "}
        <button type="button" onClick={() => store.look({ tab: "timeline" })}>
          Show in the timeline
        </button>
      </h3>
      {row >= 0 && <Times part={part} row={row} />}
      {page.packet?.number === number ? (
        <Bytes packet={page.packet} />
      ) : (
        <p class={`note ${page.packetError ? "bad" : ""}`}>
          {page.packetError ?? (page.saved ? "A saved page has no bytes of packets." : "Reading its bytes …")}
        </p>
      )}
    </>
  );
}

function Times(props: { part: PacketsPart; row: number }) {
  const { columns } = props.part;
  const names = [
    ["sent_ps", "sent"],
    ["arrived_ps", "arrived"],
    ["start_ps", "handler begins"],
    ["end_ps", "handler ends"],
    ["settled_ps", "settled"],
  ] as const;
  const found = names.filter(([name]) => !Number.isNaN(columns[name][props.row]));
  const latency = columns.latency_ps[props.row];
  return (
    <dl class="times">
      {found.map(([name, title]) => (
        <div key={name}>
          <dt>{title}</dt>
          <dd>{timeText(columns[name][props.row])}</dd>
        </div>
      ))}
      {!Number.isNaN(latency) && (
        <div>
          <dt>latency</dt>
          <dd>{nanoseconds(latency / 1000)}</dd>
        </div>
      )}
    </dl>
  );
}

function Bytes(props: { packet: PacketAnswer }) {
  const { packet } = props;
  const [marked, setMarked] = useState<[number, number] | null>(null);
  const pairs = packet.bytes_hex.match(/../g) ?? [];
  const rows: string[][] = [];
  for (let at = 0; at < pairs.length; at += 16) rows.push(pairs.slice(at, at + 16));
  return (
    <>
      {packet.note && <p class="note">{packet.note}</p>}
      {packet.layers.map((layer) => (
        <details key={`${layer.name} ${layer.offset_bytes}`} open class="layer">
          <summary>
            {layer.name} <small>{layer.length_bytes} B</small>
          </summary>
          <dl>
            {layer.fields.map((field) => (
              <div
                key={`${field.name} ${field.offset_bytes}`}
                onPointerEnter={() => setMarked([field.offset_bytes, field.length_bytes])}
                onPointerLeave={() => setMarked(null)}
              >
                <dt>{field.name}</dt>
                <dd>{field.value}</dd>
              </div>
            ))}
          </dl>
        </details>
      ))}
      <pre class="hex" tabIndex={0} role="group" aria-label="Bytes of the packet">
        {rows.map((row, at) => (
          <span key={at}>
            <i>{(16 * at).toString(16).padStart(4, "0")}</i>
            {row.map((pair, column) => {
              const place = 16 * at + column;
              const inside = marked !== null && place >= marked[0] && place < marked[0] + marked[1];
              return (
                <b key={column} class={inside ? "marked" : ""}>
                  {` ${pair}`}
                </b>
              );
            })}
            {"\n"}
          </span>
        ))}
      </pre>
    </>
  );
}
