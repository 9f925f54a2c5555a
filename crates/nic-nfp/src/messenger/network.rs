//! The network side of a messenger: the card's forwarding processes, and the channels to them.

use crate::card::Card;
use crate::map::{self, MemoryKind};
use crate::messenger::envelope::LANES;
use crate::messenger::error::MessageError;
use crate::messenger::lanes::{CHUNK, Lanes};
use crate::messenger::mail::WINDOW;
use crate::{Memory, NfpSpec, Program, ProgramError};
use nicety_channels::Channel;
use nicety_kernel::{Server, Sim};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// These constants are equal to those in `forward.c`.
const SLOTS: u32 = 2;
const TOLD: u32 = 16;
const ENTRY: u32 = 64;
/// Number of microengines of the forwarding processes.
const MICROENGINES: usize = 4;
/// The first target of the messenger's channels.
const TARGETS: u32 = 0xffff_0000;
/// Maximum number of envelopes from one host in the card: messages, the same number of CTS, and credits.
const ENTRIES: u32 = 4 * WINDOW as u32;
/// Number of bytes that the forwarding microengines share. The first word is the number of frames that they refused.
const SHARED: u32 = 64;

const PROGRAM: &[u8] = include_bytes!("../forward.elf");

/// The program and the arguments of the card's forwarding processes.
struct Plan {
    program: Rc<Program>,
    /// The first microengine of the processes.
    first: usize,
    /// The address of the processes' memory in EMEM, and the offset of their shared bytes in EMEM.
    memory: u32,
    shared: u64,
    entries: u32,
}

impl Plan {
    /// Returns a plan with room for the envelopes of `peers` hosts or pairs of processes.
    fn new(program: Rc<Program>, spec: &NfpSpec, peers: u32) -> Result<Plan, ProgramError> {
        let size = spec.memory(MemoryKind::Emem).size;
        let entries = (u64::from(ENTRIES) * u64::from(peers)).next_power_of_two();
        let needed =
            u64::from(2 * LANES as u32 * SLOTS * (CHUNK + TOLD) + SHARED) + entries * u64::from(ENTRY);
        if needed > u64::from(size) {
            let (what, key) = ("bytes of EMEM", "memory.emem.size");
            return Err(ProgramError::Room { what, key, needed, there: size.into() });
        }
        let offset = (size - needed as u32) / 64 * 64;
        Ok(Plan {
            program,
            first: microengines(spec.cores).start,
            memory: map::EMEM + offset,
            shared: u64::from(offset) + needed - u64::from(SHARED),
            entries: entries as u32,
        })
    }
}

/// The channels to the card's forwarding processes.
pub(super) struct Network {
    plan: RefCell<Plan>,
    started: Cell<bool>,
    pub(super) out: Channel,
    pub(super) come: Channel,
    /// Serialises the threads that pass an envelope to the card.
    pub(super) turn: Server,
    pub(super) sending: Rc<Lanes>,
    pub(super) handing: Rc<Lanes>,
}

impl Network {
    pub(super) fn prepare(sim: &Sim, card: &Rc<Card>, ranks: u32) -> Result<Network, ProgramError> {
        let spec = card.spec();
        let program = Program::load(PROGRAM, spec)?;
        let channels = 2 + 2 * LANES as u64;
        for (what, key, needed, there) in [
            ("microengines", "hpu.cores", MICROENGINES as u64, spec.cores as u64),
            ("contexts of a microengine", "hpu.contexts", LANES as u64, spec.contexts as u64),
            ("channels", "limits.channels", channels, spec.channels.channels.into()),
            ("targets", "limits.targets", channels, spec.channels.targets.into()),
            // There is a thread for each channel, so that no message waits for the thread of another message.
            ("threads", "limits.threads", channels, spec.channels.threads.into()),
        ] {
            if needed > there {
                return Err(ProgramError::Room { what, key, needed, there });
            }
        }
        for (_, contexts) in processes() {
            program.stack(contexts.len())?;
            for (name, _) in contexts {
                program.image().require(name).map_err(ProgramError::Image)?;
            }
        }
        let plan = Plan::new(program, spec, ranks)?;
        let connect = |offset: u32| {
            let channel = card.connect(TARGETS + offset);
            let channel = channel.unwrap_or_else(|error| panic!("before all other channels: {error}"));
            card.leave_unrecorded(channel);
            channel
        };
        let (out, come) = (connect(0), connect(1));
        let lanes = |first: u32| Lanes::new(sim, (first..first + LANES as u32).map(connect).collect());
        Ok(Network {
            plan: RefCell::new(plan),
            started: Cell::new(false),
            out,
            come,
            turn: Server::new(sim),
            sending: lanes(2),
            handing: lanes(2 + LANES as u32),
        })
    }

    /// Makes room for the envelopes of `peers` peers. Call this method before the forwarding processes run.
    pub(super) fn have_room(&self, card: &Card, peers: u32) -> Result<(), ProgramError> {
        let program = self.plan.borrow().program.clone();
        self.plan.replace(Plan::new(program, card.spec(), peers)?);
        Ok(())
    }

    /// Whether the forwarding processes have started.
    pub(super) fn is_started(&self) -> bool {
        self.started.get()
    }

    /// Starts the forwarding processes, which must not be running. This takes no virtual time.
    ///
    /// # Errors
    /// When another process runs on the microengines of the forwarding processes.
    pub(super) fn start(&self, card: &Card) -> Result<(), MessageError> {
        let (plan, nfp) = (&*self.plan.borrow(), card.processor());
        let (first, last) = (plan.first, plan.first + MICROENGINES - 1);
        if let Some(number) = (first..=last).find(|&core| nfp.is_live(core)) {
            return Err(MessageError::Microengine { number, first, last });
        }
        self.started.set(true);
        let arguments = [TARGETS, plan.memory, plan.entries, first as u32];
        emem(card).poke(plan.shared, &[0; SHARED as usize]).expect("its memory is in EMEM");
        for (core, contexts) in processes() {
            nfp.load(first + core, &plan.program, contexts.len()).expect("looked at when it was prepared");
            for (context, (name, lane)) in contexts.into_iter().enumerate() {
                let entry = plan.program.image().require(name).expect("looked at when it was prepared");
                nfp.start(first + core, context, entry, &[&arguments[..], &[lane]].concat());
            }
        }
        card.forward_to(first);
        Ok(())
    }

    /// Returns the number of invalid frames that the forwarding processes dropped.
    pub(super) fn refused(&self, card: &Card) -> u64 {
        match self.is_started() {
            true => emem(card).peek_u32(self.plan.borrow().shared).expect("its memory is in EMEM").into(),
            false => 0,
        }
    }
}

/// Returns the microengines of the forwarding processes: the last four.
pub(super) fn microengines(cores: usize) -> Range<usize> {
    cores.saturating_sub(MICROENGINES)..cores
}

/// Returns the forwarding processes. Each item is the number of a microengine, and the function and lane of each
/// process on it.
fn processes() -> [(usize, Vec<(&'static str, u32)>); MICROENGINES] {
    let each = |name| (0..LANES as u32).map(|lane| (name, lane)).collect::<Vec<_>>();
    let port = vec![("forward_port", 0), ("forward_out", 0), ("forward_in", 0)];
    [(0, port), (1, each("forward_load")), (2, each("forward_send")), (3, each("forward_hand"))]
}

fn emem(card: &Card) -> &Memory {
    card.processor().memory(MemoryKind::Emem, 0)
}
