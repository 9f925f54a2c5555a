// Reports. Generated from the types in Rust by
// NICETY_WRITE=1 cargo test --locked -p nicety-bench --test all -- typescript_types.

export interface Burst {
  burst_packets: number;
  departure_fraction: number | null;
  packets: number;
  stopped: string | null;
}

export interface CardManifest {
  spec_hash: string;
  title: string;
}

export interface CardPart {
  capacity_fraction: number | null;
  headroom: number;
  load: number;
  name: string | null;
  part: Part;
}

export interface CheckedFrame {
  file: string | null;
  function: string | null;
  line: number | null;
}

export interface DataCache {
  accesses: number;
  bypasses: number;
  cache_to_cache_transfers: number;
  hits: number;
  invalidations: number;
  level: string;
  lines: WaitingLine[];
  load: number;
  miss_rate: number | null;
  misses: number;
  stale_accesses: number;
  stale_lines: StaleLine[];
  wait_cycles: number;
  writebacks: number;
}

export interface EbpfCoreRow {
  bottleneck: XdpPart;
  cycles_mean: number;
  helper_cycles_mean: number;
  instructions_per_frame: number;
  instructions_per_row: number;
  lanes: number;
  latency: XdpLatency;
  lossless_pps: number | null;
  lost: number;
  nic: string;
  offered: number;
  offered_bytes: number;
  offered_pps: number;
  operations_per_row: number;
  parts: XdpPart[];
  program: string;
  rows: number;
  rows_per_frame: number;
  slots: number;
  slots_per_row: number;
  taken_pps: number;
  traffic: string;
  verdicts: Record<string, number>;
  waiting_cycles_mean: number;
}

export interface FailedPoint {
  kind: string;
  point: string;
  text: string;
}

export interface Finding {
  advice: string;
  at: FindingSide;
  kind: FindingKind;
  other: FindingSide | null;
  times: number;
}

export interface FindingCapture {
  file: string;
  kind: FindingKind;
  packets: number;
  place: CheckedFrame;
}

export type FindingKind = "uninitialised" | "out-of-bounds" | "write-while-sending" | "use-after-free" | "race" | "unlock-without-lock" | "double-lock" | "lock-kept" | "lock-order" | "buffer-reuse" | "long-send" | "return-code" | "division-by-zero" | "trap";

export interface FindingSide {
  action: string;
  handler: string;
  packet: number | null;
  pc: number;
  place: CheckedFrame;
  process: string | null;
  stack: CheckedFrame[];
}

export interface FlowProcessorRow {
  bottleneck: XdpPart;
  contexts: number;
  cycles_mean: number;
  instructions_per_frame: number;
  latency: XdpLatency;
  lossless_pps: number | null;
  lost: number;
  microengines: number;
  nic: string;
  offered: number;
  offered_bytes: number;
  offered_pps: number;
  parts: XdpPart[];
  references_per_frame: number;
  taken_pps: number;
  traffic: string;
  verdicts: Record<string, number>;
  xdp?: XdpFigures;
}

export interface Growth {
  first_ns: number;
  last_ns: number;
  mean_ns: number;
}

export interface HandlerFigures {
  cycles_max: number;
  cycles_mean: number;
  cycles_p99: number;
  handler: string;
  instructions_max: number;
  instructions_mean: number;
  instructions_p99: number;
  queued_ns_mean: number;
  returned: Record<string, number>;
  runs: number;
  time_ns_mean: number;
  time_ns_p99: number;
}

export interface HandlerLines {
  printed: number;
  suppressed: number;
}

export interface HandlerMemory {
  accesses: number;
  caches: DataCache[];
  fetch_wait_cycles: number;
  ideal: string[];
  ideal_cycles: string;
  instruction_cache_fills: number;
  levels: MemoryLevel[];
  shared_accesses: number;
  uncontended: string[];
}

