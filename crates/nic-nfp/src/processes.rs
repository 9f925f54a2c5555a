//! The processes on a node's microengines: loaded programs, started processes, and the outcomes of the processes.

use crate::observe::Observe;
use crate::{
    Card, ContextCounters, CoreCounters, MemoryKind, Messenger, MessengerCounters, Nfp, NfpSpec, Outcome,
    PortCounters, Program, ProgramError, ProgramProfile, QueueCounters,
};
use nicety_kernel::Sim;
use nicety_nic_core::{CardError, FailureKind, Pairs, ProgramFailure};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::iter;
use std::rc::Rc;

/// A compiled program of processes that fits the card's microengines. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Processes(pub Rc<Program>);

/// The place and the arguments of a process to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start<'s> {
    /// The name of the process's C function.
    pub name: &'s str,
    /// The microengine.
    pub microengine: usize,
    /// The context.
    pub context: usize,
    /// The number of contexts to prepare when the program is loaded. By default, these are all contexts of the
    /// microengine. The stacks of these contexts share the local memory that is left beside the program's data.
    pub contexts: Option<usize>,
    /// Arguments of the function, at most eight words.
    pub arguments: &'s [u32],
}

/// A started process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The process's microengine.
    pub microengine: usize,
    /// The process's context.
    pub context: usize,
    /// The number of earlier processes on the card.
    number: usize,
}

/// The outcome of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// The process's function returned this value.
    Returned(u32),
    /// The process trapped. The text has the reason, and the place in the source.
    Trapped(String),
}

/// A process on a context of a microengine. The context's cycles count from the beginning of the simulation, each with
/// one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProcessReport {
    /// The number of its context.
    pub context: usize,
    /// The last function started there.
    pub name: String,
    /// Its outcome. `None` while it runs.
    #[serde(flatten, serialize_with = "ending")]
    #[schemars(with = "Ending")]
    pub end: Option<ProcessEnd>,
    /// The context's cycles by cause, since the beginning of the simulation.
    #[serde(flatten)]
    pub counters: ContextCounters,
}

/// The end of a process in its report.
#[derive(Serialize, JsonSchema)]
struct Ending<'e> {
    /// The result of its function. `None` while it runs, or if it was stopped.
    returned: Option<u32>,
    /// The reason and line of a stop. `None` if it was not stopped.
    trapped: Option<&'e str>,
}

fn ending<S: Serializer>(end: &Option<ProcessEnd>, to: S) -> Result<S::Ok, S::Error> {
    let (returned, trapped) = match end {
        None => (None, None),
        Some(ProcessEnd::Returned(value)) => (Some(*value), None),
        Some(ProcessEnd::Trapped(why)) => (None, Some(why.as_str())),
    };
    Ending { returned, trapped }.serialize(to)
}

/// A microengine with a program. Its cycles count from the beginning of the simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MicroengineReport {
    /// Its number.
    pub microengine: usize,
    /// Its cycles by cause, since the beginning of the simulation.
    #[serde(flatten)]
    pub counters: CoreCounters,
    /// The contexts with a started process.
    pub processes: Vec<ProcessReport>,
}

/// Counters of a card's port, through which processes send frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PortReport {
    /// Counters over all queues.
    #[serde(flatten)]
    pub counters: PortCounters,
    /// Invalid frames and envelopes of messages between hosts.
    #[serde(flatten)]
    pub refused: MessengerCounters,
    /// The queues with traffic, by number.
    pub queues: Vec<QueueCounters>,
}

impl PortReport {
    /// Number of unusable frames and messages received.
    pub const fn unusable(&self) -> u64 {
        self.counters.damaged + self.refused.frames + self.refused.envelopes
    }
}

/// A part of a memory of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// The memory.
    pub kind: MemoryKind,
    /// The number of the island, if each island has its own memory of this kind. Otherwise 0.
    pub island: usize,
    /// Offset of the first byte in the memory.
    pub offset: u32,
    /// Length in bytes.
    pub bytes: u32,
}

impl CardMemory {
    /// Returns the part's address for processes.
    pub fn address(&self) -> u32 {
        self.kind.base() + self.offset
    }
}

/// The set-up of a microengine.
struct Loaded {
    program: Rc<Program>,
    contexts: usize,
}

/// The last process started on a context.
struct Started {
    name: String,
    number: usize,
}

