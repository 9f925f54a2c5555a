// The state of the page: the setup that a run takes, and the view of its results. Both are in the address.

import type { Action, ErrorInfo, HandlerNames, Input, News, Program, State, Traffic, Upload } from "./protocol";

export interface Form {
  protocol: "udp" | "tcp";
  sizes: "fixed" | "range" | "imix";
  size: string;
  rate: "wire" | "Gbps" | "Mpps";
  rateValue: string;
  arrivals: "paced" | "poisson" | "burst";
  burst: string;
  packets: string;
  flows: string;
  zipf: string;
  src: string;
  dst: string;
  sport: string;
  dport: string;
}

export interface TrafficSetup {
  mode: "form" | "expression" | "capture" | "equal";
  form: Form;
  expression: string;
  capture: { upload: Upload | null; rate: string; cut: boolean };
  equal: { sizes: string; messagePackets: string; messages: string };
}

/** Options of the program, as the user types them. */
export interface Options {
  header: string;
  payload: string;
  completion: string;
  /** Macros, separated by spaces. */
  defines: string;
  /** Steering rules, one a line. */
  rules: string;
  state: string;
}

export interface Setup {
  program: Program;
  options: Options;
  nics: string[];
  set: Record<string, string>;
  traffic: TrafficSetup;
  overload: "wait" | "lossy" | "pfc";
  seed: number;
}

/**
 * The kind of programs that a card takes: its design, or its name where handlers are written for an interface of its
 * own.
 */
export function kindOf(server: State | null, nic: string | undefined): string {
  const card = server?.cards.find((each) => each.name === nic);
  const own = server?.library.some((program) => program.cards.includes(card?.name ?? ""));
  return (own ? card?.name : card?.design) ?? "";
}

export const TABS = [
  ["verdict", "Verdict"],
  ["source", "Source"],
  ["instructions", "Instructions"],
  ["timeline", "Timeline"],
  ["packets", "Packets"],
  ["latency", "Latency"],
  ["compare", "Compare"],
  ["findings", "Findings"],
] as const;

export type Tab = (typeof TABS)[number][0];

export interface View {
  tab: Tab;
  packet?: number;
  /** The shown time of the timeline, in ps. */
  range?: [number, number];
}

export const START: Omit<Setup, "program" | "nics"> = {
  options: { header: "", payload: "", completion: "", defines: "", rules: "", state: "" },
  set: {},
  traffic: {
    mode: "form",
    form: {
      protocol: "udp",
      sizes: "fixed",
      size: "60",
      rate: "wire",
      rateValue: "10",
      arrivals: "paced",
      burst: "32",
      packets: "10k",
      flows: "",
      zipf: "",
      src: "10.0.0.0/8",
      dst: "",
      sport: "",
      dport: "",
    },
    expression: "",
    capture: { upload: null, rate: "wire", cut: false },
    equal: { sizes: "64", messagePackets: "", messages: "" },
  },
  overload: "wait",
  seed: 1,
};

/** The traffic expression of a form. */
export function expression(form: Form): string {
  const words: string[] = [form.protocol];
  const pair = (key: string, value: string) => {
    if (value.trim()) words.push(`${key}=${value.trim()}`);
  };
  pair("src", form.src);
  pair("dst", form.dst);
  pair("sport", form.sport);
  pair("dport", form.dport);
  pair("flows", form.flows);
  pair("zipf", form.zipf);
  pair("size", form.sizes === "imix" ? "imix" : form.size);
  pair("rate", form.rate === "wire" ? "wire" : `${form.rateValue}${form.rate}`);
  if (form.rate !== "wire" && form.arrivals !== "paced")
    pair("arrivals", form.arrivals === "burst" ? `burst:${form.burst}` : form.arrivals);
  pair("packets", form.packets);
  return words.join(" ");
}

function numbers(text: string): number[] {
  return text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number)
    .filter((value) => Number.isFinite(value));
}

function count(text: string): number | undefined {
  return numbers(text)[0];
}

/** The traffic that a run takes, or words on the missing part. */
export function trafficOf(setup: TrafficSetup): Traffic | string {
  if (setup.mode === "form") return { kind: "expression", expressions: [expression(setup.form)] };
  if (setup.mode === "expression") {
    const lines = setup.expression.split("\n").map((line) => line.trim());
    const expressions = lines.filter(Boolean);
    return expressions.length > 0 ? { kind: "expression", expressions } : "Write a traffic expression.";
  }
  if (setup.mode === "capture") {
    const { upload, rate, cut } = setup.capture;
    if (!upload) return "Choose or drop a capture.";
    return { kind: "capture", upload: upload.upload, rate, ...(cut ? { cut } : {}) };
  }
  const sizes = numbers(setup.equal.sizes);
  const messagePackets = count(setup.equal.messagePackets);
  const messages = count(setup.equal.messages);
  return {
    kind: "equal",
    ...(sizes.length > 0 ? { packet_sizes_bytes: sizes } : {}),
    ...(messagePackets ? { message_packets: messagePackets } : {}),
    ...(messages ? { messages } : {}),
  };
}

/** The fields of the input for the options that the user wrote. */
function optionsOf(options: Options): Pick<Input, "names" | "defines" | "rules" | "state_bytes"> {
  const names: HandlerNames = {};
  for (const kind of ["header", "payload", "completion"] as const)
    if (options[kind].trim()) names[kind] = options[kind].trim();
  const defines = options.defines.split(/\s+/).filter(Boolean);
  const rules = options.rules
    .split("\n")
    .map((rule) => rule.trim())
    .filter(Boolean);
  const state = count(options.state);
  return {
    ...(Object.keys(names).length > 0 ? { names } : {}),
    ...(defines.length > 0 ? { defines } : {}),
    ...(rules.length > 0 ? { rules } : {}),
    ...(state !== undefined ? { state_bytes: state } : {}),
  };
}

/** The input of a run, or words on the missing part. */
export function inputOf(setup: Setup): Input | string {
  const traffic = trafficOf(setup.traffic);
  if (typeof traffic === "string") return traffic;
  if (!setup.program.text.trim()) return "Write a program, or choose one of the library.";
  if (setup.nics.length === 0) return "Choose a card.";
  const set = Object.entries(setup.set).map(([key, value]) => `${key}=${value}`);
  return {
    program: setup.program,
    ...optionsOf(setup.options),
    nics: setup.nics,
    ...(set.length > 0 ? { set } : {}),
    traffic,
    // Equal packets are sent with credits.
    ...(setup.overload === "wait" || traffic.kind === "equal" ? {} : { overload: setup.overload }),
    seed: setup.seed,
  };
}

/** A work of the server for the page. */
export interface Work<Result> {
  id: string;
  action: Action;
  /** The input as text: a result with another key is out of date. */
  key: string;
  state: "running" | "done" | "failed" | "cancelled";
  done: number;
  total: number;
  news: News[];
  output: string;
  command: { text: string; note: string | null } | null;
  error: ErrorInfo | null;
  result: Result | null;
  elapsedMs: number;
}

export function isSetup(value: unknown): value is Setup {
  if (typeof value !== "object" || value === null) return false;
  const found = value as Partial<Setup>;
  return (
    typeof found.program?.text === "string" &&
    typeof found.program.name === "string" &&
    Array.isArray(found.nics) &&
    typeof found.set === "object" &&
    typeof found.traffic?.mode === "string" &&
    typeof found.traffic.form === "object" &&
    typeof found.traffic.capture === "object" &&
    typeof found.traffic.equal === "object"
  );
}
