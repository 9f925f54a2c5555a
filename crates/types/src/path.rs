//! A [`Path`] partitions the time from an origin to now into stages.
//!
//! A path follows the critical path forwards. Each step of a process advances its path; where another part of the
//! same message released the step (the packet before on the link, the last packet of a message), the process
//! continues from that part's path; where it waited for a resource that another message held, the wait is the
//! queued part of that stage. So a path's stages always add up exactly, and cost no memory a step.
//!
//! Few runs read the stages. A path that is only a [clock](Path::clock) has its begin and end, which models need,
//! and no stages; nor have paths that continue from it.

use crate::{Duration, Time};
use std::cell::RefCell;
use std::sync::Arc;

macro_rules! stages {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A part of a message's latency: work, or waiting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Stage { $($(#[$doc])* $name),* }

        impl Stage {
            /// All stages, in the order in which a message usually meets them.
            pub const ALL: &'static [Stage] = &[$(Stage::$name),*];

            /// The name, as it stands in tables and JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Stage::$name => $text),* }
            }
        }
    };
}

stages! {
    /// The program computes.
    Compute = "compute";
    /// The program waits for a CPU of its host.
    CpuQueued = "cpu, queued";
    /// Background noise holds the CPU that the program is on.
    Noise = "noise";
    /// A library's own work on the host's CPU: finding a pointer, looking for a process.
    Library = "library";
    /// The host's CPU enters the operating system's kernel, and leaves it.
    SystemCall = "system call";
    /// The host's CPU copies between a program's memory and memory that the card may use.
    Copy = "copy";
    /// The kernel locks pages in memory and translates their addresses for the card.
    Pin = "pin";
    /// A driver's own work on the host's CPU: mailboxes, page lists, doorbells.
    Driver = "driver";
    /// The host's CPU posts a command.
    Post = "post";
    /// A command and its payload cross the host bus to the card.
    Bus = "bus";
    /// Waiting for the host bus.
    BusQueued = "bus, queued";
    /// A manager of the card moves a channel's mailbox, or has it moved.
    Manager = "manager";
    /// Waiting for a manager.
    ManagerQueued = "manager, queued";
    /// The card's control program processes it.
    Control = "control program";
    /// Waiting for the card's control program.
    ControlQueued = "control program, queued";
    /// A DMA channel is set up.
    DmaSetup = "dma set-up";
    /// Waiting for a DMA channel.
    DmaQueued = "dma, queued";
    /// The card fetches from host memory: request and data.
    Fetch = "fetch";
    /// Waiting for the bus to host memory.
    FetchQueued = "fetch, queued";
    /// Waiting for the send engine: another message, or the gap between messages.
    SendQueued = "send, queued";
    /// Serialisation and flight on a link.
    Link = "link";
    /// Waiting for the link, or for a credit of the receiver.
    LinkQueued = "link, queued";
    /// Reliable transport: a packet is checked, or its acknowledgement is in flight.
    Transport = "transport";
    /// Waiting for room among the packets that are not acknowledged yet.
    TransportQueued = "transport, queued";
    /// Waiting until lost packets are sent again.
    Retransmit = "transport, retransmit";
    /// Through a switch.
    Switch = "switch";
    /// Waiting inside a switch.
    SwitchQueued = "switch, queued";
    /// The matching unit's service.
    Match = "match";
    /// Waiting for the matching unit.
    MatchQueued = "match, queued";
    /// The card computes an atomic operation.
    Atomic = "atomic";
    /// Waiting for the atomic operations before it.
    AtomicQueued = "atomic, queued";
    /// A handler runs.
    Handler = "handler";
    /// Waiting for a handler processor.
    HandlerQueued = "handler, queued";
    /// A process of the card does its own work.
    Process = "process";
    /// A message waits until its receiver comes for it.
    Receiver = "receiver";
    /// DMA reads or writes a memory of the card.
    CardMemory = "card memory";
    /// Payload, and the event behind it, go to host memory.
    Deposit = "deposit";
    /// Waiting for the bus to host memory.
    DepositQueued = "deposit, queued";
    /// A DMA channel is set up to tell the host that something is complete.
    Doorbell = "doorbell";
    /// A completed message waits for the ones before it.
    InOrder = "completion order";
    /// The kernel's handler of the card's interrupt.
    Interrupt = "interrupt";
    /// Waiting for the handlers of earlier interrupts.
    InterruptQueued = "interrupt, queued";
    /// The kernel unlocks pages.
    Unpin = "unpin";
    /// A thread comes from its wait queue onto a CPU.
    Wake = "wake";
    /// The host's CPU notices an event.
    Notice = "notice";
}

