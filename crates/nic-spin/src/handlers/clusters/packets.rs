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

use crate::handlers::clusters::slots::SlotBuffer;
use crate::handlers::clusters::stays::{Leaves, Stays};
use crate::handlers::codes::phantom_memory;
use crate::handlers::disposition::{Run, Slots};
use crate::handlers::outcome::Ended;
use crate::handlers::pspin::arbiter::{Arbiter, Cycles, ENGINE_NAMES, ENGINES, Shape};
use crate::handlers::pspin::lanes::{Target, beats_at};
use crate::handlers::pspin::ports::{Ports, cluster_at};
use crate::handlers::pspin::streams::{Beats, Streams, User, target};
use crate::handlers::pspin::transfers::TransferNumbers;
use crate::handlers::running::Running;
use crate::incoming::LastPacket;
use crate::spec::{HpuSpec, PacketsSpec, pspin_map as map};
use crate::stages;
use crate::{Card, Movers};
use nicety_fabric::PacketBox;
use nicety_kernel::{Needed, Sim};
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
struct Cluster {
    in_flight: Cell<u32>,
    copier: RefCell<Copier>,
    packets: SlotBuffer,
    /// The DMA beats at its memory.
    ports: Ports,
}

impl Cluster {
    fn new(spec: &PacketsSpec) -> Cluster {
        let packets =
            SlotBuffer::new(spec.cluster_buffer, spec.slot, spec.cluster_rings, |slots| &mut slots.cluster);
        Cluster { in_flight: Cell::new(0), copier: RefCell::default(), packets, ports: Ports::new(spec) }
    }
}

/// The packet scheduler of a card. It does nothing without clusters.
pub(crate) struct Scheduler {
    sim: Sim,
    spec: Option<Box<PacketsSpec>>,
    clock: Frequency,
    cluster_cores: usize,
    /// The time at which the writer of the packet buffer can start another beat.
    writer: Cell<Time>,
    /// The time for which it has moved beats.
    writer_busy: Cell<Duration>,
    clusters: Box<[Cluster]>,
    /// Transfers of each cluster's DMA engine that handlers have started.
    transfers: Box<[TransferNumbers]>,
    /// The channels that command engines and arriving packets share.
    streams: Streams,
    /// The engines of commands, and the arbiter of feedbacks, where it passes one a cycle.
    engines: Option<Rc<Arbiter>>,
    feedbacks: Option<Rc<Arbiter>>,
    /// The first cycle in which another packet may be assigned to a cluster, and whether the assignment is scheduled.
    next_task: Cell<u64>,
    task_is_due: Cell<bool>,
    /// The packet buffer.
    buffer: Option<SlotBuffer>,
    /// Runs that wait because every cluster is full.
    waiting: RefCell<VecDeque<Run>>,
    /// The times for which earlier runs kept their places.
    stays: Option<Box<Cell<Stays>>>,
}

