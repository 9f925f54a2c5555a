//! A switch without credits: a queue before each output, in memory that can fill.
//!
//! A packet's head is routed and forwarded as in a switch with credits, if its output is free and not paused. The
//! packet occupies memory from the arrival of its head until its last byte has left. A packet without room is dropped
//! as a whole.

use super::memory::{Memory, Refusal};
use super::pause::{Pause, Paused, Pauser};
use super::{Counts, Dropped, Drops, LEAST, Plan, QueueStatistics, Wait};
use crate::capture::DropTap;
use crate::faults::{Cause, IsData, Losses, LostPacket, Place};
use crate::lane::Waiting;
use crate::link::Line;
use crate::switch::{Output, SwitchModel};
use crate::transit::{Span, Transit};
use crate::{LinkEnd, PortStatistics, Route, Routing, Symbol};
use nicety_kernel::{Handler, Signal, Sim, race};
use nicety_types::{Account, Duration, NodeId, Stage, Time};
use std::cell::{RefCell, RefMut};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// The state of a switch without credits.
pub(crate) struct Inside {
    sim: Sim,
    latency: Duration,
    routing: Box<dyn Routing>,
    plan: Plan,
    state: RefCell<State>,
    /// By output: notified when a packet has arrived for the output, or the far end has paused or resumed it.
    ready: Vec<Signal>,
    /// By input: notified when this switch has begun or ended a pause of the input's sender.
    paused: Vec<Signal>,
}

struct State {
    outputs: Vec<Output>,
    /// By output: the packets that wait.
    queues: Vec<VecDeque<Waiting>>,
    /// By output: the pauses that the far end has requested.
    stopped: Vec<Paused>,
    /// By input: the pauses that this switch has requested.
    pausers: Vec<Pauser>,
    memory: Memory,
    /// Departures of last bytes: time, output, input, and size in bytes.
    leaving: BinaryHeap<Reverse<(Time, u32, u32, u64)>>,
    inputs: Vec<Input>,
    counts: Vec<Counts>,
    dropped: Dropped,
}

/// The counters of received packets of an input.
#[derive(Clone, Copy, Debug, Default)]
struct Input {
    packets: u64,
    bytes: u64,
    held: u32,
    peak: u32,
}

impl Inside {
    /// Starts a switch with these link ends as ports.
    pub(crate) fn install(
        sim: Sim,
        latency: Duration,
        ends: Vec<LinkEnd>,
        routing: Box<dyn Routing>,
        plan: Plan,
    ) -> Rc<Inside> {
        let ports = ends.len();
        let signals = || (0..ports).map(|_| Signal::new(&sim)).collect();
        let (ready, paused) = (signals(), signals());
        let quanta = plan.pause.map_or(1, |pause| pause.quanta);
        let pausers = ends.iter().map(|end| Pauser::new(quanta, end.spec.gap)).collect();
        let (outputs, wires): (Vec<_>, Vec<_>) = ends.into_iter().map(Output::of).unzip();
        let state = RefCell::new(State {
            outputs,
            queues: (0..ports).map(|_| VecDeque::new()).collect(),
            stopped: vec![Paused::default(); ports],
            pausers,
            memory: Memory::new(plan, ports),
            leaving: BinaryHeap::new(),
            inputs: vec![Input::default(); ports],
            counts: vec![Counts::default(); ports],
            dropped: Dropped::default(),
        });
        let inside = Rc::new(Inside { sim, latency, routing, plan, state, ready, paused });
        for (port, wire) in wires.into_iter().enumerate() {
            // The wire keeps the handler alive. No credits arrive on this wire.
            drop(wire.handle(inside.clone(), port as u32));
            inside.sim.spawn(inside.clone().send(port));
            if plan.pause.is_some() {
                inside.sim.spawn(inside.clone().repeat_pauses(port));
            }
        }
        inside
    }

