// Lanes as rows of pixels. A lane with many events for each pixel is read from its pyramid. With a few events for each
// pixel, it is read event by event, which is exact.

import type { Trace } from "./trace";

/** Above this number of events for each pixel, the pyramid is quicker. */
const PYRAMID = 4;
/** A short event among idle time stays visible. */
const LEAST_ALPHA = 40;

export class Raster {
  private pixels: ImageData | undefined;
  private share = new Float32Array();
  private best = new Float32Array();
  private name = new Uint32Array();

  /** The rows of lanes, from the time `from` on, with `step` ps for each of `columns` pixels. */
  draw(trace: Trace, lanes: number[], from: number, step: number, columns: number, colours: Uint32Array): ImageData {
    if (!this.pixels || this.pixels.width !== columns || this.pixels.height < lanes.length)
      this.pixels = new ImageData(columns, Math.max(lanes.length, 64));
    if (this.share.length !== columns) {
      this.share = new Float32Array(columns);
      this.best = new Float32Array(columns);
      this.name = new Uint32Array(columns);
    }
    const data = new Uint32Array(this.pixels.data.buffer);
    lanes.forEach((lane, at) => {
      const first = Math.max(trace.after(lane, from) - 1, trace.first[lane]);
      const last = trace.after(lane, from + step * columns);
      if (last - first > PYRAMID * columns) this.bins(trace, lane, from, step);
      else this.events(trace, first, last, from, step);
      for (let x = 0, out = at * columns; x < columns; x += 1, out += 1) {
        const share = this.share[x];
        const alpha = Math.round(LEAST_ALPHA + (255 - LEAST_ALPHA) * Math.min(share, 1));
        data[out] = share > 0 ? ((alpha << 24) | colours[this.name[x]]) >>> 0 : 0;
      }
    });
    return this.pixels;
  }

  private bins(trace: Trace, lane: number, from: number, step: number): void {
    const { busy, label } = trace.level(lane, step);
    const perBin = busy.length / trace.end;
    for (let x = 0; x < this.share.length; x += 1) {
      const begin = Math.max(Math.floor((from + x * step) * perBin), 0);
      const stop = Math.min(Math.max(Math.floor((from + (x + 1) * step) * perBin), begin + 1), busy.length);
      let share = 0;
      let best = 0;
      for (let bin = begin; bin < stop; bin += 1) {
        share += busy[bin];
        if (busy[bin] > best) {
          best = busy[bin];
          this.name[x] = label[bin];
        }
      }
      this.share[x] = share / Math.max(stop - begin, 1);
    }
  }

  private events(trace: Trace, first: number, last: number, from: number, step: number): void {
    const { start, length, label } = trace.columns;
    const { share, best, name } = this;
    share.fill(0);
    best.fill(0);
    for (let event = first; event < last; event += 1) {
      const begin = Math.max((start[event] - from) / step, 0);
      const stop = Math.min((start[event] + length[event] - from) / step, share.length);
      const end = Math.min(Math.max(Math.ceil(stop), Math.floor(begin) + 1), share.length);
      for (let x = Math.floor(begin); x < end; x += 1) {
        const part = Math.max(Math.min(stop, x + 1) - Math.max(begin, x), 1e-3);
        share[x] += part;
        if (part > best[x]) {
          best[x] = part;
          name[x] = label[event];
        }
      }
    }
  }
}
