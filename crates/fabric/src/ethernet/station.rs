//! A card's end of a link without credits.
//!
//! An arriving packet takes a slot of the card's packet buffer. Without pauses, a packet that finds no free slot is
//! dropped. With pauses, it waits in a queue. If the backlog reaches the size of the longest packet, the card pauses
//! the sender until the queue is empty. A packet that finds the queue full is dropped. Control packets need no slot and
//! never wait.

use super::pause::{Paused, Pauser};
use super::{Counts, Dropped, Drops, Plan, QueueStatistics, Wait};
use crate::capture::DropTap;
use crate::faults::{Cause, IsData, Losses, LostPacket, Place};
use crate::transmit::Transmit;
use crate::{Packet, PacketBox, Symbol};
use nicety_kernel::{Handler, Signal, Sim, race};
use nicety_types::{Stage, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A card's end of a link.
pub(crate) struct Station {
    sim: Sim,
    transmit: Rc<Transmit>,
    plan: Plan,
    slots: u32,
    state: RefCell<State>,
    /// Number of packets that wait for their turn to be sent.
    senders: Cell<u32>,
    /// Notified when a packet has arrived for the card.
    came: Signal,
    /// Notified when the far end has paused or resumed this end.
    changed: Signal,
    /// Notified when this end has begun or ended a pause of the far end.
    pausing: Signal,
}

/// A guard that counts a packet while it waits for its turn.
struct Waiting<'c>(&'c Cell<u32>);