    /// Handles the arrival of a packet's head.
    fn enter(&self, from: usize, mut packet: Transit, tail: Time, slowest: Stage) {
        let now = self.sim.now();
        let Route { port: to, mark, .. } = self.routing.route(&packet, from);
        let state = &mut *self.state.borrow_mut();
        self.free(state, now);
        let bytes = state.outputs[from].framing[1].bytes(packet.bytes).max(LEAST);
        let input = &mut state.inputs[from];
        input.packets += 1;
        input.bytes += bytes;
        match state.memory.admit(from, to, bytes) {
            Err(refusal) => self.drop(state, (from, to), &packet, bytes, refusal),
            Ok(()) => {
                let input = &mut state.inputs[from];
                input.held += 1;
                input.peak = input.peak.max(input.held);
                // The switch is a stage with a latency and no gap: every byte leaves `latency` after its arrival.
                let span = Span { head: now + self.latency, tail: tail + self.latency, slowest };
                packet.trace.advance(Stage::SWITCH, span.head);
                packet.mark = mark;
                state.queues[to].push_back(Waiting { packet, from: (from as u32, 0), span });
                self.ready[to].notify_one();
            }
        }
        if self.plan.pause.is_some() {
            let over = state.memory.is_over(from) && !state.pausers[from].is_on();
            let pauser = &mut state.pausers[from];
            let said = if over { Some(pauser.begin(now)) } else { pauser.moves(true, now) };
            self.say(state, from, said);
        }
    }

    /// Drops a packet.
    fn drop(
        &self,
        state: &mut State,
        (from, to): (usize, usize),
        packet: &Transit,
        bytes: u64,
        refusal: Refusal,
    ) {
        let here = self.place(self.sim.node());
        let far = |port: usize| self.place(state.outputs[port].line.to());
        let (at, between, cause) = match refusal {
            Refusal::Full => (to, (here, far(to)), Cause::QueueFull(to as u32)),
            Refusal::NoHeadroom => (from, (far(from), here), Cause::NoHeadroom(from as u32)),
        };
        state.counts[at].dropped_packets += 1;
        state.counts[at].dropped_bytes += bytes;
        let packet = packet.packet();
        state.dropped.note(packet, LostPacket::new(packet, self.sim.now(), between, cause));
    }

    fn place(&self, node: NodeId) -> Place {
        Place::of(node, self.plan.hosts)
    }

    /// Frees the memory of packets that have left by now. Ends a pause if the occupancy is low enough.
    fn free(&self, state: &mut State, now: Time) {
        while let Some(Reverse((left, to, from, bytes))) = state.leaving.peek().copied() {
            if left > now {
                return;
            }
            state.leaving.pop();
            let from = from as usize;
            state.memory.leave(from, to as usize, bytes);
            state.inputs[from].held -= 1;
            if self.plan.pause.is_none() {
                continue;
            }
            state.pausers[from].moves(false, now);
            for input in 0..state.pausers.len() {
                if state.pausers[input].is_on() && state.memory.is_under(input) {
                    let said = state.pausers[input].end();
                    self.say(state, input, Some(said));
                }
            }
        }
    }

    /// Sends a pause frame after the packet that is being sent.
    fn say(&self, state: &mut State, port: usize, said: Option<Pause>) {
        let Some(said) = said else { return };
        state.outputs[port].pause(said, self.sim.now());
        state.counts[port].pauses_sent += 1;
        self.paused[port].notify_one();
    }

    /// Repeats the pauses of an input's sender; never returns.
    async fn repeat_pauses(self: Rc<Self>, port: usize) {
        loop {
            let next = self.state.borrow().pausers[port].next();
            match next {
                None => self.paused[port].wait().await,
                Some(next) if next > self.sim.now() => {
                    race(self.sim.until(next), self.paused[port].wait()).await;
                }
                Some(_) => {
                    let state = &mut *self.state.borrow_mut();
                    let said = state.pausers[port].repeat(self.sim.now());
                    self.say(state, port, Some(said));
                }
            }
        }
    }

    /// Sends the packets of an output; never returns.
    async fn send(self: Rc<Self>, port: usize) {
        loop {
            let now = self.sim.now();
            let start = {
                let state = self.state.borrow();
                let of = |waiting: &Waiting| {
                    let free = state.outputs[port].occupancy.free();
                    waiting.span.head.max(free).max(state.stopped[port].until())
                };
                state.queues[port].front().map(of)
            };
            match start {
                None | Some(Time::MAX) => self.ready[port].wait().await,
                Some(start) if start > now => {
                    race(self.sim.until(start), self.ready[port].wait()).await;
                }
                Some(_) => {
                    let left = self.forward(port, now);
                    self.sim.until(left).await;
                    self.free(&mut self.state.borrow_mut(), left);
                }
            }
        }
    }

