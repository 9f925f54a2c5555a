//! The packet scheduler of a card with clusters, modelled on PsPIN. Packets go to the home cluster of their message
//! while it has room. They are copied to memory there before their handlers start.
//!
//! A packet passes these steps:
//!
//! 1. It is written to slots of the packet buffer, one beat a cycle.
//! 2. It is assigned to a cluster.
//! 3. The cluster's DMA engine copies it to slots in the cluster.
//! 4. It waits for a processor.
//!
//! Where a buffer is full, the packet waits before the step, and others wait behind it. When its handler and the
//! handler's commands have ended, the scheduler gets a feedback. Then the packet leaves its buffer, and the cluster
//! has room for another one.

use crate::Movers;
use crate::clusters::slots::SlotBuffer;
use crate::clusters::stays::{Leaves, Stays};
use crate::hpus::Thread;
use crate::pspin::arbiter::{Arbiter, Cycles, ENGINE_NAMES, ENGINES, Shape};
use crate::pspin::lanes::{Target, beats_at};
use crate::pspin::ports::{Ports, cluster_at};
use crate::pspin::streams::{Beats, Streams, User, target};
use crate::pspin::transfers::TransferNumbers;
use crate::ready::Run;
use crate::spec::{HpuSpec, PacketsSpec, pspin_map as map};
use nicety_fabric::PacketBox;
use nicety_kernel::Sim;
use nicety_types::{Duration, Frequency, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The DMA engine of a cluster. It copies packets to the cluster's memory.
#[derive(Default)]
struct Copier {
    /// The time at which it can start another beat.
    free: Time,
    /// The arrival times of the latest bursts, at most as many as may be in flight.
    ends: VecDeque<Time>,
    /// The time for which it has moved beats, and the sum of the times of bursts in flight.
    busy: Duration,
    in_flight: Duration,
}

/// A cluster of processors.
pub(super) struct Cluster {
    pub(super) in_flight: Cell<u32>,
    copier: RefCell<Copier>,
    pub(super) packets: SlotBuffer,
    /// The DMA beats at its memory.
    ports: Ports,
}

impl Cluster {
    pub fn new(spec: &PacketsSpec) -> Cluster {
        let packets =
            SlotBuffer::new(spec.cluster_buffer, spec.slot, spec.cluster_rings, |slots| &mut slots.cluster);
        Cluster { in_flight: Cell::new(0), copier: RefCell::default(), packets, ports: Ports::new(spec) }
    }
}

/// The packet scheduler of a card. It does nothing without clusters.
pub struct Scheduler {
    pub(super) sim: Sim,
    pub(super) spec: Option<Box<PacketsSpec>>,
    clock: Frequency,
    cluster_cores: usize,
    /// The time at which the writer of the packet buffer can start another beat.
    writer: Cell<Time>,
    /// The time for which it has moved beats.
    writer_busy: Cell<Duration>,
    pub(super) clusters: Box<[Cluster]>,
    /// Transfers of each cluster's DMA engine that handlers have started.
    transfers: Box<[TransferNumbers]>,
    /// The channels that command engines and arriving packets share.
    streams: Streams,
    /// The engines of commands, and the arbiter of feedbacks, where it passes one a cycle.
    engines: Option<Rc<Arbiter>>,
    pub(super) feedbacks: Option<Rc<Arbiter>>,
    /// The first cycle in which another packet may be assigned to a cluster, and whether the assignment is scheduled.
    pub(super) next_task: Cell<u64>,
    pub(super) task_is_due: Cell<bool>,
    /// The packet buffer.
    pub(super) buffer: Option<SlotBuffer>,
    /// Runs that wait because every cluster is full.
    pub(super) waiting: RefCell<VecDeque<Run>>,
    /// The times for which earlier runs kept their places.
    stays: Option<Box<Cell<Stays>>>,
}

impl Scheduler {
    /// Returns the packet scheduler of these processors.
    pub fn new(sim: &Sim, hpu: &HpuSpec) -> Scheduler {
        let cluster_cores = hpu.memories.cluster;
        let spec = hpu.packets.as_ref();
        let clusters = spec.map_or(Box::default(), |spec| {
            (0..hpu.cores / cluster_cores).map(|_| Cluster::new(spec)).collect()
        });
        let clustered = (hpu.cores / cluster_cores, cluster_cores);
        let shape = |outputs, places, depth, delay| {
            let (clusters, cluster_cores) = clustered;
            Arbiter::new(sim, hpu.clock, &Shape { clusters, cluster_cores, outputs, places, depth, delay })
        };
        let limited = spec.map(|spec| spec.cluster_queue).filter(|&depth| depth > 0);
        Scheduler {
            sim: sim.clone(),
            spec: hpu.packets.map(Box::new),
            clock: hpu.clock,
            cluster_cores,
            writer: Cell::new(Time::ZERO),
            writer_busy: Cell::new(Duration::ZERO),
            clusters,
            transfers: match hpu.pspin {
                Some(_) => {
                    (0..hpu.cores.div_ceil(cluster_cores)).map(|_| TransferNumbers::default()).collect()
                }
                None => Box::default(),
            },
            streams: Streams::new(hpu.interconnect.as_ref()),
            engines: hpu.pspin.map(|spec| shape(ENGINES, spec.engine_commands, spec.cluster_queue, 1)),
            feedbacks: limited.map(|depth| shape(1, 0, depth, 0)),
            next_task: Cell::new(0),
            task_is_due: Cell::new(false),
            buffer: spec.map(|spec| {
                SlotBuffer::new(spec.buffer, spec.slot, spec.buffer_rings, |slots| &mut slots.buffer)
            }),
            waiting: RefCell::default(),
            stays: spec.map(|_| Box::default()),
        }
    }

    /// Returns whether packets are assigned to clusters.
    pub const fn clusters(&self) -> bool {
        self.spec.is_some()
    }

    /// Returns the time at which an arriving packet is in the packet buffer.
    pub fn written(&self, packet: &PacketBox) -> Time {
        let now = self.sim.now();
        let Some(spec) = &self.spec else { return now };
        let beats = spec.beats(packet.payload.len());
        let took = self.cycles(beats);
        let shared = self.streams.write_packet(self.grid().from(now), beats);
        let written = match shared {
            Some(beats) => self.grid().at(beats.last + 1),
            None => self.writer.get().max(now) + took,
        };
        self.writer.set(written);
        self.writer_busy.set(self.writer_busy.get() + took);
        written
    }

    /// Returns the cycles of the card's clock.
    pub const fn grid(&self) -> Cycles {
        Cycles(self.clock)
    }

    /// Returns the engines of handlers' commands.
    pub fn engines(&self) -> &Rc<Arbiter> {
        self.engines.as_ref().expect("only handlers written for PsPIN have engines of commands")
    }

    /// Returns the memory of an address.
    pub fn target(&self, address: u32) -> Target {
        target(address, self.clusters.len())
    }

    /// Returns the channels and transactions of the engines.
    pub const fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Moves `bytes` at an address in beats of `beat` bytes, from cycle `from` on.
    pub fn transfer(&self, user: User, address: u32, bytes: u64, beat: u64, from: u64) -> Beats {
        let target = self.target(address);
        let ports = match target {
            Target::Cluster(cluster) => self.clusters.get(cluster).map(|cluster| &cluster.ports),
            Target::Packets | Target::Handlers => None,
        };
        self.streams.transfer(user, (target, address), from, beats_at(address.into(), bytes, beat), ports)
    }

    /// Notes that bytes at `address` are moved from a time on. Cores wait for them if they are in the L1 of a
    /// cluster.
    fn moves(&self, address: u32, bytes: u64, from: Time) {
        if let Some(cluster) = cluster_at(address).and_then(|cluster| self.clusters.get(cluster)) {
            cluster.ports.move_at(self.cycle(from), address, bytes);
        }
    }

    /// Notes that bytes at `address` have been moved until a time.
    pub fn moved(&self, address: u32, bytes: u64, until: Time) {
        let Some(spec) = &self.spec else { return };
        let took = self.cycles(spec.beats(bytes));
        self.moves(address, bytes, Time::from_ps(until.ps().saturating_sub(took.ps())));
    }

    /// Returns the cycle of a time.
    fn cycle(&self, time: Time) -> u64 {
        self.clock.cycles_in(time.since(Time::ZERO))
    }

    /// Returns the busy times of the units that move packets, and the occupancy of places. None without clusters.
    pub fn movers(&self) -> Option<Movers> {
        let spec = self.spec.as_ref()?;
        let clusters = self.clusters.iter().map(|cluster| cluster.copier.borrow().busy(spec)).enumerate();
        let cluster = clusters.max_by_key(|(_, busy)| *busy).unwrap_or_default();
        let [in_flight, cluster_buffer, packet_buffer] =
            self.stays.as_ref()?.get().held(spec, self.number_of_clusters());
        Some(Movers {
            writer: self.writer_busy.get(),
            sender: self.cycles(self.streams.sent()),
            cluster,
            engine: self.busiest_engine(),
            channel: self.streams.busiest_channel().map(|(name, busy)| (name, self.cycles(busy))),
            in_flight,
            cluster_buffer,
            packet_buffer,
        })
    }

    /// The command engine with the most occupied places.
    fn busiest_engine(&self) -> Option<(&'static str, Duration)> {
        let (engine, held) = self.engines.as_ref()?.busiest()?;
        Some((ENGINE_NAMES[engine], self.cycles(held)))
    }

    /// Returns the number of clusters: one if packets are assigned to none.
    pub fn number_of_clusters(&self) -> u64 {
        self.clusters.len().max(1) as u64
    }

    /// Returns the cluster of a core.
    pub const fn cluster_of(&self, core: usize) -> usize {
        core / self.cluster_cores
    }

    /// Returns the transfers of a cluster's DMA engine that handlers have started.
    pub fn transfers_of(&self, cluster: usize) -> &TransferNumbers {
        &self.transfers[cluster]
    }

    /// Returns the ports of a core's cluster, if the core's accesses wait for DMA.
    pub fn ports(&self, core: usize) -> Option<&Ports> {
        self.clusters
            .get(self.cluster_of(core))
            .map(|cluster| &cluster.ports)
            .filter(|ports| ports.are_shared())
    }

    /// Copies bytes to or within a cluster's memory, from now on: to its packets at offset `slot`, if given. Returns
    /// the arrival time.
    pub fn copy(&self, cluster: usize, bytes: u64, slot: Option<u32>) -> Time {
        let Some(spec) = &self.spec else { return self.sim.now() };
        let address = slot.map(|offset| map::L1 + cluster as u32 * map::L1_EACH + map::RUNTIME + offset);
        let each = |from: Time, done: u64, bytes: u64| {
            if let Some(address) = address {
                self.moves(address + done as u32, bytes, from);
            }
        };
        self.clusters[cluster].copier.borrow_mut().copy(self.sim.now(), spec, bytes, |n| self.cycles(n), each)
    }

    /// Records the times for which a run kept its places.
    pub(super) fn note_stay(&self, spec: &PacketsSpec, run: &Run) {
        let Some(stays) = &self.stays else { return };
        let bytes = run.packet_bytes();
        let beats = spec.beats(bytes);
        let mut sums = stays.get();
        sums.leave(
            spec,
            &Leaves {
                stay: run.stay,
                now: self.sim.now(),
                bytes,
                copy: self.cycles(spec.copy + beats),
                // Packets that wait for slots are written before they have them.
                before: self.cycles(spec.schedule),
            },
        );
        stays.set(sums);
    }

    /// Passes the feedback of a handler on a core. `held` is its thread, if the core keeps it until then.
    pub(super) async fn pass_feedback(&self, core: usize, held: Option<Rc<Thread>>) {
        let feedback = self.spec.as_ref().map_or(0, |spec| spec.feedback);
        match &self.feedbacks {
            // At least one cycle, in which it leaves its core.
            Some(arbiter) => {
                let leaves = move || held.iter().for_each(|thread| thread.commands().feedback_left());
                let ticket = arbiter.push(core, 0, Some(Box::new(leaves)));
                let taken = ticket.taken().await;
                arbiter.free(&ticket);
                self.sim.until(arbiter.cycles.at(taken + feedback.saturating_sub(1))).await;
            }
            None => {
                held.iter().for_each(|thread| thread.commands().feedback_left());
                self.sim.until(self.sim.now() + self.cycles(feedback)).await;
            }
        }
    }

    pub(super) fn cycles(&self, cycles: u64) -> Duration {
        self.clock.cycles(cycles)
    }

    /// Returns the cluster for a packet of this message queue: its home cluster if that has room, or else the least
    /// occupied cluster with room.
    pub(super) fn choose(&self, queue: u64) -> Option<usize> {
        let spec = self.spec.as_ref()?;
        let home = (queue % self.clusters.len() as u64) as usize;
        let in_flight = |cluster: &usize| self.clusters[*cluster].in_flight.get();
        let takes = |cluster: &usize| {
            let waiting = self.clusters[*cluster].packets.waiting() as u32;
            in_flight(cluster) < spec.in_flight && (spec.cluster_queue == 0 || waiting < spec.cluster_queue)
        };
        let others = || (0..self.clusters.len()).filter(takes).min_by_key(in_flight);
        if takes(&home) { Some(home) } else { others() }
    }
}

impl PacketsSpec {
    /// Returns the number of beats of `bytes` bytes.
    pub(crate) const fn beats(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.beat)
    }
}

