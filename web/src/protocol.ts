import type { CheckReport, LineRateReport, PointFailure, ProfileRow } from "./reports";

export type {
  CardPart,
  CheckReport,
  CheckedFrame,
  FailedPoint,
  Finding,
  FindingSide,
  HandlerFigures,
  LineRateReport,
  LineRateRow,
  PacketDispositions,
  PointFailure,
  ProfileRow,
  ProfiledBank,
  ProfiledFrame,
  ProfiledFunction,
  ProfiledInstruction,
  ProfiledLine,
  ProfiledLock,
  TrafficFigures,
} from "./reports";

export const TOKEN_PARAMETER = "token";
export const TOKEN_HEADER = "X-Nicety-Token";
export const SAVED_ELEMENT = "nicety-saved";

export const ROUTES = {
  state: "/api/state",
  program: "/api/program",
  card: "/api/card",
  uploads: "/api/uploads",
  socket: "/ws",
} as const;

export const CLOSE_CODES = {
  serverEnds: 1001,
  invalid: 1008,
  tooLarge: 1009,
} as const;

export const NO_PACKET = 0xffffffff;

export interface ErrorInfo {
  message: string;
  kind: "input" | "run";
  key?: string;
  line?: number;
  column?: number;
  diagnostics?: Diagnostic[];
}

export interface ErrorBody {
  error: ErrorInfo;
}

export interface Diagnostic {
  file: string;
  line: number;
  column: number;
  severity: "error" | "warning" | "note";
  message: string;
}

export interface Limits {
  works_per_connection: number;
  message_bytes: number;
  program_bytes: number;
  cards_per_request: number;
  upload_bytes: number;
  capture_packets: number;
  timeline_events: number;
  uploads: number;
}

export interface State {
  version: string;
  file: Program | null;
  library: LibraryProgram[];
  cards: CardName[];
  nics: string[];
  limits: Limits;
}

export interface LibraryProgram {
  name: string;
  cards: string[];
}

export interface CardName {
  name: string;
  title: string;
  design: string;
  takes_handlers: boolean;
}

export interface ProgramRequest {
  name: string;
}

export interface Program {
  origin: "library" | "file" | "page";
  name: string;
  text: string;
}

export interface CardRequest {
  nic: string;
  set?: string[];
}

export type ValueKind = "measured" | "documented" | "calibrated" | "assumed" | "user" | "override" | "default";

export interface CardValue {
  key: string;
  value: string;
  exact: string;
  quantity: string;
  unit: string | null;
  kind: ValueKind;
  source: string;
  doc: string;
  allowed: string | null;
  least: string | null;
  most: string | null;
  choices: string[] | null;
  note: string | null;
  against: string | null;
  replaces: string | null;
}

export interface Card {
  nic: string;
  name: string;
  title: string;
  design: string;
  paper: string | null;
  source: string | null;
  extends: string[];
  hash: string;
  takes_handlers: boolean;
  values: CardValue[];
  command: Command;
}

export interface Upload {
  upload: string;
  name: string;
  size_bytes: number;
  kept_bytes: number;
  packets: number;
  first_packets: FirstPacket[];
  duration_ns: number;
  truncated: boolean;
  note: string | null;
}

export interface FirstPacket {
  number: number;
  time_ns: number;
  size_bytes: number;
  summary: string;
}

export interface EqualTraffic {
  kind: "equal";
  packet_sizes_bytes?: number[];
  message_packets?: number;
  messages?: number;
}

export interface ExpressionTraffic {
  kind: "expression";
  expressions: string[];
}

export interface CaptureTraffic {
  kind: "capture";
  upload: string;
  rate?: string;
  packets?: number;
  cut?: boolean;
  loop?: boolean;
}

export type Traffic = EqualTraffic | ExpressionTraffic | CaptureTraffic;

export interface HandlerNames {
  header?: string;
  payload?: string;
  completion?: string;
}

export interface Input {
  program: Program;
  names?: HandlerNames;
  /** Macros: `NAME` or `NAME=VALUE`. */
  defines?: string[];
  nics: string[];
  set?: string[];
  traffic: Traffic;
  overload?: "wait" | "lossy" | "pfc";
  rules?: string[];
  state_bytes?: number;
  seed?: number;
}

export type Action = "run" | "profile" | "check";