    /// Sends the first packet of an output's queue. Returns the time at which its last byte leaves.
    fn forward(&self, port: usize, now: Time) -> Time {
        let state = &mut *self.state.borrow_mut();
        let Waiting { packet, from: (from, _), span } =
            state.queues[port].pop_front().expect("a packet waits");
        let output = &mut state.outputs[port];
        let bytes = output.framing[0].bytes(packet.bytes).max(LEAST);
        let came = state.outputs[from as usize].framing[1].bytes(packet.bytes).max(LEAST);
        let output = &mut state.outputs[port];
        let trace = output.line.duplicates().then(|| packet.trace.clone());
        let (left, again) = output.send(packet, bytes, span, now, Line::send);
        if let (Some(mut again), Some(trace)) = (again, trace) {
            again.trace = trace;
            output.send(*again, bytes, span, now, |line, packet, span, _| line.repeat(packet, span));
        }
        state.leaving.push(Reverse((left, port as u32, from, came)));
        left
    }

    /// Returns the counters of the switch's ports.
    pub(crate) fn queues(&self) -> Vec<QueueStatistics> {
        let state = self.state.borrow();
        let of = |(port, counts): (usize, &Counts)| QueueStatistics {
            at: self.place(self.sim.node()),
            port: port as u32,
            peer: self.place(state.outputs[port].line.to()),
            reason: if self.plan.pause.is_some() { Drops::Headroom } else { Drops::Queue },
            dropped_packets: counts.dropped_packets,
            dropped_bytes: counts.dropped_bytes,
            peak_bytes: state.memory.peak(port),
            pauses_sent: counts.pauses_sent,
            pauses_received: state.stopped[port].frames,
            paused: state.stopped[port].total(self.sim.now()),
        };
        state.counts.iter().enumerate().map(of).collect()
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

    /// Returns the paused ports with packets to send.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        let state = self.state.borrow();
        let waiting = state.queues.iter().zip(&state.stopped).enumerate();
        let waiting =
            waiting.filter(|(_, (queue, stopped))| !queue.is_empty() && stopped.until() == Time::MAX);
        let far = |port: usize| self.place(state.outputs[port].line.to());
        let wait = |(port, (queue, _)): (usize, (&VecDeque<Waiting>, _))| {
            let mut from: Vec<Place> = queue.iter().map(|waiting| far(waiting.from.0 as usize)).collect();
            from.sort_unstable();
            from.dedup();
            Wait { at: self.place(self.sim.node()), port: port as u32, peer: far(port), from }
        };
        waiting.map(wait).collect()
    }
}

impl SwitchModel for Inside {
    fn sim(&self) -> &Sim {
        &self.sim
    }

    fn outputs(&self) -> RefMut<'_, [Output]> {
        RefMut::map(self.state.borrow_mut(), |state| state.outputs.as_mut_slice())
    }

    fn is_idle(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        self.free(state, self.sim.now());
        state.memory.is_empty()
    }

    fn statistics(&self) -> Vec<PortStatistics> {
        let state = self.state.borrow();
        let of = |(output, input): (&Output, &Input)| PortStatistics {
            received_packets: input.packets,
            received_bytes: input.bytes,
            peak_buffer: input.peak,
            ..output.statistics()
        };
        state.outputs.iter().zip(&state.inputs).map(of).collect()
    }

    fn ethernet(&self) -> Option<&Inside> {
        Some(self)
    }
}

/// Handles packets and pauses as they arrive.
impl Handler<Symbol> for Inside {
    fn message(&self, port: u32, symbol: Symbol) {
        match symbol {
            Symbol::Head { packet, tail, slowest } => self.enter(port as usize, packet, tail, slowest),
            Symbol::Pause(pause) => {
                let state = &mut *self.state.borrow_mut();
                let gap = state.outputs[port as usize].gap;
                state.stopped[port as usize].hear(pause, self.sim.now(), gap);
                self.ready[port as usize].notify_one();
            }
            // A lost packet takes no memory here.
            Symbol::Lost(_) => {}
            Symbol::Packet(_) => unreachable!("switches are given heads"),
            Symbol::Barrier => unreachable!("a barrier symbol on a data link"),
        }
    }

    fn units(&self, _: u32) {
        unreachable!("no credits come on a link without any");
    }
}