export interface LineRateRow {
  bandwidth_bytes_per_s: number;
  bottleneck: Part;
  buffer_packets: number;
  buffer_packets_used: number;
  burst: Burst | null;
  capacity_fraction: number;
  cycles_mean: number | null;
  cycles_p99: number | null;
  growth: Growth | null;
  handler_budget_ns: number;
  handler_ns: number;
  handlers: HandlerFigures[];
  host_cpu_ns: number | null;
  hpus: number;
  hpus_needed: number | null;
  instructions_mean: number | null;
  instructions_p99: number | null;
  limited_by: Part | null;
  line_rate_fraction: number;
  line_rate_packets_per_s: number;
  loads: Loads;
  locks: Lock[];
  memory: HandlerMemory;
  message_packets: number;
  messages: number;
  nic: string;
  not_sustained_fraction: number | null;
  packet_bytes: number;
  packet_dispositions: PacketDispositions;
  packet_interval_ns: number;
  packet_wire_bytes: number;
  packets: number;
  packets_per_s: number;
  parts: CardPart[];
  reachable_fraction: number;
  refused_commands: RefusedCommand[];
  retries: Retries | null;
  sensitivity?: Sensitivity;
  sent_per_packet: number;
  sustained_fraction: number | null;
  sustains_line_rate: boolean;
  traffic?: TrafficFigures;
  trials: RateTrial[];
  unmodelled: Unmodelled | null;
  verdict: "yes" | "barely" | "not judged" | "no";
  xdp?: XdpFigures;
}

export interface Loads {
  bus_to_card: number;
  bus_to_host: number;
  cluster_dma: number | null;
  command_engine: number | null;
  contended_word: number;
  host: number | null;
  hpus: number;
  instruction_issue: number | null;
  link: number;
  lock: number;
  matching: number;
  memory_bank: number;
  memory_channel: number | null;
  packet_sender: number | null;
  packet_slots: number | null;
  packet_writer: number | null;
  packets_in_flight: number | null;
  send_engine: number | null;
}

export interface Lock {
  acquired_at: string;
  handover_ns: number;
  held_ns: number;
  load: number;
  max_packets_per_s: number;
  released_at: string | null;
  waited_at: string;
  waits: number;
  word: string;
}

export interface Manifest {
  compiler?: Record<string, ProgramManifest>;
  overrides: string[];
  specs: Record<string, CardManifest>;
}

export interface MemoryLevel {
  accesses: number;
  busiest: string;
  busiest_accesses: number;
  busiest_wait_cycles: number;
  level: string;
  lines: WaitingLine[];
  load: number;
  max_packets_per_s: number;
  wait_cycles: number;
}

export interface PacketDispositions {
  dropped: number;
  failed: number;
  proceeded: number;
  processed: number;
}

export type Part = "handler cores" | "instruction issue" | "matching unit" | "link" | "bus to card" | "bus to host" | "send engine" | "packet writer" | "cluster DMA" | "packet sender" | "command engine" | "memory channel" | "packets in flight" | "packet slots" | "lock" | "contended word" | "memory bank" | "cache misses" | "host" | "packet buffer" | "message contexts" | "waiting";

export interface PointFailure {
  kind: string;
  nic: string;
  point: string;
  rank: number;
  text: string;
  times: number;
}

export interface PortFigures {
  dropped_at_host: number;
  dropped_at_link: number;
  dropped_by_handler: number;
  dropped_by_overload: number;
  failed: number;
  handled: number;
  handled_bytes: number;
  latency_ns_max: number;
  latency_ns_mean: number;
  latency_ns_p50: number;
  latency_ns_p99: number;
  latency_ns_p999: number;
  offered: number;
  offered_bytes: number;
  offered_ns: number;
  passed: number;
  port: number;
  traffic: string;
}

