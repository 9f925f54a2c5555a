//! The results of a profile.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The cycles of an instruction, a line or a function, over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Cost {
    /// Instructions that were executed.
    pub executions: u64,
    /// Cycles of cores, waits included.
    pub cycles: u64,
    /// Cycles a packet.
    pub cycles_mean: f64,
    /// 99th percentile of the cycles of a run of a handler, by nearest rank, over the sampled runs of the handlers that reach it.
    pub cycles_p99: u64,
    /// The cycles by cause.
    pub causes: BTreeMap<&'static str, u64>,
}

/// A function at an instruction: an inlined one, or the one that has the instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledFrame")]
pub struct FrameRow {
    /// Its name, if the line tables have one.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

/// An instruction that was executed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledInstruction")]
pub struct InstructionRow {
    /// Its address in program memory.
    pub address: u32,
    /// Its text, such as `lw a0, 4(a1)`.
    pub text: String,
    /// The name of the function's symbol.
    pub symbol: Option<String>,
    /// The index of its line in `lines`.
    pub line: usize,
    /// The functions inlined there, the innermost first, and the function that has them. Empty without line tables.
    pub frames: Vec<FrameRow>,
    /// Its cycles.
    #[serde(flatten)]
    pub cost: Cost,
}

/// A line of the source. Functions of the headers of handlers count at the line that calls them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledLine")]
pub struct LineRow {
    /// The index of its function in `functions`.
    pub function: usize,
    /// The source file with the compiler's directory. None without line tables.
    pub file: Option<String>,
    /// The line, counted from 1.
    pub line: Option<u32>,
    /// Its cycles.
    #[serde(flatten)]
    pub cost: Cost,
}

/// A function, also one that is inlined in others. Its cycles are those of its own instructions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledFunction")]
pub struct FunctionRow {
    /// Its name. None where the program has neither line tables nor symbols for it.
    pub function: Option<String>,
    /// Its cycles.
    #[serde(flatten)]
    pub cost: Cost,
}

/// A function that another one has called, or the entry of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledPath")]
pub struct PathRow {
    /// The index of the caller's path. None for the entry of a run.
    pub caller: Option<u32>,
    /// The address of the function.
    pub address: u32,
    /// The name of its symbol.
    pub symbol: Option<String>,
}

/// The cycles of an instruction on a call path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledSample")]
pub struct SampleRow {
    /// The index of the path in `paths`.
    pub path: u32,
    /// The index of the instruction in `instructions`.
    pub instruction: usize,
    /// Its executions on this path.
    pub executions: u64,
    /// Its cycles on this path.
    pub cycles: u64,
}

/// The counters that the card itself keeps of its handlers, over the same run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledCard")]
pub struct CardRow {
    /// Runs of handlers.
    pub runs: u64,
    /// Cycles for which handlers held cores. For processes, the cycles of their contexts.
    pub cycles: u64,
    /// Instructions.
    pub instructions: u64,
    /// Cycles of waits for commands and transfers. For processes, cycles asleep.
    pub stalled_cycles: u64,
    /// Cycles of waits for banks.
    pub memory_wait_cycles: u64,
    /// Cycles of waits for code.
    pub fetch_wait_cycles: u64,
    /// Cycles of waits for lines of data caches.
    pub cache_wait_cycles: u64,
}

/// A word of memory that one handler at a time holds, and that handlers wait for. The cycles of a wait are also those of the
/// instructions that wait.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledLock")]
pub struct LockRow {
    /// The word, such as `byte 8 of the state`.
    pub word: String,
    /// The variable of the program, such as `table+8`, if it is in one.
    pub variable: Option<String>,
    /// The source line of the holder that acquires it.
    pub acquired_at: String,
    /// The source line of the holder that releases it, if it differs.
    pub released_at: Option<String>,
    /// The source line of the handlers that wait for it.
    pub waited_at: String,
    /// Number of waits.
    pub waits: u64,
    /// Cycles a packet of waits.
    pub wait_cycles: f64,
    /// Cycles a packet for which a handler holds it.
    pub held_cycles: f64,
    /// Cycles a packet for which it is free while a handler waits.
    pub handover_cycles: f64,
}

/// A bank of a level of memory for which handlers have waited, with the data in it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledBank")]
pub struct BankRow {
    /// The level, as the card's spec names it.
    pub level: &'static str,
    /// The cluster of the memory.
    pub cluster: usize,
    /// The number of the bank.
    pub bank: usize,
    /// The data: a variable such as `table+8`, `state+4`, or a piece of private memory such as `packet`.
    pub data: String,
    /// Accesses that waited.
    pub waits: u64,
    /// Cycles a packet of their waits.
    pub wait_cycles: f64,
}

/// The processes of a function on a context of a flow processor, with the card's own counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ProfiledProcess")]
pub struct ProcessRow {
    /// The name of the function.
    pub function: Option<String>,
    /// The number of the microengine.
    pub microengine: usize,
    /// The number of the context.
    pub context: usize,
    /// Number of processes.
    pub processes: u64,
    /// Cycles of instructions.
    pub cycles_computing: u64,
    /// Cycles of waits for a memory, a signal, a channel or the port.
    pub cycles_asleep: u64,
    /// Cycles of waits for the core, which ran other contexts.
    pub cycles_ready: u64,
    /// Instructions.
    pub instructions: u64,
    /// References to memories outside the core.
    pub references: u64,
}

/// The profile of handlers on a card, over a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProfileRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The rank and the number of the card, for processes.
    pub place: Option<String>,
    /// Payload bytes of a packet, or their mean. 0 for processes.
    pub packet_bytes: u64,
    /// Packets of the run. 1 for processes, so that means are sums over the run.
    pub packets: u64,
    /// Runs of handlers, or processes.
    pub runs: u64,
    /// Runs of the sample for percentiles: every n-th one.
    pub sampled_runs: u64,
    /// The duration of a cycle.
    pub cycle_ns: f64,
    /// Its cycles in all.
    #[serde(flatten)]
    pub cost: Cost,
    /// The card's own counters.
    pub card: CardRow,
    /// Functions, those with the most cycles first.
    pub functions: Vec<FunctionRow>,
    /// Lines, those with the most cycles first.
    pub lines: Vec<LineRow>,
    /// Instructions, by address.
    pub instructions: Vec<InstructionRow>,
    /// Call paths. A caller precedes its callees.
    pub paths: Vec<PathRow>,
    /// Cycles by call path and instruction.
    pub samples: Vec<SampleRow>,
    /// Words that handlers wait for, those with the longest waits first.
    pub locks: Vec<LockRow>,
    /// Banks that handlers wait for, those with the longest waits first. At most 32.
    pub banks: Vec<BankRow>,
    /// The processes of a flow processor. Empty for handlers.
    pub processes: Vec<ProcessRow>,
    /// Shortcomings of the program's file, and their effects on the profile.
    pub missing: Vec<String>,
}