export interface Start {
  type: "start";
  id: string;
  action: Action;
  input: Input;
  schedules?: number;
  sensitivity?: boolean;
}

export interface Cancel {
  type: "cancel";
  id: string;
}

export interface PacketRequest {
  type: "packet";
  id: string;
  work: string;
  number: number;
}

export type ClientMessage = Start | Cancel | PacketRequest;

export interface Command {
  text: string;
  note: string | null;
}

export interface Accepted {
  type: "accepted";
  id: string;
  command: Command;
}

export interface Progress {
  type: "progress";
  id: string;
  done: number;
  total: number;
  elapsed_ms: number;
}

export interface News {
  type: "news";
  id: string;
  text: string;
  place: string | null;
  verdict: "yes" | "no" | "not judged" | null;
  elapsed_ms: number;
}

export interface Output {
  type: "output";
  id: string;
  text: string;
}

export interface RunDone {
  type: "result";
  id: string;
  action: "run";
  result: RunResult;
  elapsed_ms: number;
}

export interface ProfileDone {
  type: "result";
  id: string;
  action: "profile";
  result: ProfileResult;
  elapsed_ms: number;
}

export interface CheckDone {
  type: "result";
  id: string;
  action: "check";
  result: CheckResult;
  elapsed_ms: number;
}

export interface Failed {
  type: "failed";
  id: string | null;
  error: ErrorInfo;
}

export interface Cancelled {
  type: "cancelled";
  id: string;
}

export interface Closing {
  type: "closing";
  reason: string;
}

export interface PacketAnswer {
  type: "packet";
  id: string;
  work: string;
  number: number;
  size_bytes: number;
  bytes_hex: string;
  layers: Layer[];
  note: string | null;
}

export interface Layer {
  name: string;
  offset_bytes: number;
  length_bytes: number;
  fields: LayerField[];
}

export interface LayerField {
  name: string;
  value: string;
  offset_bytes: number;
  length_bytes: number;
}

export type ServerMessage =
  | Accepted
  | Progress
  | News
  | Output
  | RunDone
  | ProfileDone
  | CheckDone
  | PacketAnswer
  | Failed
  | Cancelled
  | Closing;

export interface Sentences {
  nic: string;
  lines: string[];
}

export interface Histogram {
  nic: string;
  packets: number;
  edges_ns: number[];
  counts: number[];
}

export interface RunResult {
  ok: boolean;
  error: ErrorInfo | null;
  report: LineRateReport;
  sentences: Sentences[];
  text: string;
  latency: Histogram | null;
  command: Command;
}

export interface SourceFile {
  file: string;
  is_program: boolean;
  text: string;
}

export interface ProfileResult {
  ok: boolean;
  error: ErrorInfo | null;
  version: string;
  seed: number;
  rows: ProfileRow[];
  failures: PointFailure[];
  sources: SourceFile[];
  command: Command;
}

export interface CheckResult {
  ok: boolean;
  report: CheckReport;
  text: string;
  command: Command;
}

export type ColumnType = "u32" | "f64";

export interface Column {
  name: string;
  type: ColumnType;
  offset: number;
  length: number;
}

export interface Lane {
  name: string;
  group: string;
  node: string;
}

export interface TimelineHeader {
  id: string;
  part: "timeline";
  nic: string;
  point: string;
  rows: number;
  left_out: number;
  start_ps: number;
  end_ps: number;
  lanes: Lane[];
  labels: string[];
  columns: Column[];
}

export const TIMELINE_COLUMNS = {
  lane: "u32",
  start_ps: "f64",
  length_ps: "f64",
  label: "u32",
  packet: "u32",
} as const;

export interface Disposition {
  name: string;
  is_failure: boolean;
  is_loss: boolean;
  packets: number;
}

export interface PacketsHeader {
  id: string;
  part: "packets";
  nic: string;
  point: string;
  rows: number;
  left_out: number;
  dispositions: Disposition[];
  columns: Column[];
}

export const PACKET_COLUMNS = {
  packet: "u32",
  port: "u32",
  size_bytes: "u32",
  disposition: "u32",
  sent_ps: "f64",
  arrived_ps: "f64",
  start_ps: "f64",
  end_ps: "f64",
  settled_ps: "f64",
  latency_ps: "f64",
  core: "u32",
  cycles: "u32",
  instructions: "u32",
} as const;

export type BinaryHeader = TimelineHeader | PacketsHeader;
