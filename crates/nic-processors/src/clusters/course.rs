//! The course of a packet through the clusters of a card, and the feedback after its handler.

use crate::clusters::packets::{Cluster, Scheduler};
use crate::clusters::slots::SlotBuffer;
use crate::commands::codes::phantom_memory;
use crate::commands::transfers::Arriving;
use crate::ready::{Run, Slots};
use crate::running::{Ended, Running};
use crate::stages;
use nicety_kernel::Needed;
use nicety_types::Path;
use std::rc::Rc;

/// No data that a task needs soon.
const NOTHING: [Needed; 2] = [Needed::NOTHING, Needed::NOTHING];

/// A card with handlers that run in clusters.
pub trait Clustered: 'static {
    /// Returns its packet scheduler.
    fn scheduler(&self) -> &Scheduler;

    /// Returns the number of earlier messages for handlers, before the message at this place.
    fn queue_of(&self, place: usize) -> u64;

    /// Makes a handler ready to run on the cores of a cluster.
    fn ready_in(self: &Rc<Self>, cluster: usize, run: Run);

    /// Returns whether the packet of an ended run is kept for a tail handler.
    fn keeps(&self, run: &Run, ended: &Ended) -> bool;

    /// Applies the result of a handler that ran on a core.
    fn ended(self: &Rc<Self>, core: usize, run: Run, ended: Ended, path: Path);
}

/// Schedules a ready handler: its packet takes slots of the packet buffer.
pub fn schedule(card: &Rc<impl Clustered>, run: Run) {
    if let Some(run) = card.scheduler().buffer.as_ref().and_then(|buffer| buffer.admit(run)) {
        wait_for_cluster(card, run);
    }
}

/// Makes a packet in the packet buffer wait for a cluster.
fn wait_for_cluster(card: &Rc<impl Clustered>, mut run: Run) {
    let scheduler = card.scheduler();
    let Some(spec) = &scheduler.spec else { return };
    let now = scheduler.sim.now();
    run.stay.admitted = now;
    let written = run.packet.as_ref().map_or(now, |packet| packet.written.max(now));
    let (owner, at) = (card.clone(), written + scheduler.cycles(spec.schedule));
    scheduler.sim.spawn_at(at, NOTHING, || async move { assign(&owner, run) });
}

/// Assigns a run to a cluster, behind those that wait for one.
fn assign(card: &Rc<impl Clustered>, run: Run) {
    card.scheduler().waiting.borrow_mut().push_back(run);
    assign_waiting(card);
}

/// Assigns runs to clusters in order while there is room: one a cycle, if feedbacks are limited to that too.
fn assign_waiting(card: &Rc<impl Clustered>) {
    let scheduler = card.scheduler();
    loop {
        let Some(place) = scheduler.waiting.borrow().front().map(|run| run.place) else { return };
        let Some(cluster) = scheduler.choose(card.queue_of(place)) else { return };
        if scheduler.feedbacks.is_some() {
            let (now, next) = (scheduler.grid().from(scheduler.sim.now()), scheduler.next_task.get());
            if next > now {
                return assign_at(card, next);
            }
            scheduler.next_task.set(now + 1);
        }
        let run = scheduler.waiting.borrow_mut().pop_front().expect("just seen");
        bring_to(card, cluster, run);
    }
}

/// Schedules the assignment of waiting runs for a cycle.
fn assign_at(card: &Rc<impl Clustered>, cycle: u64) {
    let scheduler = card.scheduler();
    if !scheduler.task_is_due.replace(true) {
        let owner = card.clone();
        scheduler.sim.spawn_at(scheduler.grid().at(cycle), NOTHING, || async move {
            owner.scheduler().task_is_due.set(false);
            assign_waiting(&owner);
        });
    }
}

/// Adds a run to a cluster: its packet takes slots there.
fn bring_to(card: &Rc<impl Clustered>, cluster: usize, mut run: Run) {
    let scheduler = card.scheduler();
    run.stay.assigned = scheduler.sim.now();
    let Cluster { in_flight, packets, .. } = &scheduler.clusters[cluster];
    in_flight.set(in_flight.get() + 1);
    if let Some(run) = packets.admit(run) {
        copy_to(card, cluster, run);
    }
}

/// Copies the packet of a run to a cluster, where the run then waits for a processor.
fn copy_to(card: &Rc<impl Clustered>, cluster: usize, mut run: Run) {
    let scheduler = card.scheduler();
    run.stay.placed = scheduler.sim.now();
    run.path.advance(stages::SCHEDULE, scheduler.sim.now());
    let copied = scheduler.copy(cluster, run.packet_bytes(), run.slots.cluster);
    run.path.advance(stages::COPY, copied);
    let owner = card.clone();
    scheduler.sim.spawn_at(copied, NOTHING, || async move { owner.ready_in(cluster, run) });
}

/// Reports the end of a handler on a core to the scheduler, and then applies the handler's result.
pub async fn feed_back(card: Rc<impl Clustered>, running: Running, mut run: Run, ended: Ended) {
    let Running { thread, mut path, issued, attachment, .. } = running;
    let (core, scheduler) = (thread.core, card.scheduler());
    let mut left = Vec::new();
    if let Some(issued) = &issued {
        issued.all_done().await;
        left = issued.arriving.take();
    }
    // Outstanding bytes go to memory that is not the handler's own.
    let brought = left.into_iter().try_for_each(|Arriving { local, bytes }| attachment.bring(local, bytes));
    let ended = match brought {
        Err(bytes) if matches!(ended, Ended::Returned(_)) => Ended::Stopped(phantom_memory(bytes)),
        _ => ended,
    };
    scheduler.pass_feedback(core, issued.map(|_| thread)).await;
    path.advance(stages::FEEDBACK, scheduler.sim.now());
    // The tail handler of its message finds the last packet in place.
    let kept = if card.keeps(&run, &ended) { run.slots.buffer.take() } else { None };
    left_cluster(&card, core, &run);
    run.slots.buffer = kept;
    card.ended(core, run, ended, path);
}

/// Removes a run from the cluster of a core. This frees its place and the slots of its packet.
pub fn left_cluster(card: &Rc<impl Clustered>, core: usize, run: &Run) {
    let scheduler = card.scheduler();
    let (Some(buffer), Some(spec)) = (&scheduler.buffer, &scheduler.spec) else { return };
    let (cluster, slots) = (scheduler.cluster_of(core), run.slots);
    scheduler.note_stay(spec, run);
    let Cluster { in_flight, packets, .. } = &scheduler.clusters[cluster];
    packets.free(slots);
    while let Some(next) = packets.next() {
        copy_to(card, cluster, next);
    }
    left_buffer(card, buffer, slots);
    in_flight.set(in_flight.get() - 1);
    assign_waiting(card);
}

/// Frees the slots of a packet in the packet buffer.
fn left_buffer(card: &Rc<impl Clustered>, buffer: &SlotBuffer, slots: Slots) {
    buffer.free(slots);
    while let Some(next) = buffer.next() {
        wait_for_cluster(card, next);
    }
}

/// Frees the slots of a message's last packet, which was kept for a tail handler.
pub fn release_last(card: &Rc<impl Clustered>, slot: Option<u32>) {
    if let Some(buffer) = &card.scheduler().buffer {
        left_buffer(card, buffer, Slots { buffer: slot, cluster: None });
    }
}
