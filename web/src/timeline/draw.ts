// Draws a part of a trace. A lane with many events in sight is a row of pixels, which is stretched to the height of the
// lane. Other lanes are boxes with their names.

import { Raster } from "./raster";
import { timeText, unitOf } from "./time";
import type { Trace } from "./trace";

export interface View {
  /** The first and the last time, in ps. */
  from: number;
  to: number;
  /** The scrolled distance, in pixels. */
  top: number;
}

export interface Row {
  /** -1 for the heading of a group. */
  lane: number;
  name: string;
  group: string;
  top: number;
  height: number;
}

export interface Look {
  ink: string;
  faint: string;
  ground: string;
  band: string;
  accent: string;
  font: string;
  /** A colour for each label, as 0xBBGGRR. */
  colours: Uint32Array;
  names: string[];
}

/** Everything that a picture shows, and its size in pixels of the page. */
export interface Scene {
  trace: Trace;
  rows: Row[];
  view: View;
  look: Look;
  packet: number | undefined;
  event: number;
  width: number;
  height: number;
  /** The width of the names of lanes. */
  gutter: number;
  ratio: number;
}

export const AXIS = 22;
const LABEL_ROOM = 46;
/** A lane with more boxes than this share of its pixels is drawn as a row of pixels. */
const BOXES = 1 / 12;

export class Painter {
  private readonly raster = new Raster();
  private readonly strip = document.createElement("canvas");

  paint(context: CanvasRenderingContext2D, scene: Scene): void {
    const { width, height, gutter, ratio, look, rows, view } = scene;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = look.ground;
    context.fillRect(0, 0, width, height);
    const shown = rows.filter((row) => row.top + row.height > view.top && row.top < view.top + height - AXIS);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height - AXIS);
    context.clip();
    names(context, scene, shown);
    grid(context, scene);
    context.beginPath();
    context.rect(gutter, AXIS, Math.max(width - gutter, 1), height - AXIS);
    context.clip();
    this.lanes(context, scene, shown);
    if (scene.packet !== undefined) packet(context, scene, scene.packet);
    if (scene.event >= 0) outline(context, scene);
    context.restore();
    axis(context, scene);
  }

  private lanes(context: CanvasRenderingContext2D, scene: Scene, rows: Row[]): void {
    const { trace, view, look, gutter } = scene;
    const plot = Math.max(scene.width - gutter, 1);
    const columns = Math.max(Math.round(plot * scene.ratio), 1);
    const step = (view.to - view.from) / columns;
    const dense: Row[] = [];
    // The events of a chosen packet are drawn above the others.
    context.globalAlpha = scene.packet === undefined ? 1 : 0.3;
    for (const row of rows) {
      if (row.lane < 0) continue;
      const from = Math.max(trace.after(row.lane, view.from) - 1, trace.first[row.lane]);
      const to = trace.after(row.lane, view.to);
      if (to - from > columns * BOXES) dense.push(row);
      else boxes(context, scene, row, from, to);
    }
    if (dense.length > 0) {
      const lanes = dense.map((row) => row.lane);
      const pixels = this.raster.draw(trace, lanes, view.from, step, columns, look.colours);
      this.strip.width = columns;
      this.strip.height = dense.length;
      this.strip.getContext("2d")?.putImageData(pixels, 0, 0, 0, 0, columns, dense.length);
      context.imageSmoothingEnabled = false;
      dense.forEach((row, at) => {
        const top = AXIS + row.top - view.top;
        context.drawImage(this.strip, 0, at, columns, 1, gutter, top + 1, plot, row.height - 2);
      });
    }
    context.globalAlpha = 1;
  }
}

/** The place of an event in the picture: left end and width. */
function place(scene: Scene, event: number, least: number): [number, number] {
  const { view, gutter, width, trace } = scene;
  const scale = Math.max(width - gutter, 1) / (view.to - view.from);
  const { start, length } = trace.columns;
  return [gutter + (start[event] - view.from) * scale, Math.max(length[event] * scale, least)];
}

function names(context: CanvasRenderingContext2D, scene: Scene, rows: Row[]): void {
  const { look, width, gutter, view } = scene;
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const row of rows) {
    const top = AXIS + row.top - view.top;
    const isHeading = row.lane < 0;
    context.font = isHeading ? `600 ${look.font}` : look.font;
    if (isHeading) {
      context.fillStyle = look.band;
      context.fillRect(0, top, width, row.height);
    }
    context.fillStyle = isHeading ? look.ink : look.faint;
    context.fillText(shortened(context, row.name, (isHeading ? width : gutter) - 14), 8, top + row.height / 2);
  }
}

