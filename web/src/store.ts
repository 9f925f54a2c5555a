// The state of the page, and all that it does with the server. Views read the state and call these functions.

import { packed, unpacked } from "./hash";
import { type Columns, Link, Refused } from "./link";
import { inputOf, isSetup, kindOf, type Setup, START, TABS, type Tab, type View, type Work } from "./model";
import type {
  Action,
  BinaryHeader,
  Card,
  CheckResult,
  ErrorInfo,
  PacketAnswer,
  PacketsHeader,
  ProfileResult,
  RunResult,
  ServerMessage,
  Start,
  State,
  TimelineHeader,
} from "./protocol";
import { NO_PACKET } from "./protocol";
import { Trace } from "./timeline/trace";

export interface TimelinePart {
  header: TimelineHeader;
  trace: Trace;
}

export interface PacketsPart {
  header: PacketsHeader;
  columns: Columns;
}

export interface Results {
  run: Work<RunResult> | null;
  profile: Work<ProfileResult> | null;
  check: Work<CheckResult> | null;
  timeline: TimelinePart | null;
  packets: PacketsPart | null;
  /** The last run with another setup. */
  previous: { result: RunResult; what: string } | null;
  /** The last results, which stay in sight until the next ones are there. */
  kept: { run: RunResult | null; profile: ProfileResult | null; check: CheckResult | null };
}

/** The result that a view shows: that of the work, or while it runs the one before. */
export function shown<Name extends Action>(results: Results, name: Name): Results["kept"][Name] {
  const work = results[name];
  const result = work?.result ?? (work?.state === "running" ? results.kept[name] : null);
  return result as Results["kept"][Name];
}

export interface Page {
  ready: boolean;
  /** A saved file is only read. */
  saved: boolean;
  server: State | null;
  /** Words on the lost connection; null while it is open. */
  lost: string | null;
  setup: Setup;
  view: View;
  card: Card | null;
  cardError: ErrorInfo | null;
  results: Results;
  packet: PacketAnswer | null;
  packetError: string | null;
  notice: { text: string; error: boolean } | null;
  auto: boolean;
}

const LOST: Partial<Work<never>> = {
  state: "failed",
  error: { message: "The connection to the server was lost.", kind: "run" },
};
const AUTO_MS = 350;
const CARD_MS = 200;
export const NOTHING_KEPT: Results["kept"] = { run: null, profile: null, check: null };
const EMPTY: Results = {
  run: null,
  profile: null,
  check: null,
  timeline: null,
  packets: null,
  previous: null,
  kept: NOTHING_KEPT,
};

export class Store {
  page: Page;
  private readonly watchers = new Set<() => void>();
  private link: Link | undefined;
  private serial = 0;
  private readonly session = Math.random().toString(36).slice(2, 10);
  private autoTimer = 0;
  private cardTimer = 0;
  private addressTimer = 0;
  private cardAsked = 0;
  private wroteHash = "";
  private packetAsked = "";
  /** The works that the server does, and those that begin after them. */
  private readonly active = new Map<Action, string>();
  private readonly next = new Map<Action, Start>();
  /** The setup of the run, in words, for comparisons. */
  private readonly described = new Map<string, string>();

