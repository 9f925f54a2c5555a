// Events of a run in typed arrays, ordered by lane and start, with a pyramid of bins for each lane. The pyramid makes
// the cost of a picture depend on its pixels, and not on the number of events.

export interface Columns {
  lane: Uint32Array;
  start: Float64Array;
  length: Float64Array;
  label: Uint32Array;
  packet: Uint32Array;
}

/** The value of `packet` for an event of no packet. */
export const NO_PACKET = 0xffffffff;

/** A level of a lane's pyramid: the busy share of each bin, and the label of its longest event. */
interface Level {
  busy: Float32Array;
  label: Uint32Array;
}

const FEWEST_BINS = 64;
const MOST_BINS = 1 << 18;

export class Trace {
  readonly count: number;
  readonly end: number;
  /** Events of lane `at` are those from `first[at]` up to `first[at + 1]`. */
  readonly first: Uint32Array;
  readonly columns: Columns;
  private readonly pyramids: (Level[] | undefined)[];
  private packetOrder: Uint32Array | undefined;

  constructor(columns: Columns, lanes: number) {
    this.columns = ordered(columns, lanes);
    this.count = columns.start.length;
    this.first = offsets(this.columns.lane, lanes);
    let end = 0;
    const { start, length } = this.columns;
    for (let at = 0; at < this.count; at += 1) end = Math.max(end, start[at] + length[at]);
    this.end = end || 1;
    this.pyramids = new Array(lanes).fill(undefined);
  }

  /** The first event of a lane that starts behind `time`. */
  after(lane: number, time: number): number {
    let low = this.first[lane];
    let high = this.first[lane + 1];
    const { start } = this.columns;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (start[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The event of a lane at `time`, or within `near` of it; -1 without one. */
  at(lane: number, time: number, near: number): number {
    const next = this.after(lane, time);
    const { start, length } = this.columns;
    const before = next - 1;
    if (before >= this.first[lane] && start[before] + length[before] + near >= time) return before;
    if (next < this.first[lane + 1] && start[next] - near <= time) return next;
    return -1;
  }

  /** Events of a packet, in the order of lanes. */
  ofPacket(packet: number): Uint32Array {
    this.packetOrder ??= byPacket(this.columns.packet);
    const order = this.packetOrder;
    const ids = this.columns.packet;
    let low = 0;
    let high = order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ids[order[middle]] < packet) low = middle + 1;
      else high = middle;
    }
    let last = low;
    while (last < order.length && ids[order[last]] === packet) last += 1;
    return order.subarray(low, last);
  }

  /** The level of a lane's pyramid with the widest bins of at most `width` ps, and their number. */
  level(lane: number, width: number): Level {
    this.pyramids[lane] ??= this.pyramid(lane);
    const levels = this.pyramids[lane];
    const wanted = Math.ceil(this.end / width);
    let at = levels.length - 1;
    while (at > 0 && levels[at].busy.length < wanted) at -= 1;
    return levels[at];
  }

  /** Builds all pyramids, so that the first pictures are as quick as the later ones. */
  prepare(): void {
    for (let lane = 0; lane < this.pyramids.length; lane += 1) this.level(lane, this.end);
  }

  private pyramid(lane: number): Level[] {
    const from = this.first[lane];
    const to = this.first[lane + 1];
    let bins = FEWEST_BINS;
    while (bins < to - from && bins < MOST_BINS) bins *= 2;
    const finest = this.finest(from, to, bins);
    const levels = [finest];
    while (levels[levels.length - 1].busy.length > FEWEST_BINS) levels.push(coarser(levels[levels.length - 1]));
    return levels;
  }

  private finest(from: number, to: number, bins: number): Level {
    const { start, length, label } = this.columns;
    const busy = new Float32Array(bins);
    const most = new Float32Array(bins);
    const labels = new Uint32Array(bins);
    const width = this.end / bins;
    for (let at = from; at < to; at += 1) {
      const begin = start[at] / width;
      const stop = Math.min((start[at] + length[at]) / width, bins);
      const last = Math.min(Math.max(Math.ceil(stop) - 1, Math.floor(begin)), bins - 1);
      for (let bin = Math.floor(begin); bin <= last; bin += 1) {
        // An event of no length is seen, too.
        const share = Math.max(Math.min(stop, bin + 1) - Math.max(begin, bin), 1e-3);
        busy[bin] += share;
        if (share > most[bin]) {
          most[bin] = share;
          labels[bin] = label[at];
        }
      }
    }
    return { busy, label: labels };
  }
}

function coarser(level: Level): Level {
  const bins = level.busy.length / 2;
  const busy = new Float32Array(bins);
  const label = new Uint32Array(bins);
  for (let at = 0; at < bins; at += 1) {
    const left = level.busy[2 * at];
    const right = level.busy[2 * at + 1];
    busy[at] = (left + right) / 2;
    label[at] = level.label[left >= right ? 2 * at : 2 * at + 1];
  }
  return { busy, label };
}

function offsets(lane: Uint32Array, lanes: number): Uint32Array {
  const first = new Uint32Array(lanes + 1);
  for (let at = 0; at < lane.length; at += 1) first[lane[at] + 1] += 1;
  for (let at = 0; at < lanes; at += 1) first[at + 1] += first[at];
  return first;
}

function ordered(columns: Columns, lanes: number): Columns {
  const { lane, start } = columns;
  const count = start.length;
  let sorted = true;
  for (let at = 1; at < count && sorted; at += 1)
    sorted = lane[at - 1] < lane[at] || (lane[at - 1] === lane[at] && start[at - 1] <= start[at]);
  if (sorted) return columns;
  const place = offsets(lane, lanes);
  const ends = place.slice(1);
  const order = new Uint32Array(count);
  for (let at = 0; at < count; at += 1) order[place[lane[at]]++] = at;
  for (let at = 0, from = 0; at < lanes; from = ends[at], at += 1)
    order.subarray(from, ends[at]).sort((one, other) => start[one] - start[other]);
  const moved: Columns = {
    lane: new Uint32Array(count),
    start: new Float64Array(count),
    length: new Float64Array(count),
    label: new Uint32Array(count),
    packet: new Uint32Array(count),
  };
  for (const name of ["lane", "start", "length", "label", "packet"] as const)
    for (let at = 0; at < count; at += 1) moved[name][at] = columns[name][order[at]];
  return moved;
}

function byPacket(packet: Uint32Array): Uint32Array {
  const order = new Uint32Array(packet.length);
  for (let at = 0; at < order.length; at += 1) order[at] = at;
  return order.sort((one, other) => packet[one] - packet[other] || one - other);
}