/// The microengines of a card, and the processes that the host has started on them.
pub struct ProcessTable {
    sim: Sim,
    card: Rc<Card>,
    messenger: Rc<Messenger>,
    nfp: Rc<Nfp>,
    loaded: RefCell<Vec<Option<Loaded>>>,
    /// The last started process of each microengine and context.
    started: RefCell<Vec<Vec<Option<Started>>>>,
    count: RefCell<usize>,
    failures: Rc<RefCell<Vec<ProgramFailure>>>,
    /// The number of the card in its host.
    number: usize,
    /// The further cards of the host, if this is the first one.
    further: Vec<Rc<ProcessTable>>,
}

/// The error for messages between hosts.
fn unfit(error: &ProgramError) -> CardError {
    CardError::Input(format!("messages between hosts do not fit the card: {error}"))
}

impl ProcessTable {
    /// Returns the table of card `number` of a host, without processes. The processes that forward messages between ranks start with
    /// the first message.
    pub fn new(sim: &Sim, card: Rc<Card>, ranks: u32, number: usize) -> ProcessTable {
        let messenger = Messenger::install(sim, &card, ranks)
            .unwrap_or_else(|error| Messenger::unfit(sim, &card, ranks, unfit(&error)));
        let nfp = card.processor().clone();
        let NfpSpec { cores, contexts, .. } = *nfp.spec();
        ProcessTable {
            sim: sim.clone(),
            messenger,
            loaded: RefCell::new((0..cores).map(|_| None).collect()),
            started: RefCell::new((0..cores).map(|_| (0..contexts).map(|_| None).collect()).collect()),
            count: RefCell::new(0),
            failures: Rc::default(),
            number,
            further: Vec::new(),
            nfp,
            card,
        }
    }

    /// The first card of a host, followed by the host's further cards.
    pub fn with_further(self, further: Vec<Rc<ProcessTable>>) -> ProcessTable {
        ProcessTable { further, ..self }
    }

    /// The further cards of the host, from card 1 on.
    pub fn further(&self) -> &[Rc<ProcessTable>] {
        &self.further
    }

    /// This card and the host's further cards.
    pub fn all(&self) -> impl Iterator<Item = &ProcessTable> {
        iter::once(self).chain(self.further.iter().map(|table| &**table))
    }

    /// The number of the card in its host.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Returns the messenger of the card's host.
    pub(crate) const fn messenger(&self) -> &Rc<Messenger> {
        &self.messenger
    }

    /// Makes room in the card's memory for the messages of each pair of processes.
    ///
    /// # Errors
    /// When the card's memory is too small.
    pub(crate) fn have_pairs(&self, pairs: Pairs) -> Result<(), CardError> {
        self.messenger.have_pairs(pairs).map_err(|error| unfit(&error))
    }

    /// Returns the sends that wait for room at their receivers, for deadlock hints.
    pub fn blocked_sends(&self) -> Vec<String> {
        self.messenger.blocked_sends().iter().map(|blocked| blocked.text(None)).collect()
    }

    /// Returns the counters of the port.
    pub fn port(&self) -> PortReport {
        PortReport {
            counters: self.card.port_counters(),
            queues: self.card.queue_counters(),
            refused: self.messenger.counters(),
        }
    }

    /// Returns the card with its channels.
    pub fn card(&self) -> &Rc<Card> {
        &self.card
    }

    /// Returns the card's spec.
    pub fn spec(&self) -> &NfpSpec {
        self.nfp.spec()
    }

    /// Profiles the processes that start from now on, of this card.
    pub fn profile(&self) {
        self.nfp.profile();
    }

    /// Ends the profiles of this card, and returns them in the order of the programs' first processes.
    pub fn take_profiles(&self) -> Vec<ProgramProfile> {
        self.nfp.take_profiles()
    }

    /// Reports the instructions of all processes that start from now on to `observer`, of this card.
    pub fn observed_by(&self, observer: Rc<dyn Observe>) {
        self.nfp.observed_by(observer);
    }