  constructor() {
    this.page = {
      ready: false,
      saved: false,
      server: null,
      lost: null,
      setup: { ...START, program: { origin: "page", name: "program.c", text: "" }, nics: [] },
      view: { tab: "verdict" },
      card: null,
      cardError: null,
      results: EMPTY,
      packet: null,
      packetError: null,
      notice: null,
      auto: true,
    };
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  change(part: Partial<Page>): void {
    this.page = { ...this.page, ...part };
    for (const watcher of this.watchers) watcher();
  }

  private results(part: Partial<Results>): void {
    this.change({ results: { ...this.page.results, ...part } });
  }

  // The start.

  async begin(token: string): Promise<void> {
    this.link = new Link(token, {
      message: (message) => this.hear(message),
      part: (header, columns) => this.part(header, columns),
      connected: () => this.change({ lost: null }),
      lost: (reason) => this.lose(reason),
    });
    let server: State;
    try {
      server = await this.link.state();
    } catch (error) {
      this.change({ ready: true, lost: words(error) });
      return;
    }
    const own = await unpacked(location.hash.slice(1));
    const kept = restored(own);
    const setup = kept?.setup ?? (await this.first(server));
    this.change({ ready: true, server, setup, view: kept?.view ?? this.page.view });
    this.link.connect();
    window.addEventListener("hashchange", () => void this.follow());
    this.askCard();
    this.run();
  }

  private async first(server: State): Promise<Setup> {
    const nics =
      server.nics.length > 0
        ? server.nics
        : server.cards.filter((card) => card.takes_handlers).map((card) => card.name);
    const nic = server.nics[0] ?? (nics.includes("spin-100g") ? "spin-100g" : nics[0]);
    const chosen = server.nics.length > 0 ? server.nics : [nic];
    if (server.file) return { ...START, program: server.file, nics: chosen };
    const kind = kindOf(server, nic);
    const fits = server.library.find((program) => program.cards.includes(kind)) ?? server.library[0];
    const program = fits ? await this.link?.program(fits.name) : undefined;
    return { ...START, program: program ?? this.page.setup.program, nics: chosen };
  }

  /** Shows a saved page. */
  show(part: Partial<Page>): void {
    this.change({ ...part, ready: true, saved: true, auto: false });
  }

  /** Takes over an address that was pasted or gone back to. */
  private async follow(): Promise<void> {
    const letters = location.hash.slice(1);
    if (letters === this.wroteHash) return;
    const kept = restored(await unpacked(letters));
    if (!kept) return;
    this.change({ setup: kept.setup, view: kept.view });
    this.askCard();
    this.run();
  }

  private keepAddress(): void {
    if (this.page.saved) return;
    clearTimeout(this.addressTimer);
    this.addressTimer = window.setTimeout(async () => {
      const { setup, view } = this.page;
      this.wroteHash = await packed({ setup, view });
      history.replaceState(null, "", `#${this.wroteHash}`);
    }, 250);
  }

  /** The address of the present state, without the token. */
  async address(): Promise<string> {
    const { setup, view } = this.page;
    const address = new URL(location.href);
    address.search = "";
    address.hash = await packed({ setup, view });
    return address.href;
  }

  // Changes of the setup.

  edit(part: Partial<Setup>): void {
    this.change({ setup: { ...this.page.setup, ...part } });
    this.keepAddress();
    if (part.nics || part.set) {
      clearTimeout(this.cardTimer);
      this.cardTimer = window.setTimeout(() => this.askCard(), CARD_MS);
    }
    clearTimeout(this.autoTimer);
    if (this.page.auto) this.autoTimer = window.setTimeout(() => this.run(), AUTO_MS);
  }

  look(part: Partial<View>): void {
    const before = this.page.view;
    this.change({ view: { ...before, ...part } });
    this.keepAddress();
    if (part.tab && part.tab !== before.tab) this.need(part.tab);
    if (part.packet !== undefined && part.packet !== before.packet) this.askPacket(part.packet);
  }

  async open(name: string): Promise<void> {
    try {
      const program = await this.link?.program(name);
      if (!program) return;
      const { server, setup } = this.page;
      const kinds = server?.library.find((each) => each.name === name)?.cards ?? [];
      const takes = (nic: string) => kinds.includes(kindOf(server, nic));
      const [first, ...others] = setup.nics;
      const other = takes(first) ? undefined : server?.cards.find((card) => card.takes_handlers && takes(card.name));
      const nics = other ? [other.name, ...others.filter((nic) => takes(nic) && nic !== other.name)] : setup.nics;
      this.edit({ program, ...(nics === setup.nics ? {} : { nics, set: {} }) });
    } catch (error) {
      this.tell(words(error), true);
    }
  }

  async upload(file: File): Promise<void> {
    const { traffic } = this.page.setup;
    this.tell(`Uploading ${file.name} …`);
    try {
      const upload = await this.link?.upload(file);
      if (!upload) return;
      this.tell(upload.note ?? "", false);
      this.edit({ traffic: { ...traffic, mode: "capture", capture: { ...traffic.capture, upload } } });
    } catch (error) {
      this.tell(`${file.name}: ${words(error)}`, true);
    }
  }

  tell(text: string, error = false): void {
    this.change({ notice: text ? { text, error } : null });
  }

  private async askCard(): Promise<void> {
    const { nics, set } = this.page.setup;
    if (!this.link || nics.length === 0) return;
    this.cardAsked += 1;
    const asked = this.cardAsked;
    const change = Object.entries(set).map(([key, value]) => `${key}=${value}`);
    try {
      const card = await this.link.card(nics[0], change);
      if (asked === this.cardAsked) this.change({ card, cardError: null });
    } catch (error) {
      if (asked !== this.cardAsked) return;
      const info: ErrorInfo = error instanceof Refused ? error.info : { message: words(error), kind: "run" };
      this.change({ cardError: info });
      // Without any values there is nothing to correct.
      if (!this.page.card || this.page.card.nic !== nics[0]) {
        const card = await this.link.card(nics[0], []).catch(() => null);
        if (card && asked === this.cardAsked) this.change({ card });
      }
    }
  }

  // Works.

  run(): void {
    clearTimeout(this.autoTimer);
    this.start("run");
    const tab = this.page.view.tab;
    if (tab !== "findings") this.need(tab);
  }

  /** Starts the work that a tab shows, if its result is out of date. */
  need(tab: Tab): void {
    const { profile } = this.page.results;
    if ((tab === "source" || tab === "instructions") && profile?.key !== this.key()) this.start("profile");
  }

  key(): string {
    const input = inputOf(this.page.setup);
    return typeof input === "string" ? "" : JSON.stringify(input);
  }

  start(action: Action): void {
    const input = inputOf(this.page.setup);
    if (typeof input === "string") {
      this.tell(input, true);
      return;
    }
    if (!this.link || this.page.saved) return;
    this.serial += 1;
    const id = `${this.session}-${this.serial}`;
    const key = JSON.stringify(input);
    this.described.set(id, describe(this.page.setup));
    const work = begun(id, action, key);
    if (action === "run") {
      const last = this.page.results.run;
      const isOther = last?.result && last.key !== key;
      const what = this.described.get(last?.id ?? "") ?? "";
      const previous = isOther && last.result ? { result: last.result, what } : this.page.results.previous;
      this.results({ run: work, previous });
      this.change({ notice: this.page.notice?.error ? null : this.page.notice, packet: null, packetError: null });
    } else if (action === "profile") this.results({ profile: work });
    else this.results({ check: work });
    this.send({ type: "start", id, action, input });
  }

  /** Starts a work when the server has ended the one before it: a quick series of changes is one work at a time. */
  private send(start: Start): void {
    const before = this.active.get(start.action);
    if (before === undefined) {
      if (this.link?.send(start)) this.active.set(start.action, start.id);
      else this.update(start.id, LOST);
      return;
    }
    if (!this.next.has(start.action)) this.link?.send({ type: "cancel", id: before });
    this.next.set(start.action, start);
  }

  private ended(id: string): void {
    for (const [action, active] of this.active) {
      if (active !== id) continue;
      this.active.delete(action);
      const next = this.next.get(action);
      this.next.delete(action);
      if (next) this.send(next);
    }
  }

  cancel(): void {
    clearTimeout(this.autoTimer);
    for (const work of this.works()) {
      if (work.state !== "running") continue;
      if (this.active.get(work.action) === work.id) this.link?.send({ type: "cancel", id: work.id });
      else {
        // It waits for the end of another one.
        this.next.delete(work.action);
        this.update(work.id, { state: "cancelled" });
      }
    }
  }

  private works(): Work<unknown>[] {
    const { run, profile, check } = this.page.results;
    return [run, profile, check].filter((work) => work !== null);
  }

  private lose(reason: string): void {
    this.active.clear();
    this.next.clear();
    for (const work of this.works()) if (work.state === "running") this.update(work.id, LOST);
    this.change({ lost: reason || "The server does not answer." });
  }

  private update(id: string, part: Partial<Work<never>>): void {
    for (const action of ["run", "profile", "check"] as const) {
      const work = this.page.results[action];
      if (work?.id === id) this.results({ [action]: { ...work, ...part } });
    }
  }

  private hear(message: ServerMessage): void {
    if (message.type === "packet") {
      if (message.id === this.packetAsked) this.change({ packet: message, packetError: null });
      return;
    }
    if (message.type === "closing") return;
    if (message.type === "failed" && (message.id === null || message.id === this.packetAsked)) {
      if (message.id === null) this.tell(message.error.message, true);
      else this.change({ packet: null, packetError: message.error.message });
      return;
    }
    const { id } = message;
    if (id === null) return;
    const work = this.works().find((each) => each.id === id);
    const isEnd = message.type === "result" || message.type === "failed" || message.type === "cancelled";
    if (isEnd) this.ended(id);
    if (!work) return;
    if (isEnd && work.action === "run") this.dropParts(id);
    if (message.type === "accepted") this.update(id, { command: message.command });
    else if (message.type === "progress")
      this.update(id, { done: message.done, total: message.total, elapsedMs: message.elapsed_ms });
    else if (message.type === "news") this.update(id, { news: [...work.news, message], elapsedMs: message.elapsed_ms });
    else if (message.type === "output") this.update(id, { output: work.output + message.text });
    else if (message.type === "cancelled") this.update(id, { state: "cancelled" });
    else if (message.type === "failed") this.update(id, { state: "failed", error: message.error });
    else this.finish(message);
  }

  /** Parts of an earlier run are no parts of one that has ended without its own. */
  private dropParts(id: string): void {
    const { timeline, packets } = this.page.results;
    this.results({
      timeline: timeline?.header.id === id ? timeline : null,
      packets: packets?.header.id === id ? packets : null,
    });
  }

  private finish(message: Extract<ServerMessage, { type: "result" }>): void {
    const { id, elapsed_ms: elapsedMs, result } = message;
    const error = "error" in result ? result.error : null;
    this.update(id, {
      state: error ? "failed" : "done",
      error,
      result: result as never,
      command: result.command,
      elapsedMs,
    });
    this.results({ kept: { ...this.page.results.kept, [message.action]: result } });
    const { packet } = this.page.view;
    if (message.action === "run" && packet !== undefined) this.askPacket(packet);
  }

  private part(header: BinaryHeader, columns: Columns): void {
    if (header.id !== this.page.results.run?.id) return;
    if (header.part === "packets") this.results({ packets: { header, columns } });
    else this.results({ timeline: { header, trace: traceOf(header, columns) } });
  }

  private askPacket(number: number): void {
    const work = this.page.results.run;
    if (!work || !this.link || number === NO_PACKET) return;
    if (this.page.saved) return;
    this.serial += 1;
    this.packetAsked = `${this.session}-${this.serial}`;
    this.change({ packet: null, packetError: null });
    this.link.send({ type: "packet", id: this.packetAsked, work: work.id, number });
  }
}

export function traceOf(header: TimelineHeader, columns: Columns): Trace {
  const names = { lane: "lane", start: "start_ps", length: "length_ps", label: "label", packet: "packet" } as const;
  const { lane, start, length, label, packet } = names;
  return new Trace(
    {
      lane: columns[lane] as Uint32Array,
      start: columns[start] as Float64Array,
      length: columns[length] as Float64Array,
      label: columns[label] as Uint32Array,
      packet: columns[packet] as Uint32Array,
    },
    header.lanes.length,
  );
}

function restored(value: unknown): { setup: Setup; view: View } | null {
  if (typeof value !== "object" || value === null) return null;
  const { setup, view } = value as { setup?: unknown; view?: Partial<View> };
  if (!isSetup(setup)) return null;
  const tab = TABS.some(([name]) => name === view?.tab) ? (view?.tab as Tab) : "verdict";
  // An address of before may lack options that the page has now.
  const options = { ...START.options, ...setup.options };
  return { setup: { ...setup, options }, view: { ...view, tab } };
}

function begun(id: string, action: Action, key: string): Work<never> {
  return {
    id,
    action,
    key,
    state: "running",
    done: 0,
    total: 0,
    news: [],
    output: "",
    command: null,
    error: null,
    result: null,
    elapsedMs: 0,
  };
}

/** A run in a few words. */
function describe(setup: Setup): string {
  const set = Object.entries(setup.set).map(([key, value]) => `${key}=${value}`);
  return [setup.program.name, setup.nics[0], ...set].join(", ");
}

export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