const STAGES: usize = Stage::ALL.len();

/// An account of time, stage by stage: a [`Path`], or a part of one.
pub trait Account: Clone {
    /// Accounts for the time until `until` as `stage`. An instant already accounted for changes nothing.
    fn advance(&mut self, stage: Stage, until: Time);
}

impl Account for Path {
    fn advance(&mut self, stage: Stage, until: Time) {
        Path::advance(self, stage, until);
    }
}

/// The time of each stage, in picoseconds.
type Totals = [Duration; STAGES];

/// The stages of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Parts {
    /// Not recorded.
    Unknown,
    /// None yet.
    None,
    /// In memory that clones share until one of them advances.
    Known(Shared),
}

/// How many totals a thread keeps memory for.
const POOLED: usize = (8 << 20) / size_of::<Totals>();

thread_local! {
    static POOL: RefCell<Vec<Arc<Totals>>> = const { RefCell::new(Vec::new()) };
}

/// Totals that several paths share, in recycled memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shared(Option<Arc<Totals>>);

const HELD: &str = "totals are there until they are dropped";

impl Shared {
    fn new(totals: Totals) -> Shared {
        let mut pooled = POOL.with_borrow_mut(Vec::pop);
        match pooled.as_mut().and_then(Arc::get_mut) {
            Some(memory) => *memory = totals,
            None => pooled = Some(Arc::new(totals)),
        }
        Shared(pooled)
    }

    fn get(&self) -> &Totals {
        self.0.as_ref().expect(HELD)
    }

    /// The totals, which are this path's alone from now on.
    fn get_mut(&mut self) -> &mut Totals {
        if self.0.as_ref().is_some_and(|totals| Arc::strong_count(totals) > 1) {
            *self = Shared::new(*self.get());
        }
        self.0.as_mut().and_then(Arc::get_mut).expect(HELD)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The last one gives the memory back; a thread that is ending has no pool any more.
        if let Some(totals) = self.0.take().filter(|totals| Arc::strong_count(totals) == 1) {
            let _ = POOL.try_with(|pool| {
                let pool = &mut *pool.borrow_mut();
                if pool.len() < POOLED {
                    pool.push(totals);
                }
            });
        }
    }
}

/// A partition of the time from `origin` to `at` into stages, in picoseconds. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    origin: Time,
    at: Time,
    parts: Parts,
}

impl Path {
    /// A path that begins now.
    pub const fn from(origin: Time) -> Path {
        Path { origin, at: origin, parts: Parts::None }
    }

    /// A path that begins now and records no stages: none of them takes any time.
    pub const fn clock(origin: Time) -> Path {
        Path { origin, at: origin, parts: Parts::Unknown }
    }

    /// When the path begins.
    pub const fn origin(&self) -> Time {
        self.origin
    }

    /// Up to when every picosecond is accounted for.
    pub const fn at(&self) -> Time {
        self.at
    }

    /// Accounts for the time until `until` as `stage`. An instant already accounted for changes nothing.
    #[inline]
    pub fn advance(&mut self, stage: Stage, until: Time) {
        if until <= self.at {
            return;
        }
        let took = until.since(self.at);
        self.at = until;
        if let Some(totals) = self.totals_mut() {
            totals[stage as usize] += took;
        }
    }

    fn totals_mut(&mut self) -> Option<&mut Totals> {
        if self.parts == Parts::None {
            self.parts = Parts::Known(Shared::new([Duration::ZERO; STAGES]));
        }
        match &mut self.parts {
            Parts::Known(totals) => Some(totals.get_mut()),
            _ => None,
        }
    }

    fn totals(&self) -> &Totals {
        const NONE: &Totals = &[Duration::ZERO; STAGES];
        match &self.parts {
            Parts::Known(totals) => totals.get(),
            _ => NONE,
        }
    }

    /// Continues from `other` where it reaches further: it released this step.
    pub fn follow(&mut self, other: &Path) {
        if other.at > self.at {
            self.clone_from(other);
        }
    }

