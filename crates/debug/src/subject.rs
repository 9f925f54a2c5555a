//! The program on a core or a context: a handler, or a process of a flow processor.

use crate::arch::Registers;
use nicety_hpu::Context;
use nicety_nic_nfp::observe::{ObservedProcess, Outer, Stack};
use nicety_nic_processors::hpus::Thread;
use nicety_nic_processors::map;
use nicety_nic_processors::observe::ObservedRun;
use std::fmt::Write;
use std::rc::Rc;

/// The regions that all cores share, by name.
const SHARED: [&str; 3] = ["the state", "the program's data", "program memory"];

/// The region that the contexts of a microengine share, and that of all processes of a program.
const LOCAL: &str = "the data in local memory";
const CODE: &str = "the code store";

/// The contexts of a microengine in the numbers of threads.
pub(crate) const CONTEXTS: usize = 8;

/// A process in the view of a debugger. Its registers and stack are those behind its last instructions.
pub(crate) struct ProcessView {
    pub(crate) process: Rc<ObservedProcess>,
    pub(crate) name: String,
    context: Context,
    stack: (u32, Vec<u8>),
    pub(crate) outer: Option<Outer>,
}

impl ProcessView {
    /// Returns the view of a process that begins.
    pub(crate) fn new(process: &Rc<ObservedProcess>) -> ProcessView {
        let source = process.image.sources(&[process.entry]).pop();
        let name = source.and_then(|source| source.function);
        let mut context = Context::new(0);
        context.set_pc(process.entry);
        ProcessView {
            process: process.clone(),
            name: name.unwrap_or_else(|| format!("at {:#010x}", process.entry)),
            context,
            stack: (0, Vec::new()),
            outer: None,
        }
    }

    /// Takes registers and stack behind instructions.
    pub(crate) fn rests(&mut self, context: &Context, stack: Stack<'_>) {
        self.context.clone_from(context);
        self.stack.0 = stack.base;
        self.stack.1.clear();
        self.stack.1.extend_from_slice(stack.bytes);
    }
}

/// A handler or a process.
pub(crate) enum Subject {
    Handler { thread: Rc<Thread>, run: ObservedRun },
    Process(Box<ProcessView>),
}

impl Subject {
    /// Returns its registers, if they can be read now.
    pub(crate) fn registers(&self) -> Option<Registers> {
        match self {
            Subject::Handler { thread, run } => {
                let state = thread.state.try_borrow().ok()?;
                let isa = &run.attachment.program.handlers.image.core().isa;
                Some(Registers::of(&state.context, isa))
            }
            Subject::Process(view) => Some(Registers::of(&view.context, &view.process.image.core().isa)),
        }
    }

    /// Whether a region of the stopped core, by its name, is also memory of this one.
    pub(crate) fn shares(&self, region: &str, stopped: &Subject) -> bool {
        match (self, stopped) {
            (Subject::Handler { run, .. }, Subject::Handler { run: other, .. }) => {
                Rc::ptr_eq(&run.attachment, &other.attachment) && SHARED.contains(&region)
            }
            (Subject::Process(view), Subject::Process(other)) => {
                let same = view.process.place.core == other.process.place.core;
                region == CODE || same && region == LOCAL
            }
            _ => false,
        }
    }

    /// Copies its stack, or for a process another memory, to `to`. Returns the number of bytes.
    pub(crate) fn read(&self, address: u64, to: &mut [u8]) -> usize {
        let mut copy = |bytes: Option<&[u8]>| {
            let bytes = bytes.unwrap_or_default();
            let len = bytes.len().min(to.len());
            to[..len].copy_from_slice(&bytes[..len]);
            len
        };
        let from = |bytes, offset: u64| <[u8]>::get(bytes, usize::try_from(offset).ok()?..);
        match self {
            Subject::Handler { thread, .. } => {
                let Ok(state) = thread.state.try_borrow() else { return 0 };
                let offset = address.checked_sub(map::STACK.into()).filter(|_| state.hardware.is_none());
                copy(offset.and_then(|offset| from(&state.stack, offset)))
            }
            Subject::Process(view) => {
                let offset = address.checked_sub(view.stack.0.into());
                match copy(offset.and_then(|offset| from(&view.stack.1, offset))) {
                    0 => self.read_outer(address, to),
                    len => len,
                }
            }
        }
    }

    /// Copies memory outside a microengine to `to`. Returns the number of bytes.
    pub(crate) fn read_outer(&self, address: u64, to: &mut [u8]) -> usize {
        match (self, u32::try_from(address)) {
            (Subject::Process(view), Ok(address)) => {
                view.outer.as_ref().map_or(0, |outer| outer.read(address, to))
            }
            _ => 0,
        }
    }

    /// The memories outside a microengine.
    pub(crate) fn outer(&self) -> Option<&Outer> {
        match self {
            Subject::Process(view) => view.outer.as_ref(),
            Subject::Handler { .. } => None,
        }
    }

    /// Describes it in a few words.
    pub(crate) fn about(&self) -> String {
        let run = match self {
            Subject::Handler { run, .. } => run,
            Subject::Process(view) => return format!("process {}", view.name),
        };
        let mut text = match run.attachment.program.handlers.of_frames {
            true => format!("frame handler, run {}, frame {}", run.number, run.message.sequence),
            false => format!("{}, run {}, message {}", run.kind.name(), run.number, run.message.sequence),
        };
        if let Some(offset) = run.packet.filter(|_| !run.attachment.program.handlers.of_frames) {
            let _ = write!(text, ", packet at {offset}");
        }
        text
    }

    /// Names the core, or the context.
    pub(crate) fn place(&self, core: usize) -> String {
        match self {
            Subject::Handler { .. } => format!("core {core}"),
            Subject::Process(_) => {
                format!("microengine {}, context {}", core / CONTEXTS, core % CONTEXTS)
            }
        }
    }
}