function boxes(context: CanvasRenderingContext2D, scene: Scene, row: Row, from: number, to: number): void {
  const { look, view, gutter, width, trace } = scene;
  const { label } = trace.columns;
  const top = AXIS + row.top - view.top;
  context.font = look.font;
  for (let event = from; event < to; event += 1) {
    const [begin, wide] = place(scene, event, 1);
    const left = Math.max(begin, gutter - 2);
    const right = Math.min(begin + wide, width + 2);
    if (right < gutter) continue;
    const gap = right - left > 3 ? 0.5 : 0;
    const colour = look.colours[label[event]];
    context.fillStyle = hex(colour);
    context.fillRect(left, top + 1, right - left - gap, row.height - 2);
    if (right - left > LABEL_ROOM) {
      context.fillStyle = isDark(colour) ? "#fff" : "#111";
      context.fillText(
        shortened(context, look.names[label[event]], right - left - 8),
        left + 4,
        top + row.height / 2 + 0.5,
      );
    }
  }
}

function packet(context: CanvasRenderingContext2D, scene: Scene, number: number): void {
  const { trace, rows, view, look, width, gutter } = scene;
  const places = new Map(rows.map((row) => [row.lane, row]));
  const { lane, label } = trace.columns;
  for (const event of trace.ofPacket(number)) {
    const row = places.get(lane[event]);
    const [left, wide] = place(scene, event, 2);
    if (!row || left > width || left + wide < gutter) continue;
    const top = AXIS + row.top - view.top;
    context.fillStyle = hex(look.colours[label[event]]);
    context.fillRect(left, top + 1, wide, row.height - 2);
    context.strokeStyle = look.ink;
    context.lineWidth = 1;
    context.strokeRect(left - 0.5, top + 0.5, wide + 1, row.height - 1);
  }
}

function outline(context: CanvasRenderingContext2D, scene: Scene): void {
  const { trace, rows, view, look, event } = scene;
  const row = rows.find((each) => each.lane === trace.columns.lane[event]);
  if (!row) return;
  const [left, wide] = place(scene, event, 3);
  context.strokeStyle = look.accent;
  context.lineWidth = 2;
  context.strokeRect(left - 1, AXIS + row.top - view.top, wide + 2, row.height);
}

/** The marked times, their unit and their digits. */
function marks(scene: Scene) {
  const { view, gutter, width } = scene;
  const step = tick((view.to - view.from) / Math.max((width - gutter) / 110, 1));
  const scale = (width - gutter) / (view.to - view.from);
  const unit = unitOf(Math.max(view.to, step));
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit.ps) - 1e-9));
  const found: { x: number; text: string }[] = [];
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const x = Math.round(gutter + (time - view.from) * scale) + 0.5;
    found.push({ x, text: timeText(time, digits, unit) });
  }
  return found;
}

function grid(context: CanvasRenderingContext2D, scene: Scene): void {
  context.strokeStyle = scene.look.band;
  context.lineWidth = 1;
  context.beginPath();
  for (const { x } of marks(scene)) {
    context.moveTo(x, AXIS);
    context.lineTo(x, scene.height);
  }
  context.stroke();
}

function axis(context: CanvasRenderingContext2D, scene: Scene): void {
  const { look, gutter, width, height } = scene;
  context.font = look.font;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.strokeStyle = look.band;
  context.lineWidth = 1;
  context.fillStyle = look.faint;
  context.beginPath();
  for (const { x, text } of marks(scene)) {
    context.moveTo(x, AXIS - 4);
    context.lineTo(x, AXIS);
    if (x + 3 + context.measureText(text).width < width) context.fillText(text, x + 3, AXIS / 2);
  }
  context.moveTo(0, AXIS - 0.5);
  context.lineTo(width, AXIS - 0.5);
  context.moveTo(gutter - 0.5, AXIS);
  context.lineTo(gutter - 0.5, height);
  context.stroke();
}

function tick(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10);
}

const fitted = new Map<string, string>();
const MOST_FITTED = 5000;

/** A text that fits into a width. Measuring is slow, so that results are kept. */
function shortened(context: CanvasRenderingContext2D, text: string, room: number): string {
  const key = `${text}\n${Math.floor(room / 4)}\n${context.font}`;
  let found = fitted.get(key);
  if (found === undefined) {
    found = text;
    while (found.length > 1 && context.measureText(found).width > room) found = `${found.slice(0, -2)}…`;
    if (fitted.size > MOST_FITTED) fitted.clear();
    fitted.set(key, found);
  }
  return found;
}

const hexes = new Map<number, string>();

function hex(colour: number): string {
  let found = hexes.get(colour);
  if (found === undefined) {
    const parts = [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
    found = `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
    hexes.set(colour, found);
  }
  return found;
}

function isDark(colour: number): boolean {
  return 0.3 * (colour & 255) + 0.59 * ((colour >> 8) & 255) + 0.11 * ((colour >> 16) & 255) < 140;
}