    /// This path, going on as `later` has gone on from `earlier`; none where it has not.
    pub fn continued(&self, earlier: &Path, later: &Path) -> Option<Path> {
        let goes_on = earlier.origin == later.origin
            && earlier.at <= later.at
            && earlier.totals().iter().zip(later.totals()).all(|(before, after)| before <= after);
        goes_on.then(|| {
            let mut path = self.clone();
            path.at += later.at.since(earlier.at);
            if let Some(totals) = path.totals_mut() {
                let parts = earlier.totals().iter().zip(later.totals());
                totals.iter_mut().zip(parts).for_each(|(total, (before, after))| *total += *after - *before);
            }
            path
        })
    }

    /// The time accounted to a stage.
    pub fn total(&self, stage: Stage) -> Duration {
        self.totals()[stage as usize]
    }

    /// The stages that took any time, in their usual order.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, Duration)> + '_ {
        Stage::ALL.iter().map(|&s| (s, self.total(s))).filter(|(_, d)| !d.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_partitions_its_time_exactly() {
        let t = |ps| Time::from_ps(ps);
        let mut path = Path::from(t(100));
        path.advance(Stage::Post, t(165));
        path.advance(Stage::Bus, t(415));
        path.advance(Stage::Bus, t(400)); // already accounted for
        path.advance(Stage::Post, t(480));
        assert_eq!(path.total(Stage::Post), Duration::from_ps(130));
        assert_eq!(path.stages().map(|(_, d)| d).sum::<Duration>(), path.at().since(path.origin()));
        assert_eq!(path.stages().count(), 2);
    }

    #[test]
    fn a_path_goes_on_as_another_one_did() {
        let t = |ps| Time::from_ps(ps);
        let (mut own, mut other) = (Path::from(t(10)), Path::from(t(50)));
        own.advance(Stage::Link, t(60));
        other.advance(Stage::Compute, t(60));
        let mut later = other.clone();
        later.advance(Stage::Link, t(63));
        later.advance(Stage::Wake, t(70));
        let whole = own.continued(&other, &later).unwrap();
        assert_eq!((whole.origin(), whole.at()), (t(10), t(70)));
        assert_eq!(whole.total(Stage::Link), Duration::from_ps(53));
        assert_eq!(whole.stages().map(|(_, d)| d).sum::<Duration>(), whole.at().since(whole.origin()));
        assert_eq!(own.continued(&later, &other), None);
        assert_eq!(own.continued(&own, &later), None);
    }

    #[test]
    fn a_clock_goes_like_a_path_and_has_no_parts() {
        let t = |ps| Time::from_ps(ps);
        let (mut path, mut clock) = (Path::from(t(10)), Path::clock(t(10)));
        for (stage, until) in [(Stage::Post, 30), (Stage::Bus, 20), (Stage::Link, 45)] {
            path.advance(stage, t(until));
            clock.advance(stage, t(until));
            assert_eq!((clock.origin(), clock.at()), (path.origin(), path.at()));
        }
        assert_eq!((clock.stages().count(), clock.total(Stage::Link)), (0, Duration::ZERO));
        assert_eq!(path.stages().count(), 2);
        let mut later = clock.clone();
        later.advance(Stage::Wake, t(50));
        assert_eq!(clock.continued(&clock, &later), Some(later.clone()));
        assert_eq!(clock.continued(&later, &clock), None);
        clock.follow(&later);
        assert_eq!(clock, later);
        assert!(size_of::<Path>() <= 32, "what every packet carries, and moves at every step");
    }

    #[test]
    fn clones_of_a_path_go_their_own_ways() {
        let mut path = Path::from(Time::ZERO);
        path.advance(Stage::Match, Time::from_ps(5));
        let kept = path.clone();
        path.advance(Stage::Deposit, Time::from_ps(9));
        assert_eq!((kept.at(), kept.total(Stage::Deposit)), (Time::from_ps(5), Duration::ZERO));
        assert_eq!(path.total(Stage::Match), kept.total(Stage::Match));
    }

    #[test]
    fn the_later_path_is_followed() {
        let mut early = Path::from(Time::ZERO);
        let mut late = Path::from(Time::ZERO);
        early.advance(Stage::Match, Time::from_ps(5));
        late.advance(Stage::Handler, Time::from_ps(9));
        early.follow(&late);
        assert_eq!(early, late);
        late.follow(&Path::from(Time::from_ps(3)));
        assert_eq!(early, late);
    }
}