    /// Starts a process. If the microengine has another program or another number of contexts, loads the program first.
    pub fn start(&self, processes: &Processes, start: &Start<'_>) -> Result<Process, CardError> {
        let Start { name, microengine, context, contexts, arguments } = *start;
        let spec = self.nfp.spec();
        let wrong = |text: String| Err(CardError::Input(text));
        below(microengine, spec.cores, "microengine", "hpu.cores")?;
        below(context, spec.contexts, "context", "hpu.contexts")?;
        if arguments.len() > ARGUMENTS {
            return wrong(format!(
                "{name}: a process has {ARGUMENTS} arguments at most, not {}; pass more in a memory of the card",
                arguments.len()
            ));
        }
        if self.messenger.is_started() && Messenger::microengines(spec.cores).contains(&microengine) {
            return wrong(format!(
                "{name}: microengines {} to {} forward messages between ranks already; start the process on \
                 another microengine",
                Messenger::microengines(spec.cores).start,
                spec.cores - 1
            ));
        }
        let entry = processes.0.image().require(name).map_err(|error| CardError::Input(error.to_string()))?;
        self.set_up(processes, microengine, contexts)?;
        let set_up = self.loaded.borrow()[microengine].as_ref().map_or(0, |loaded| loaded.contexts);
        if context >= set_up {
            return wrong(format!(
                "{name}: microengine {microengine} is set up for {set_up} contexts, and there is no context {context} \
                 among them; start its first process with contexts = {}",
                context + 1
            ));
        }
        if self.runs(microengine, context) {
            let running = self.name(microengine, context);
            return wrong(format!(
                "{name}: context {context} of microengine {microengine} runs {running}; there are {} contexts on {} \
                 microengines",
                spec.contexts, spec.cores
            ));
        }
        self.nfp.start(microengine, context, entry, arguments);
        let number = self.count.replace_with(|count| *count + 1);
        self.started.borrow_mut()[microengine][context] = Some(Started { name: name.to_owned(), number });
        self.watch(microengine, context, name);
        Ok(Process { microengine, context, number })
    }

    fn set_up(
        &self,
        processes: &Processes,
        microengine: usize,
        contexts: Option<usize>,
    ) -> Result<(), CardError> {
        let program = &processes.0;
        let input = |error: ProgramError| CardError::Input(error.to_string());
        if let Some(loaded) = &self.loaded.borrow()[microengine] {
            let same = Rc::ptr_eq(&loaded.program, program);
            if same && contexts.is_none_or(|contexts| contexts == loaded.contexts) {
                return Ok(());
            }
            if let Some(context) = (0..loaded.contexts).find(|&context| self.runs(microengine, context)) {
                let what = if same { "change its number of contexts" } else { "load another program" };
                return Err(CardError::Input(format!(
                    "microengine {microengine} cannot {what} while {} runs on its context {context}; start this process \
                     on another microengine",
                    self.name(microengine, context)
                )));
            }
        }
        let contexts = contexts.unwrap_or(self.nfp.spec().contexts);
        self.nfp.load(microengine, program, contexts).map_err(input)?;
        self.loaded.borrow_mut()[microengine] = Some(Loaded { program: program.clone(), contexts });
        self.started.borrow_mut()[microengine].iter_mut().for_each(|started| *started = None);
        Ok(())
    }

    fn runs(&self, microengine: usize, context: usize) -> bool {
        self.started.borrow()[microengine][context].is_some()
            && self.nfp.outcome(microengine, context).is_none()
    }

    fn name(&self, microengine: usize, context: usize) -> String {
        self.started.borrow()[microengine][context].as_ref().map(|s| s.name.clone()).unwrap_or_default()
    }

    /// Starts a task that records a failure if the process traps.
    fn watch(&self, microengine: usize, context: usize, name: &str) {
        let (sim, nfp, failures) = (self.sim.clone(), self.nfp.clone(), self.failures.clone());
        let process = self.describe(name, microengine, context);
        self.sim.spawn(async move {
            if let Err(failure) = nfp.finished(microengine, context).await {
                failures.borrow_mut().push(ProgramFailure {
                    kind: FailureKind::Trap,
                    time: sim.now(),
                    node: sim.node(),
                    hpu: None,
                    text: format!("{process}: {}", failure.trap),
                    times: 1,
                });
            }
        });
    }

    /// Waits until a process has ended, and returns the result of its function.
    pub async fn finished(&self, process: &Process) -> Result<u32, CardError> {
        let Process { microengine, context, number } = *process;
        let name = {
            let started = self.started.borrow();
            match &started[microengine][context] {
                Some(started) if started.number == number => started.name.clone(),
                _ => {
                    return Err(CardError::Failed(format!(
                        "another process was started on context {context} of microengine {microengine} since \
                         then; wait for a process before the next one starts"
                    )));
                }
            }
        };
        match self.nfp.finished(microengine, context).await {
            Ok(value) => Ok(value),
            Err(failure) => {
                let process = self.describe(&name, microengine, context);
                Err(CardError::Trapped(format!("{process}: {}", failure.trap)))
            }
        }
    }