export interface ProfileRow {
  banks: ProfiledBank[];
  card: ProfiledCard;
  causes: Record<string, number>;
  cycle_ns: number;
  cycles: number;
  cycles_mean: number;
  cycles_p99: number;
  executions: number;
  functions: ProfiledFunction[];
  instructions: ProfiledInstruction[];
  lines: ProfiledLine[];
  locks: ProfiledLock[];
  missing: string[];
  nic: string;
  packet_bytes: number;
  packets: number;
  paths: ProfiledPath[];
  place: string | null;
  processes: ProfiledProcess[];
  runs: number;
  sampled_runs: number;
  samples: ProfiledSample[];
}

export interface ProfiledBank {
  bank: number;
  cluster: number;
  data: string;
  level: string;
  wait_cycles: number;
  waits: number;
}

export interface ProfiledCard {
  cache_wait_cycles: number;
  cycles: number;
  fetch_wait_cycles: number;
  instructions: number;
  memory_wait_cycles: number;
  runs: number;
  stalled_cycles: number;
}

export interface ProfiledFrame {
  file: string | null;
  function: string | null;
  line: number | null;
}

export interface ProfiledFunction {
  causes: Record<string, number>;
  cycles: number;
  cycles_mean: number;
  cycles_p99: number;
  executions: number;
  function: string | null;
}

export interface ProfiledInstruction {
  address: number;
  causes: Record<string, number>;
  cycles: number;
  cycles_mean: number;
  cycles_p99: number;
  executions: number;
  frames: ProfiledFrame[];
  line: number;
  symbol: string | null;
  text: string;
}

export interface ProfiledLine {
  causes: Record<string, number>;
  cycles: number;
  cycles_mean: number;
  cycles_p99: number;
  executions: number;
  file: string | null;
  function: number;
  line: number | null;
}

export interface ProfiledLock {
  acquired_at: string;
  handover_cycles: number;
  held_cycles: number;
  released_at: string | null;
  variable: string | null;
  wait_cycles: number;
  waited_at: string;
  waits: number;
  word: string;
}

export interface ProfiledPath {
  address: number;
  caller: number | null;
  symbol: string | null;
}

export interface ProfiledProcess {
  context: number;
  cycles_asleep: number;
  cycles_computing: number;
  cycles_ready: number;
  function: string | null;
  instructions: number;
  microengine: number;
  processes: number;
  references: number;
}

export interface ProfiledSample {
  cycles: number;
  executions: number;
  instruction: number;
  path: number;
}

export interface ProgramManifest {
  flags: string[];
  sha256?: string;
  source?: string;
  sources?: SourceManifest[];
  version: string;
}

export interface RateTrial {
  above_wire_rate: boolean;
  bottleneck: Part | null;
  burst_packets: number;
  capacity_fraction: number | null;
  packets: number;
  rate_fraction: number;
  starved_ns: number | null;
  stopped: string | null;
  sustained: boolean;
  verdict: "yes" | "barely" | "not judged" | "no" | null;
}

export interface RefusedCommand {
  code: string;
  command: string;
  place: string;
  times: number;
}

export interface Retries {
  handover_ns: number;
  load: number;
  retried_at: string;
  retries_per_packet: number;
  update_ns: number;
  word: string;
}

export interface SearchReport {
  captures: FindingCapture[];
  packets: number;
  runs: number;
}

export interface SensitiveValue {
  doubled: VariedValue | null;
  halved: VariedValue | null;
  key: string;
  source: string;
  value: string;
}

export interface Sensitivity {
  not_varied: string[];
  stopped: StoppedValue[];
  values: SensitiveValue[];
  varied: number;
  varied_one_way: number;
}

export interface SourceManifest {
  sha256: string;
  source: string;
}

export interface StaleLine {
  accesses: number;
  line: string;
}

export interface StoppedValue {
  error: string;
  key: string;
  value: string;
}