impl<'c> Waiting<'c> {
    fn new(count: &'c Cell<u32>) -> Waiting<'c> {
        count.set(count.get() + 1);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

struct State {
    /// Packets that have a slot, and control packets.
    ready: VecDeque<PacketBox>,
    /// Packets that wait for a slot, each with its size on the wire in bytes.
    waiting: VecDeque<(PacketBox, u64)>,
    waiting_bytes: u64,
    peak_bytes: u64,
    slots_used: u32,
    stopped: Paused,
    pauser: Pauser,
    counts: Counts,
    dropped: Dropped,
}

impl Station {
    /// Returns a card's end of a link, with this number of slots.
    pub(crate) fn new(sim: &Sim, transmit: Rc<Transmit>, plan: Plan, slots: u32) -> Rc<Station> {
        let quanta = plan.pause.map_or(1, |pause| pause.quanta);
        let state = RefCell::new(State {
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            peak_bytes: 0,
            slots_used: 0,
            stopped: Paused::default(),
            pauser: Pauser::new(quanta, transmit.gap()),
            counts: Counts::default(),
            dropped: Dropped::default(),
        });
        let signal = || Signal::new(sim);
        let (came, changed, pausing) = (signal(), signal(), signal());
        let senders = Cell::new(0);
        let sim = sim.clone();
        let station = Rc::new(Station { sim, transmit, plan, slots, state, senders, came, changed, pausing });
        if plan.pause.is_some() {
            station.sim.spawn(station.clone().repeat_pauses());
        }
        station
    }

    /// Waits until `head`, and until the link is free and not paused.
    pub(crate) async fn turn(&self, head: Time) {
        let _waiting = Waiting::new(&self.senders);
        loop {
            let start = head.max(self.transmit.free()).max(self.state.borrow().stopped.until());
            if start == Time::MAX {
                self.changed.wait().await;
            } else if start > self.sim.now() {
                race(self.sim.until(start), self.changed.wait()).await;
            } else {
                return;
            }
        }
    }

    /// Returns the next packet for the card.
    pub(crate) async fn receive(&self) -> PacketBox {
        loop {
            let next = self.state.borrow_mut().ready.pop_front();
            match next {
                Some(packet) => return packet,
                None => self.came.wait().await,
            }
        }
    }

    /// Frees a slot of the card's packet buffer.
    pub(crate) fn free_slot(&self) {
        let (state, now) = (&mut *self.state.borrow_mut(), self.sim.now());
        state.slots_used -= 1;
        let Some((mut packet, bytes)) = state.waiting.pop_front() else { return };
        state.waiting_bytes -= bytes;
        packet.path.advance(Stage::LINK_QUEUED, now);
        state.take_slot(packet);
        self.came.notify_one();
        state.pauser.moves(false, now);
        if state.waiting.is_empty() && state.pauser.is_on() {
            let said = state.pauser.end();
            self.say(state, Some(said));
        }
    }

    /// Handles an arriving packet.
    fn arrive(&self, packet: PacketBox) {
        let (state, now) = (&mut *self.state.borrow_mut(), self.sim.now());
        let bytes = self.transmit.received(packet.payload.len());
        if packet.is_control() {
            state.ready.push_back(packet);
            self.transmit.meter(bytes, state.slots_used);
            return self.came.notify_one();
        }
        // If a slot is free, no packet waits.
        if state.slots_used < self.slots {
            state.take_slot(packet);
            self.transmit.meter(bytes, state.slots_used);
            return self.came.notify_one();
        }
        self.transmit.meter(bytes, state.slots_used);
        // The queue has room for the packet that triggers the pause, a backlog just below the threshold, and the bytes
        // that still arrive.
        let room = self.plan.pause.map_or(0, |pause| 2 * self.plan.largest + pause.needed);
        if state.waiting_bytes + bytes > room {
            self.drop(state, &packet, bytes);
        } else {
            state.waiting_bytes += bytes;
            state.peak_bytes = state.peak_bytes.max(state.waiting_bytes);
            state.waiting.push_back((packet, bytes));
        }
        if self.plan.pause.is_some() {
            let over = state.waiting_bytes >= self.plan.largest && !state.pauser.is_on();
            let said = if over { Some(state.pauser.begin(now)) } else { state.pauser.moves(true, now) };
            self.say(state, said);
        }
    }

    fn drop(&self, state: &mut State, packet: &Packet, bytes: u64) {
        state.counts.dropped_packets += 1;
        state.counts.dropped_bytes += bytes;
        state.dropped.note(
            packet,
            LostPacket::new(packet, self.sim.now(), (self.peer(), self.here()), Cause::CardFull),
        );
    }

    fn here(&self) -> Place {
        Place::of(self.sim.node(), self.plan.hosts)
    }

    fn peer(&self) -> Place {
        Place::of(self.transmit.to(), self.plan.hosts)
    }

    fn say(&self, state: &mut State, said: Option<super::Pause>) {
        let Some(said) = said else { return };
        self.transmit.pause(said, self.sim.now());
        state.counts.pauses_sent += 1;
        self.pausing.notify_one();
    }

    /// Repeats the pauses that this end requests; never returns.
    async fn repeat_pauses(self: Rc<Self>) {
        loop {
            let next = self.state.borrow().pauser.next();
            match next {
                None => self.pausing.wait().await,
                Some(next) if next > self.sim.now() => {
                    race(self.sim.until(next), self.pausing.wait()).await;
                }
                Some(_) => {
                    let state = &mut *self.state.borrow_mut();
                    let said = state.pauser.repeat(self.sim.now());
                    self.say(state, Some(said));
                }
            }
        }
    }

    /// The counters of the port.
    pub(crate) fn queue(&self) -> QueueStatistics {
        let state = self.state.borrow();
        let Counts { dropped_packets, dropped_bytes, pauses_sent } = state.counts;
        QueueStatistics {
            at: self.here(),
            port: 0,
            peer: self.peer(),
            reason: Drops::Card,
            dropped_packets,
            dropped_bytes,
            peak_bytes: state.peak_bytes,
            pauses_sent,
            pauses_received: state.stopped.frames,
            paused: state.stopped.total(self.sim.now()),
        }
    }

    /// Passes the log of dropped packets to `read`.
    pub(crate) fn losses<T>(&self, read: impl FnOnce(&Losses) -> T) -> T {
        read(&self.state.borrow().dropped.losses)
    }

    /// Sets the test for packets with data that is never sent again.
    pub(crate) fn set_data(&self, is_data: IsData) {
        self.state.borrow_mut().dropped.losses.set_data(is_data);
    }

    /// Captures dropped packets from now on.
    pub(crate) fn tap(&self, taps: Vec<DropTap>) {
        self.state.borrow_mut().dropped.taps = taps;
    }

    /// Returns the port if it has packets to send, and is paused until a frame resumes it. If the card has paused the
    /// far end, received packets wait for this port.
    pub(crate) fn waits(&self) -> Option<Wait> {
        let state = self.state.borrow();
        let waits = state.stopped.until() == Time::MAX && self.senders.get() > 0;
        let from = if state.pauser.is_on() { vec![self.peer()] } else { Vec::new() };
        waits.then(|| Wait { at: self.here(), port: 0, peer: self.peer(), from })
    }
}

impl State {
    fn take_slot(&mut self, packet: PacketBox) {
        self.slots_used += 1;
        self.ready.push_back(packet);
    }
}

/// Handles arriving symbols.
impl Handler<Symbol> for Station {
    fn message(&self, _: u32, symbol: Symbol) {
        match symbol {
            Symbol::Packet(packet) => self.arrive(packet),
            Symbol::Pause(pause) => {
                let state = &mut *self.state.borrow_mut();
                state.stopped.hear(pause, self.sim.now(), self.transmit.gap());
                self.changed.notify_all();
            }
            // A lost packet takes no slot here.
            Symbol::Lost(_) => {}
            Symbol::Head { .. } => unreachable!("cards are given whole packets"),
            Symbol::Barrier => unreachable!("a barrier symbol on a data link"),
        }
    }

    fn units(&self, _: u32) {
        unreachable!("no credits come on a link without any");
    }
}