impl Copier {
    /// Copies bytes. Calls `each` for each burst with the time of its first beat at the cluster's memory, the bytes
    /// moved before, and its own bytes. Returns the arrival time of all bytes.
    pub fn copy(
        &mut self,
        now: Time,
        spec: &PacketsSpec,
        bytes: u64,
        cycles: impl Fn(u64) -> Duration,
        each: impl Fn(Time, u64, u64),
    ) -> Time {
        let (mut left, mut done) = (bytes, now + cycles(spec.copy));
        while left > 0 {
            let burst = left.min(spec.burst);
            left -= burst;
            let room = match self.ends.len() < spec.copies as usize {
                true => now,
                false => self.ends.pop_front().expect("at least one may be in flight"),
            };
            let begin = now.max(self.free).max(room);
            self.free = begin + cycles(spec.beats(burst));
            done = self.free + cycles(spec.copy);
            self.busy += self.free.since(begin);
            self.in_flight += done.since(begin);
            self.ends.push_back(done);
            each(begin + cycles(spec.copy), bytes - left - burst, burst);
        }
        done
    }

    /// Returns its busy time: it moves one beat at a time, and has up to `spec.copies` bursts in flight.
    pub fn busy(&self, spec: &PacketsSpec) -> Duration {
        self.busy.max(Duration::from_ps(self.in_flight.ps() / u64::from(spec.copies)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: PacketsSpec = PacketsSpec::of_tests();

    fn cycles(n: u64) -> Duration {
        Duration::from_ps(1000 * n)
    }

    pub fn at(cycle: u64) -> Time {
        Time::from_ps(1000 * cycle)
    }

    #[test]
    fn copies_move_a_beat_a_cycle_and_wait_for_room_in_flight() {
        let mut copier = Copier::default();
        let moved = RefCell::new(Vec::new());
        let each = |from, before, bytes| moved.borrow_mut().push((from, before, bytes));
        let mut copy = |now, bytes| copier.copy(at(now), &SPEC, bytes, cycles, each);
        assert_eq!(copy(100, 0), at(116), "no packet, no beat");
        assert_eq!(copy(100, 1), at(117));
        assert_eq!(copy(100, 65), at(119), "two beats behind that of the first");
        // Two are in flight until 117 and 119, with four beats each.
        assert_eq!(copy(101, 256), at(117 + 4 + 16));
        assert_eq!(copy(101, 64), at(121 + 1 + 16));
        // Two bursts, both behind those in flight: until 137 and 138.
        assert_eq!(copy(101, 512), at(141 + 4 + 16));
        // The last two move their beats after the latency.
        assert_eq!(moved.borrow()[4..], [(at(137 + 16), 0, 256), (at(141 + 16), 256, 256)]);
        // 1 + 2 + 4 + 1 + 4 + 4 beats, and six bursts of 16 further cycles each, two at a time.
        assert_eq!(copier.busy(&PacketsSpec { copies: 100, ..SPEC }), cycles(16));
        assert_eq!(copier.busy(&SPEC), cycles((16 + 6 * 16) / 2));
    }
}
