import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { COLOURS, pixels } from "../colours";
import type { View as PageView } from "../model";
import type { TimelinePart } from "../store";
import { whole } from "../text";
import { type Look, Painter } from "./draw";
import { Navigation } from "./navigation";
import { Pointers, turn } from "./pointers";
import { rowsOf } from "./rows";
import { timeText } from "./time";
import { NO_PACKET } from "./trace";

const ZOOM = 1.5;
const PAN = 0.15;
const PAGE = 120;
/** The address follows the shown part when it has been still for this time. */
const STILL_MS = 300;

interface Props {
  part: TimelinePart;
  view: PageView;
  dark: boolean;
  onLook: (part: Partial<PageView>) => void;
}

export function Timeline(props: Omit<Props, "part"> & { part: TimelinePart | null }) {
  const { part } = props;
  if (!part) return <p class="note">The timeline comes with the run.</p>;
  // Another run has another state.
  return <Whole key={part.header.id} {...props} part={part} />;
}

function Whole(props: Props) {
  const { part, view, onLook } = props;
  const { header, trace } = part;
  const [, setSerial] = useState(0);
  const timer = useRef(0);
  const latest = useRef(onLook);
  latest.current = onLook;
  const navigation = useMemo(
    () =>
      new Navigation(
        trace,
        view.range,
        () => {
          setSerial((serial) => serial + 1);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => latest.current({ range: navigation.range }), STILL_MS);
        },
        (packet) => latest.current({ packet }),
      ),
    [trace],
  );
  const { packet } = view;
  return (
    <div class="timeline">
      <div class="tools">
        <button type="button" onClick={() => navigation.zoom(ZOOM)} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => navigation.zoom(1 / ZOOM)} aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={() => navigation.whole()}>
          Whole run
        </button>
        <button type="button" disabled={packet === undefined} onClick={() => navigation.fit(packet ?? 0)}>
          {packet === undefined ? "Packet" : `Packet ${packet}`}
        </button>
        {packet !== undefined && (
          <button type="button" onClick={() => onLook({ packet: undefined })}>
            All packets
          </button>
        )}
        <span class="faint">
          {whole(trace.count)} events
          {header.left_out > 0 && `; ${whole(header.left_out)} later ones are left out`}
        </span>
        <Legend names={header.labels} />
      </div>
      <Picture {...props} navigation={navigation} />
      <p class="chosen" id="timeline-event" aria-live="polite">
        {navigation.event >= 0
          ? eventText(part, navigation.event)
          : "No event is chosen: press one, or Shift and an arrow key in the timeline."}
      </p>
    </div>
  );
}

function Legend(props: { names: string[] }) {
  return (
    <ul class="legend" aria-label="Colours">
      {props.names.slice(0, COLOURS.length).map((name, at) => (
        <li key={name}>
          <i style={{ background: COLOURS[at] }} aria-hidden="true" />
          {name}
        </li>
      ))}
    </ul>
  );
}

function Picture(props: Props & { navigation: Navigation }) {
  const { part, navigation } = props;
  const { header, trace } = part;
  const { packet } = props.view;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const painter = useMemo(() => new Painter(), []);
  const pointers = useMemo(() => new Pointers(), []);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [tip, setTip] = useState<{ x: number; y: number; event: number } | null>(null);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const rows = useMemo(() => rowsOf(header.lanes, closed), [header, closed]);
  navigation.rows = rows;

  useEffect(() => {
    const around = box.current;
    if (!around) return;
    const seen = new ResizeObserver(() => setSize([around.clientWidth, around.clientHeight]));
    const wheel = (event: WheelEvent) => turn(event, navigation);
    seen.observe(around);
    // A listener of the page's library would be passive, and could not keep the page still.
    around.addEventListener("wheel", wheel, { passive: false });
    return () => {
      seen.disconnect();
      around.removeEventListener("wheel", wheel);
    };
  }, [navigation]);

  const look = useMemo(() => looks(props.dark, header.labels), [header, props.dark]);
  useEffect(() => {
    const at = canvas.current;
    const [width, height] = size;
    if (!at || width === 0) return;
    navigation.width = width;
    navigation.height = height;
    const frame = requestAnimationFrame(() => {
      const ratio = Math.min(window.devicePixelRatio || 1, 2);
      const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (at.width !== wide || at.height !== high) [at.width, at.height] = [wide, high];
      const context = at.getContext("2d", { alpha: false });
      const { gutter, view, event } = navigation;
      if (context) painter.paint(context, { trace, rows, view, look, packet, event, width, height, gutter, ratio });
    });
    return () => cancelAnimationFrame(frame);
  });

  const over = (event: PointerEvent) => {
    if (pointers.move(event, navigation)) return setTip(null);
    const found = navigation.eventAt(event.offsetX, event.offsetY);
    setTip(found < 0 ? null : { x: event.offsetX, y: event.offsetY, event: found });
  };
  const up = (event: PointerEvent) => {
    if (!pointers.release(event)) return;
    const row = navigation.rowAt(event.offsetY);
    if (row && row.lane < 0) {
      const next = new Set(closed);
      if (!next.delete(row.group)) next.add(row.group);
      setClosed(next);
    } else navigation.choose(navigation.eventAt(event.offsetX, event.offsetY));
  };
  return (
    <div class="canvas" ref={box}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="timeline"
        aria-label={`Timeline of ${header.nic}: arrow keys move, plus and minus zoom, Shift and arrow keys go from event to event`}
        aria-describedby="timeline-event"
        onKeyDown={(event) => press(event, navigation, packet)}
        onPointerDown={(event) => pointers.press(event)}
        onPointerMove={over}
        onPointerUp={up}
        onPointerCancel={(event) => pointers.cancel(event)}
        onPointerLeave={() => setTip(null)}
      />
      {tip && (
        <div
          class="tip"
          style={{ left: `${Math.max(Math.min(tip.x + 12, size[0] - 250), 0)}px`, top: `${tip.y + 14}px` }}
        >
          {eventText(part, tip.event)}
        </div>
      )}
    </div>
  );
}

function press(event: KeyboardEvent, navigation: Navigation, packet: number | undefined): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const acts: Record<string, () => void> = {
    ArrowLeft: () => (event.shiftKey ? navigation.neighbour(-1) : navigation.pan(-PAN)),
    ArrowRight: () => (event.shiftKey ? navigation.neighbour(1) : navigation.pan(PAN)),
    ArrowUp: () => navigation.otherLane(-1),
    ArrowDown: () => navigation.otherLane(1),
    "+": () => navigation.zoom(ZOOM),
    "=": () => navigation.zoom(ZOOM),
    "-": () => navigation.zoom(1 / ZOOM),
    Home: () => navigation.whole(),
    "0": () => navigation.whole(),
    PageUp: () => navigation.scroll(-PAGE),
    PageDown: () => navigation.scroll(PAGE),
    p: () => packet !== undefined && navigation.fit(packet),
  };
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function eventText(part: TimelinePart, event: number): string {
  const { lane, label, start, length, packet } = part.trace.columns;
  const { lanes, labels } = part.header;
  const of = packet[event] === NO_PACKET ? "" : `, packet ${packet[event]}`;
  return `${lanes[lane[event]].name}: ${labels[label[event]]}${of}, from ${timeText(start[event])}, for ${timeText(length[event])}`;
}

/** The colours of the page. They are read again for another theme. */
function looks(_dark: boolean, names: string[]): Look {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: of("--ink"),
    faint: of("--faint"),
    ground: of("--ground"),
    band: of("--line"),
    accent: of("--accent"),
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
    colours: pixels(names.length),
    names,
  };
}