impl Scheduler {
    pub(crate) fn new(sim: &Sim, hpu: &HpuSpec) -> Scheduler {
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
    pub(crate) const fn clusters(&self) -> bool {
        self.spec.is_some()
    }

    /// Returns the time at which an arriving packet is in the packet buffer.
    pub(crate) fn written(&self, packet: &PacketBox) -> Time {
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
    pub(crate) const fn grid(&self) -> Cycles {
        Cycles(self.clock)
    }

    /// Returns the engines of handlers' commands.
    pub(crate) fn engines(&self) -> &Rc<Arbiter> {
        self.engines.as_ref().expect("only handlers written for PsPIN have engines of commands")
    }

    /// Returns the memory of an address.
    pub(crate) fn target(&self, address: u32) -> Target {
        target(address, self.clusters.len())
    }

    /// Returns the channels and transactions of the engines.
    pub(crate) const fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Moves `bytes` at an address in beats of `beat` bytes, from cycle `from` on.
    pub(crate) fn transfer(&self, user: User, address: u32, bytes: u64, beat: u64, from: u64) -> Beats {
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
    pub(crate) fn moved(&self, address: u32, bytes: u64, until: Time) {
        let Some(spec) = &self.spec else { return };
        let took = self.cycles(spec.beats(bytes));
        self.moves(address, bytes, Time::from_ps(until.ps().saturating_sub(took.ps())));
    }

    /// Returns the cycle of a time.
    fn cycle(&self, time: Time) -> u64 {
        self.clock.cycles_in(time.since(Time::ZERO))
    }

    /// Returns the busy times of the units that move packets, and the occupancy of places. None without clusters.
    pub(crate) fn movers(&self) -> Option<Movers> {
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
    pub(crate) fn number_of_clusters(&self) -> u64 {
        self.clusters.len().max(1) as u64
    }

    /// Returns the cluster of a core.
    pub(crate) const fn cluster_of(&self, core: usize) -> usize {
        core / self.cluster_cores
    }

    /// Returns the transfers of a cluster's DMA engine that handlers have started.
    pub(crate) fn transfers_of(&self, cluster: usize) -> &TransferNumbers {
        &self.transfers[cluster]
    }

    /// Returns the ports of a core's cluster, if the core's accesses wait for DMA.
    pub(crate) fn ports(&self, core: usize) -> Option<&Ports> {
        self.clusters
            .get(self.cluster_of(core))
            .map(|cluster| &cluster.ports)
            .filter(|ports| ports.are_shared())
    }

    /// Copies bytes to or within a cluster's memory, from now on: to its packets at offset `slot`, if given. Returns
    /// the arrival time.
    pub(crate) fn copy(&self, cluster: usize, bytes: u64, slot: Option<u32>) -> Time {
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
    fn note_stay(&self, spec: &PacketsSpec, run: &Run) {
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

    fn cycles(&self, cycles: u64) -> Duration {
        self.clock.cycles(cycles)
    }

    /// Returns the cluster for a packet of this message queue: its home cluster if that has room, or else the least
    /// occupied cluster with room.
    fn choose(&self, queue: u64) -> Option<usize> {
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
    fn copy(
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
    fn busy(&self, spec: &PacketsSpec) -> Duration {
        self.busy.max(Duration::from_ps(self.in_flight.ps() / u64::from(spec.copies)))
    }
}

impl Card {
    /// Schedules a ready handler: its packet takes slots of the packet buffer.
    pub(crate) fn schedule(self: &Rc<Card>, run: Run) {
        if let Some(run) = self.scheduler.buffer.as_ref().and_then(|buffer| buffer.admit(run)) {
            self.wait_for_cluster(run);
        }
    }

    /// Makes a packet in the packet buffer wait for a cluster.
    fn wait_for_cluster(self: &Rc<Card>, mut run: Run) {
        let Some(spec) = &self.scheduler.spec else { return };
        let now = self.sim.now();
        run.stay.admitted = now;
        let written = run.packet.as_ref().map_or(now, |packet| packet.written.max(now));
        let (card, at) = (self.clone(), written + self.scheduler.cycles(spec.schedule));
        let none = [Needed::NOTHING, Needed::NOTHING];
        self.sim.spawn_at(at, none, || async move { card.assign(run) });
    }

    /// Assigns a run to a cluster, behind those that wait for one.
    fn assign(self: &Rc<Card>, run: Run) {
        self.scheduler.waiting.borrow_mut().push_back(run);
        self.assign_waiting();
    }

    /// Assigns runs to clusters in order while there is room: one a cycle, if feedbacks are limited to that too.
    fn assign_waiting(self: &Rc<Card>) {
        let scheduler = &self.scheduler;
        loop {
            let Some(place) = scheduler.waiting.borrow().front().map(|run| run.place) else { return };
            let queue = self.incoming.borrow_mut().get(place).queue;
            let Some(cluster) = scheduler.choose(queue) else { return };
            if scheduler.feedbacks.is_some() {
                let (now, next) = (scheduler.grid().from(self.sim.now()), scheduler.next_task.get());
                if next > now {
                    return self.assign_at(next);
                }
                scheduler.next_task.set(now + 1);
            }
            let run = scheduler.waiting.borrow_mut().pop_front().expect("just seen");
            self.bring_to(cluster, run);
        }
    }

    /// Schedules the assignment of waiting runs for a cycle.
    fn assign_at(self: &Rc<Card>, cycle: u64) {
        if !self.scheduler.task_is_due.replace(true) {
            let (card, none) = (self.clone(), [Needed::NOTHING, Needed::NOTHING]);
            self.sim.spawn_at(self.scheduler.grid().at(cycle), none, || async move {
                card.scheduler.task_is_due.set(false);
                card.assign_waiting();
            });
        }
    }

    /// Adds a run to a cluster: its packet takes slots there.
    fn bring_to(self: &Rc<Card>, cluster: usize, mut run: Run) {
        run.stay.assigned = self.sim.now();
        let Cluster { in_flight, packets, .. } = &self.scheduler.clusters[cluster];
        in_flight.set(in_flight.get() + 1);
        if let Some(run) = packets.admit(run) {
            self.copy_to(cluster, run);
        }
    }

    /// Copies the packet of a run to a cluster, where the run then waits for a processor.
    fn copy_to(self: &Rc<Card>, cluster: usize, mut run: Run) {
        run.stay.placed = self.sim.now();
        run.path.advance(stages::SCHEDULE, self.sim.now());
        let copied = self.scheduler.copy(cluster, run.packet_bytes(), run.slots.cluster);
        run.path.advance(stages::COPY, copied);
        let (card, none) = (self.clone(), [Needed::NOTHING, Needed::NOTHING]);
        self.sim.spawn_at(copied, none, || async move { card.ready_in(Some(cluster), run) });
    }

    /// Reports the end of a handler on a core to the scheduler, and then applies the handler's result.
    pub(crate) async fn feed_back(self: Rc<Card>, running: Running, mut run: Run, ended: Ended) {
        let Running { thread, mut path, issued, attachment, .. } = running;
        let core = thread.core;
        let mut left = Vec::new();
        if let Some(issued) = &issued {
            issued.all_done().await;
            left = issued.arriving.take();
        }
        let ended = match self.bytes_left(left, &attachment) {
            Err(bytes) if matches!(ended, Ended::Returned(_)) => Ended::Stopped(phantom_memory(bytes)),
            _ => ended,
        };
        let feedback = self.scheduler.spec.as_ref().map_or(0, |spec| spec.feedback);
        let held = issued.map(|_| thread.clone());
        match &self.scheduler.feedbacks {
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
                self.sim.until(self.sim.now() + self.scheduler.cycles(feedback)).await;
            }
        }
        path.advance(stages::FEEDBACK, self.sim.now());
        // The tail handler of its message finds the last packet in place.
        let kept = if self.keeps(&run, &ended) { run.slots.buffer.take() } else { None };
        self.left_cluster(core, &run);
        run.slots.buffer = kept;
        self.ended(core, run, ended, path);
    }

    /// Removes a run from the cluster of a core. This frees its place and the slots of its packet.
    pub(crate) fn left_cluster(self: &Rc<Card>, core: usize, run: &Run) {
        let (Some(buffer), Some(spec)) = (&self.scheduler.buffer, &self.scheduler.spec) else { return };
        let (cluster, slots) = (self.scheduler.cluster_of(core), run.slots);
        self.scheduler.note_stay(spec, run);
        let Cluster { in_flight, packets, .. } = &self.scheduler.clusters[cluster];
        packets.free(slots);
        while let Some(next) = packets.next() {
            self.copy_to(cluster, next);
        }
        self.left_buffer(buffer, slots);
        in_flight.set(in_flight.get() - 1);
        self.assign_waiting();
    }

    /// Frees the slots of a packet in the packet buffer.
    fn left_buffer(self: &Rc<Card>, buffer: &SlotBuffer, slots: Slots) {
        buffer.free(slots);
        while let Some(next) = buffer.next() {
            self.wait_for_cluster(next);
        }
    }

    /// Frees a message's last packet, which was kept for a tail handler.
    pub(crate) fn release_last(self: &Rc<Card>, last: &LastPacket) {
        if let Some(buffer) = &self.scheduler.buffer {
            self.left_buffer(buffer, Slots { buffer: last.slot, cluster: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: PacketsSpec = PacketsSpec::of_tests();

    fn cycles(n: u64) -> Duration {
        Duration::from_ps(1000 * n)
    }

    fn at(cycle: u64) -> Time {
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
