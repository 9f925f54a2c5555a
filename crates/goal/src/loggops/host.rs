//! A host: when its CPUs and interfaces are free, what waits for them, and what is to happen there.

use super::event::{Event, Queue, Slab, What};
use super::matching::Matching;
use rustc_hash::FxHashMap;

/// A clock for each number; that of number 0 is at hand, for most hosts have no other.
#[derive(Debug, Default)]
struct Clocks {
    cpus: Vec<u64>,
    sending: Vec<u64>,
    receiving: Vec<u64>,
}

/// What waits for the same CPU, and for the same interface in the same direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    /// The retry that serves it.
    kind: u8,
    cpu: u8,
    nic: u8,
}

/// What most hosts do not have.
#[derive(Debug, Default)]
struct More {
    clocks: Clocks,
    lanes: FxHashMap<Lane, Queue>,
}

#[derive(Debug)]
pub(super) struct Host {
    cpu: u64,
    sending: u64,
    receiving: u64,
    /// The window in which it has its next event.
    pub(super) scheduled: u64,
    /// Events that it has caused.
    pub(super) count: u32,
    pub(super) queue: Queue,
    /// Those of CPU 0 and interface 0: of calculations, sends and messages.
    lanes: [Queue; 3],
    pub(super) matching: Matching,
    more: Option<Box<More>>,
}

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
            matching: Matching::EMPTY,
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

    /// When a calculation, a send or a message finds its CPU and interface free.
    #[inline]
    pub(super) fn free(&self, what: What, cpu: u8, nic: u8) -> u64 {
        match what {
            What::Send | What::RetrySend => self.cpu(cpu).max(self.sending(nic)),
            What::Message | What::RetryMessage => self.cpu(cpu).max(self.receiving(nic)),
            _ => self.cpu(cpu),
        }
    }

    /// When all of its CPUs are done.
    pub(super) fn finish(&self) -> u64 {
        let others = self.more.iter().flat_map(|more| &more.clocks.cpus).copied();
        others.fold(self.cpu, u64::max)
    }

    fn lane(&mut self, retry: What, cpu: u8, nic: u8) -> &mut Queue {
        let kind = match retry {
            What::RetryCalc => 0,
            What::RetrySend => 1,
            _ => 2,
        };
        let nic = if kind == 0 { 0 } else { nic };
        if cpu == 0 && nic == 0 {
            return &mut self.lanes[usize::from(kind)];
        }
        self.more().lanes.entry(Lane { kind, cpu, nic }).or_insert(Queue::EMPTY)
    }

    /// Lets an event wait in its lane. Whether it is now the first there.
    pub(super) fn wait(&mut self, slab: &mut Slab, retry: What, mut event: Event) -> bool {
        // They wait for the same, so that only the rest of the order counts.
        event.key.time = 0;
        let lane = self.lane(retry, event.cpu, event.nic);
        let is_first = lane.first(slab).is_none_or(|first| event.key < first);
        lane.push(slab, event);
        is_first
    }

    /// The first event that waits in a lane.
    pub(super) fn first_waiting(
        &mut self,
        slab: &Slab,
        retry: What,
        cpu: u8,
        nic: u8,
    ) -> Option<super::event::Key> {
        self.lane(retry, cpu, nic).first(slab)
    }

    /// Takes the first event that waits in a lane.
    pub(super) fn next_waiting(&mut self, slab: &mut Slab, retry: What, cpu: u8, nic: u8) -> Option<Event> {
        self.lane(retry, cpu, nic).pop(slab)
    }
}
