// A page with its results as one file, which opens without a server and can only be read.

import { packed, packedBytes, unpacked, unpackedBytes } from "./hash";
import type { Columns } from "./link";
import type { Setup, View } from "./model";
import { type BinaryHeader, type PacketsHeader, SAVED_ELEMENT, type TimelineHeader } from "./protocol";
import { NOTHING_KEPT, type Page, type Results, traceOf } from "./store";

interface SavedPart {
  header: BinaryHeader;
  columns: Record<string, string>;
}

interface Saved {
  format: 1;
  page: string;
  timeline: SavedPart | null;
  packets: SavedPart | null;
}

type Kept = Pick<Page, "setup" | "view" | "card" | "server"> & { results: Omit<Results, "timeline" | "packets"> };

async function part(header: BinaryHeader, columns: Columns): Promise<SavedPart> {
  const letters: Record<string, string> = {};
  for (const [name, values] of Object.entries(columns)) {
    const bytes = new Uint8Array(values.buffer as ArrayBuffer, values.byteOffset, values.byteLength);
    letters[name] = await packedBytes(bytes);
  }
  return { header, columns: letters };
}

async function columnsOf(saved: SavedPart): Promise<Columns> {
  const columns: Columns = {};
  for (const { name, type } of saved.header.columns) {
    const { buffer } = await unpackedBytes(saved.columns[name]);
    columns[name] = type === "u32" ? new Uint32Array(buffer) : new Float64Array(buffer);
  }
  return columns;
}

/** The text of the file. */
export async function savedPage(page: Page): Promise<string> {
  const { timeline, packets, ...results } = page.results;
  // Results that wait for newer ones would be in the file twice.
  const own = { ...results, kept: NOTHING_KEPT };
  const kept: Kept = { setup: page.setup, view: page.view, card: page.card, server: page.server, results: own };
  const { trace } = timeline ?? {};
  const saved: Saved = {
    format: 1,
    page: await packed(kept),
    timeline:
      timeline && trace
        ? await part(timeline.header, {
            lane: trace.columns.lane,
            start_ps: trace.columns.start,
            length_ps: trace.columns.length,
            label: trace.columns.label,
            packet: trace.columns.packet,
          })
        : null,
    packets: packets ? await part(packets.header, packets.columns) : null,
  };
  const texts = ["./app.js", "./app.css", "./LICENCES.txt"].map(async (name) => (await fetch(name)).text());
  const [script, style, licences] = await Promise.all(texts);
  const data = JSON.stringify(saved).replaceAll("<", "\\u003c");
  // An end of a script inside of the script would end it.
  const safe = script.replaceAll("</script", "<\\/script");
  const notice = licences.replaceAll("</script", "");
  return [
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    "<title>nicety workbench</title><style>",
    style,
    '</style></head><body><div id="page"></div>\n',
    `<script type="text/plain" id="licences">${notice}</script>\n`,
    `<script type="application/json" id="${SAVED_ELEMENT}">${data}</script>\n<script>`,
    safe,
    "</script></body></html>\n",
  ].join("");
}

/** The page of a saved file; null where a server has sent the page. */
export function readSaved(): Promise<Partial<Page>> | null {
  const element = document.getElementById(SAVED_ELEMENT);
  if (!element?.textContent) return null;
  return restore(JSON.parse(element.textContent) as Saved);
}

async function restore(saved: Saved): Promise<Partial<Page>> {
  const kept = (await unpacked(saved.page)) as Kept | undefined;
  if (!kept) return { notice: { text: "This file is damaged: its results cannot be read.", error: true } };
  const results: Results = { ...kept.results, timeline: null, packets: null };
  if (saved.timeline) {
    const header = saved.timeline.header as TimelineHeader;
    results.timeline = { header, trace: traceOf(header, await columnsOf(saved.timeline)) };
  }
  if (saved.packets)
    results.packets = { header: saved.packets.header as PacketsHeader, columns: await columnsOf(saved.packets) };
  return { setup: kept.setup as Setup, view: kept.view as View, card: kept.card, server: kept.server, results };
}

/** Hands a text to the browser as a file. */
export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
