//! A host: the clocks of its CPUs and interfaces, events that wait for these, and future events.

use super::event::{Event, EventKind, Key, Queue, Slab};
use super::matching::Lines;
use rustc_hash::FxHashMap;

/// The clocks of CPUs and interfaces, by number. [`Host`] itself has the clocks of number 0, since most hosts have no others.
#[derive(Debug, Default)]
struct Clocks {
    cpus: Vec<u64>,
    sending: Vec<u64>,
    receiving: Vec<u64>,
}

/// The key of a lane. A lane has the events that wait for the same CPU, and for the same interface in the same direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    /// The index of the lane's retry event in `RETRIES`.
    kind: u8,
    cpu: u8,
    nic: u8,
}

/// State that most hosts do not need.
#[derive(Debug, Default)]
struct More {
    clocks: Clocks,
    lanes: FxHashMap<Lane, Queue>,
}

/// A host. It takes two cache lines. The first one has the fields that nearly every event needs.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Host {
    cpu: u64,
    sending: u64,
    receiving: u64,
    /// The begin of the window in which the host has its next event.
    pub(super) scheduled: u64,
    /// The number of events that the host has caused.
    pub(super) count: u32,
    pub(super) queue: Queue,
    pub(super) lines: Lines,
    /// The lanes of CPU 0 and interface 0, for calculations, sends and messages.
    lanes: [Queue; 3],
    more: Option<Box<More>>,
}

/// The retry events of the lanes, in the order of the lanes.
const RETRIES: [EventKind; 3] = [EventKind::RetryCalc, EventKind::RetrySend, EventKind::RetryMessage];

fn of(clocks: Option<&Vec<u64>>, number: u8) -> u64 {
    clocks.and_then(|clocks| clocks.get(usize::from(number))).copied().unwrap_or(0)
}

fn at(clocks: &mut Vec<u64>, number: u8) -> &mut u64 {
    let number = usize::from(number);
    if clocks.len() <= number {
        clocks.resize(number + 1, 0);
    }
    &mut clocks[number]
}

impl Host {
    pub(super) fn new() -> Host {
        Host {
            cpu: 0,
            sending: 0,
            receiving: 0,
            scheduled: u64::MAX,
            count: 0,
            queue: Queue::EMPTY,
            lanes: [Queue::EMPTY, Queue::EMPTY, Queue::EMPTY],
            lines: Lines::EMPTY,
            more: None,
        }
    }

    #[inline]
    pub(super) fn cpu(&self, cpu: u8) -> u64 {
        if cpu == 0 { self.cpu } else { of(self.more.as_ref().map(|more| &more.clocks.cpus), cpu) }
    }

    #[inline]
    fn sending(&self, nic: u8) -> u64 {
        if nic == 0 { self.sending } else { of(self.more.as_ref().map(|more| &more.clocks.sending), nic) }
    }

    #[inline]
    fn receiving(&self, nic: u8) -> u64 {
        if nic == 0 { self.receiving } else { of(self.more.as_ref().map(|more| &more.clocks.receiving), nic) }
    }

    #[inline]
    pub(super) fn cpu_mut(&mut self, cpu: u8) -> &mut u64 {
        if cpu == 0 { &mut self.cpu } else { at(&mut self.more().clocks.cpus, cpu) }
    }

    #[inline]
    pub(super) fn sending_mut(&mut self, nic: u8) -> &mut u64 {
        if nic == 0 { &mut self.sending } else { at(&mut self.more().clocks.sending, nic) }
    }

    #[inline]
    pub(super) fn receiving_mut(&mut self, nic: u8) -> &mut u64 {
        if nic == 0 { &mut self.receiving } else { at(&mut self.more().clocks.receiving, nic) }
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Returns the time from which the CPU and the interface are free for a calculation, a send or a message.
    #[inline]
    pub(super) fn free(&self, what: EventKind, cpu: u8, nic: u8) -> u64 {
        match what {
            EventKind::Send | EventKind::RetrySend => self.cpu(cpu).max(self.sending(nic)),
            EventKind::Message | EventKind::RetryMessage => self.cpu(cpu).max(self.receiving(nic)),
            _ => self.cpu(cpu),
        }
    }

    /// Returns the time at which all CPUs of the host have finished.
    pub(super) fn finish(&self) -> u64 {
        let others = self.more.iter().flat_map(|more| &more.clocks.cpus).copied();
        others.fold(self.cpu, u64::max)
    }

    fn lane(&mut self, retry: EventKind, cpu: u8, nic: u8) -> &mut Queue {
        let kind = RETRIES.iter().position(|other| *other == retry).expect("only retries have lanes") as u8;
        let nic = if retry == EventKind::RetryCalc { 0 } else { nic };
        if cpu == 0 && nic == 0 {
            return &mut self.lanes[usize::from(kind)];
        }
        self.more().lanes.entry(Lane { kind, cpu, nic }).or_insert(Queue::EMPTY)
    }

    /// Adds an event to its lane. Returns whether the event is now the first in the lane.
    pub(super) fn wait(&mut self, slab: &mut Slab, retry: EventKind, mut event: Event) -> bool {
        // All events of a lane wait for the same time, so only the other fields of the key order them.
        event.key.time = 0;
        let lane = self.lane(retry, event.cpu, event.nic);
        let is_first = lane.first(slab).is_none_or(|first| event.key < first);
        lane.push(slab, event);
        is_first
    }

    /// Returns the first event in a lane.
    pub(super) fn first_waiting(&mut self, slab: &Slab, retry: EventKind, cpu: u8, nic: u8) -> Option<Key> {
        self.lane(retry, cpu, nic).first(slab)
    }

    /// Removes and returns the first event of a lane.
    pub(super) fn next_waiting(
        &mut self,
        slab: &mut Slab,
        retry: EventKind,
        cpu: u8,
        nic: u8,
    ) -> Option<Event> {
        self.lane(retry, cpu, nic).pop(slab)
    }

    /// Returns the first event in a lane of CPU 0 and interface 0.
    pub(super) fn front_waiting<'s>(&self, slab: &'s Slab, retry: EventKind) -> Option<&'s Event> {
        let lane = RETRIES.iter().position(|other| *other == retry)?;
        self.lanes[lane].front(slab)
    }

    /// Returns the first event in any lane of CPU 0 and interface 0, and its lane. The time in its key is the time from which
    /// these are free.
    #[inline]
    pub(super) fn first_of_all_waiting(&self, slab: &Slab) -> Option<(Key, EventKind)> {
        let mut first: Option<(Key, EventKind)> = None;
        for (lane, retry) in self.lanes.iter().zip(RETRIES) {
            if let Some(key) = lane.first(slab) {
                let key = Key { time: self.free(retry, 0, 0), ..key };
                if first.is_none_or(|(other, _)| key < other) {
                    first = Some((key, retry));
                }
            }
        }
        first
    }

    /// Returns the event queues that most hosts have.
    pub(super) fn queues(&self) -> impl Iterator<Item = &Queue> {
        std::iter::once(&self.queue).chain(&self.lanes)
    }
}
