// The shown part of a timeline and the chosen event, and how keys and pointers change them.

import { AXIS, type Row, type View } from "./draw";
import { NO_PACKET, type Trace } from "./trace";

const LEAST_PS = 200;
const MARGIN = 0.1;

export class Navigation {
  view: View;
  event = -1;
  rows: Row[] = [];
  width = 800;
  height = 300;

  constructor(
    readonly trace: Trace,
    range: [number, number] | undefined,
    /** Is called after each change. */
    private readonly changed: () => void,
    private readonly chose: (packet: number | undefined) => void,
  ) {
    const [from, to] = range && range[0] < trace.end ? range : [0, trace.end];
    this.view = { from, to, top: 0 };
  }

  get gutter(): number {
    return this.width < 560 ? 84 : 132;
  }

  /** The shown times; undefined for the whole run. */
  get range(): [number, number] | undefined {
    const { from, to } = this.view;
    return from <= 0 && to >= this.trace.end ? undefined : [Math.round(from), Math.round(to)];
  }

  move(from: number, to: number, top = this.view.top): void {
    const last = this.rows.at(-1);
    const room = last ? last.top + last.height - (this.height - AXIS) : 0;
    const span = Math.min(Math.max(to - from, LEAST_PS), this.trace.end);
    const begin = Math.min(Math.max(from, 0), this.trace.end - span);
    this.view = { from: begin, to: begin + span, top: Math.min(Math.max(top, 0), Math.max(room, 0)) };
    this.changed();
  }

  scroll(by: number): void {
    this.move(this.view.from, this.view.to, this.view.top + by);
  }

  whole(): void {
    this.move(0, this.trace.end);
  }

  /** Zooms; the time `at` keeps its place. */
  zoom(factor: number, at = (this.view.from + this.view.to) / 2): void {
    const { from, to } = this.view;
    const span = Math.min(Math.max((to - from) / factor, LEAST_PS), this.trace.end);
    const share = (at - from) / (to - from);
    this.move(at - share * span, at + (1 - share) * span);
  }

  /** Moves by a share of the shown time. */
  pan(share: number, down = 0): void {
    const { from, to, top } = this.view;
    this.move(from + share * (to - from), to + share * (to - from), top + down);
  }

  fit(packet: number): void {
    const events = this.trace.ofPacket(packet);
    if (events.length === 0) return;
    const { start, length } = this.trace.columns;
    let from = Number.POSITIVE_INFINITY;
    let to = 0;
    for (const each of events) {
      from = Math.min(from, start[each]);
      to = Math.max(to, start[each] + length[each]);
    }
    const room = Math.max((to - from) * MARGIN, LEAST_PS);
    this.move(from - room, to + room);
  }

  /** Chooses an event and shows it. */
  choose(event: number): void {
    this.event = event;
    if (event < 0) {
      this.changed();
      return;
    }
    const { start, length, lane, packet } = this.trace.columns;
    const { from, to, top } = this.view;
    const row = this.rows.find((each) => each.lane === lane[event]);
    const lowest = this.height - AXIS;
    let newTop = top;
    if (row && row.top < top) newTop = row.top;
    if (row && row.top + row.height > top + lowest) newTop = row.top + row.height - lowest;
    const isSeen = start[event] >= from && start[event] + Math.min(length[event], to - from) <= to;
    const begin = isSeen ? from : start[event] + length[event] / 2 - (to - from) / 2;
    this.move(begin, begin + to - from, newTop);
    if (packet[event] !== NO_PACKET) this.chose(packet[event]);
  }

  /** Chooses the event of the lane that is `step` events further; without a chosen event, the first one in sight. */
  neighbour(step: number): void {
    const { trace } = this;
    if (this.event >= 0) {
      const lane = trace.columns.lane[this.event];
      const next = this.event + step;
      if (next >= trace.first[lane] && next < trace.first[lane + 1]) this.choose(next);
      return;
    }
    const row = this.rows.find(({ lane }) => lane >= 0 && trace.after(lane, this.view.to) > trace.first[lane]);
    if (row) this.choose(Math.max(trace.after(row.lane, this.view.from) - 1, trace.first[row.lane]));
  }

  /** Chooses the event at the same time in the next lane with events. */
  otherLane(step: number): void {
    const { trace } = this;
    const lanes = this.rows.filter((row) => row.lane >= 0).map((row) => row.lane);
    const time = this.event < 0 ? this.view.from : trace.columns.start[this.event];
    const at = this.event < 0 ? -1 : lanes.indexOf(trace.columns.lane[this.event]);
    for (let next = at + step; next >= 0 && next < lanes.length; next += step) {
      const lane = lanes[next];
      const [first, last] = [trace.first[lane], trace.first[lane + 1] - 1];
      if (last < first) continue;
      this.choose(Math.min(Math.max(trace.after(lane, time) - 1, first), last));
      return;
    }
  }

  timeAt(x: number): number {
    const { from, to } = this.view;
    return from + ((x - this.gutter) / Math.max(this.width - this.gutter, 1)) * (to - from);
  }

  rowAt(y: number): Row | undefined {
    const at = y - AXIS + this.view.top;
    return y < AXIS ? undefined : this.rows.find((row) => at >= row.top && at < row.top + row.height);
  }

  /** The event at a place of the picture, or within three pixels of it; -1 without one. */
  eventAt(x: number, y: number): number {
    const row = this.rowAt(y);
    if (!row || row.lane < 0 || x < this.gutter) return -1;
    const near = 3 * Math.abs(this.timeAt(1) - this.timeAt(0));
    return this.trace.at(row.lane, this.timeAt(x), near);
  }
}