    /// Checks that a part of a memory exists.
    pub fn check(&self, part: &CardMemory) -> Result<(), CardError> {
        let spec = self.nfp.spec();
        if part.kind.of_island() {
            below(part.island, spec.islands(), "island", "hpu.cores and hpu.island")?;
        } else if part.island != 0 {
            let name = part.kind.name();
            return Err(CardError::Input(format!("{name} is shared by all islands; leave the island out")));
        }
        let (end, size) = (u64::from(part.offset) + u64::from(part.bytes), spec.memory(part.kind).size);
        if end > u64::from(size) {
            let CardMemory { kind, offset, bytes, .. } = part;
            return Err(CardError::Input(format!(
                "{bytes} bytes at offset {offset} reach past the end of {}, which has {size} bytes (memory.{}.size)",
                kind.name(),
                kind.key()
            )));
        }
        Ok(())
    }

    /// Reads a part of a memory. This takes no virtual time.
    ///
    /// # Errors
    /// When the part reaches beyond the memory.
    pub fn read(&self, part: &CardMemory, bytes: &mut [u8]) -> Result<(), CardError> {
        let memory = self.nfp.memory(part.kind, part.island);
        memory.peek(part.offset.into(), bytes).map_err(|outside| CardError::Input(outside.to_string()))
    }

    /// Writes a part of a memory. This takes no virtual time.
    ///
    /// # Errors
    /// When the part reaches beyond the memory.
    pub fn write(&self, part: &CardMemory, bytes: &[u8]) -> Result<(), CardError> {
        let memory = self.nfp.memory(part.kind, part.island);
        memory.poke(part.offset.into(), bytes).map_err(|outside| CardError::Input(outside.to_string()))
    }

    /// Returns the failures of processes that trapped, on all cards of the host.
    pub fn failures(&self) -> Vec<ProgramFailure> {
        self.all().flat_map(|table| table.failures.borrow().clone()).collect()
    }

    /// Names a process and its place. Of a further card, the place includes the card.
    fn describe(&self, name: &str, microengine: usize, context: usize) -> String {
        let card = match self.number {
            0 => String::new(),
            number => format!("card {number}, "),
        };
        format!("process {name} on {card}microengine {microengine}, context {context}")
    }

    /// Describes the state of each context's last process, for deadlock hints.
    pub fn doings(&self) -> Vec<String> {
        let started = self.started.borrow();
        let mut found = Vec::new();
        for (microengine, contexts) in started.iter().enumerate() {
            for (context, started) in contexts.iter().enumerate() {
                let Some(Started { name, .. }) = started else { continue };
                let what = match self.nfp.outcome(microengine, context) {
                    None => self.nfp.doing(microengine, context),
                    Some(Outcome::Returned(value)) => format!("has returned {}", value as i32),
                    // Traps are left out, because `failures` reports them.
                    Some(Outcome::Trapped(_)) => continue,
                };
                found.push(format!("{}, {what}", self.describe(name, microengine, context)));
            }
        }
        found
    }

    /// Returns the reports of the microengines with a program.
    pub fn microengines(&self) -> Vec<MicroengineReport> {
        let loaded = self.loaded.borrow();
        let used = (0..loaded.len()).filter(|&microengine| loaded[microengine].is_some());
        let report = |microengine| MicroengineReport {
            microengine,
            counters: self.nfp.core_counters(microengine),
            processes: self.processes(microengine),
        };
        used.map(report).collect()
    }

    fn processes(&self, microengine: usize) -> Vec<ProcessReport> {
        let started = self.started.borrow();
        let of = |(context, started): (usize, &Option<Started>)| {
            started.as_ref().map(|started| ProcessReport {
                context,
                name: started.name.clone(),
                end: self.nfp.outcome(microengine, context).map(|outcome| match outcome {
                    Outcome::Returned(value) => ProcessEnd::Returned(value),
                    Outcome::Trapped(trap) => ProcessEnd::Trapped(trap.to_string()),
                }),
                counters: self.nfp.context_counters(microengine, context),
            })
        };
        started[microengine].iter().enumerate().filter_map(of).collect()
    }
}

/// Maximum number of arguments of a process: the registers in which C passes arguments.
const ARGUMENTS: usize = 8;

fn below(number: usize, count: usize, what: &str, key: &str) -> Result<(), CardError> {
    if number < count {
        return Ok(());
    }
    Err(CardError::Input(format!(
        "there is no {what} {number}; the card has {what}s 0 to {} ({key})",
        count - 1
    )))
}