export interface TrafficFigures {
  dropped_at_host: number;
  dropped_at_link: number;
  dropped_by_handler: number;
  dropped_by_overload: number;
  failed: number;
  handled: number;
  handled_bytes: number;
  latency_ns_max: number;
  latency_ns_mean: number;
  latency_ns_p50: number;
  latency_ns_p99: number;
  latency_ns_p999: number;
  loads_from_lossless_run: boolean;
  offered: number;
  offered_bytes: number;
  offered_ns: number;
  overload_policy: string;
  passed: number;
  paused_ns: number;
  ports?: PortFigures[];
  recorded_above_wire_rate: boolean;
  traffic: string;
  unknown_destination: number;
}

export interface Unmodelled {
  atomic_words: number;
  keys: string[];
  levels: string[];
  stored_words: number;
  word: string | null;
  word_accesses: number;
}

export interface VariedValue {
  bottleneck: Part;
  capacity_fraction: number;
  capacity_packets_per_s: number;
  value: string;
  verdict: "yes" | "barely" | "not judged" | "no";
}

export interface WaitingLine {
  line: string;
  wait_cycles: number;
  waits: number;
}

export interface XdpAborted {
  frames: number;
  place: string;
  program: string;
}

export interface XdpFigures {
  aborted_at: XdpAborted[];
  code_bytes: number;
  ebpf_instructions: number;
  invalid: number;
  map_bytes: Record<string, number>;
  program: string;
  redirects_failed: number;
  too_long: number;
  updates_full: Record<string, number>;
  verdicts: Record<string, number>;
}

export interface XdpLatency {
  max_ns: number;
  mean_ns: number;
  p50_ns: number;
  p999_ns: number;
  p99_ns: number;
}

export interface XdpPart {
  load: number;
  part: string;
}

export interface XdpPlace {
  bottleneck: string;
  bottleneck_load: number | null;
  cycles_mean: number | null;
  host_cpu_ns: number | null;
  lost: number;
  nic: string;
  offered_pps: number;
  packet_bytes: number;
  place: "card cores" | "eBPF core" | "microengines" | "host driver";
  processors: number;
  sustained_fraction: number;
  sustained_pps: number;
  verdicts: Record<string, number>;
}

export interface XdpReport {
  aborted: number;
  aborted_at: XdpAborted[];
  dropped: number;
  frames: number;
  helper_calls: number;
  inlined_calls: number;
  instructions: number;
  invalid: number;
  map_calls: number;
  passed: number;
  queue_full: number;
  redirected: number;
  second: number;
  second_dropped: number;
  transmit_full: number;
  transmitted: number;
  trapped: number;
  unreachable: number;
}

export interface XdpRow {
  bottleneck: XdpPart;
  cpu_ns_per_frame: number;
  cpus: number;
  instructions_per_frame: number;
  latency: XdpLatency;
  lossless_pps: number | null;
  lost: number;
  lost_before: number;
  mode: "native" | "generic";
  nic: string;
  offered: number;
  offered_bytes: number;
  offered_pps: number;
  parts: XdpPart[];
  taken_pps: number;
  traffic: string;
  verdicts: XdpReport;
}

export interface LineRateReport {
  benchmark: "handlers";
  drivers?: XdpRow[];
  ebpf_cores?: EbpfCoreRow[];
  failed_points?: FailedPoint[];
  failures: PointFailure[];
  flow_processors?: FlowProcessorRow[];
  handler_lines?: HandlerLines;
  manifest: Manifest;
  places?: XdpPlace[];
  rows: LineRateRow[];
  seed: number;
  version: string;
}

export interface ProfileReport {
  benchmark: "profile";
  failed_points?: FailedPoint[];
  failures: PointFailure[];
  handler_lines?: HandlerLines;
  manifest: Manifest;
  rows: ProfileRow[];
  seed: number;
  version: string;
}

export interface CheckReport {
  covered: number;
  failures: PointFailure[];
  findings: Finding[];
  fuzz?: SearchReport;
  instructions: number;
  missing: string[];
  nic: string;
  program?: string;
  runs: number;
  schedules: number;
  seed: number;
  version: string;
}
