//! The execution of commands of handlers written for PsPIN. The card's engines execute sends, DMA with the host, and
//! writes to host memory.
//!
//! An engine has a command from the time at which its arbiter grants a place until the response has left. In between,
//! the command's beats take cycles at the memories and at the host's port. The request for bytes takes half of a
//! command's latency. The delivery of the bytes takes the other half.

use crate::Card;
use nicety_host::BusSpec;
use nicety_kernel::{Permit, join_all};
use nicety_nic_processors::CommandsSpec;
use nicety_nic_processors::commands::transfers::Arriving;
use nicety_nic_processors::hpus::Thread;
use nicety_nic_processors::pspin::arbiter::{FROM_ENGINE, TO_ENGINE, Ticket};
use nicety_nic_processors::pspin::command_unit::Issued;
use nicety_nic_processors::pspin::lanes::{beats_at, bursts};
use nicety_nic_processors::pspin::streams::{Beats, User};
use nicety_nic_processors::stages;
use nicety_portals::{CtEvent, CtHandle, Header};
use nicety_types::{Duration, MessageId, Path, Payload, Resource, Stage, Starter, Time};
use std::collections::VecDeque;
use std::rc::Rc;

/// Size in bytes of a burst on a card without an interconnect spec, where engines do not wait for each other.
const WHOLE: u64 = 1 << 32;

/// An issued command.
pub(super) struct Command {
    pub(super) thread: Rc<Thread>,
    pub(super) issued: Rc<Issued>,
    /// The command's place among the commands of its core. This number is the handler's handle.
    pub(super) handle: usize,
    pub(super) ticket: Rc<Ticket>,
    pub(super) message: MessageId,
    pub(super) path: Path,
    /// The counter of the match entry, if the command has an event and the entry has a counter.
    pub(super) counter: Option<CtHandle>,
}

/// Bytes to send.
pub(super) struct Sending {
    /// The message of the sending handler.
    pub(super) of: MessageId,
    pub(super) header: Header,
    pub(super) payload: Payload,
    /// The lower 32 bits of the bytes' address.
    pub(super) low: u32,
    /// Maximum number of bytes of a packet.
    pub(super) most: u64,
}

/// A burst that is read from the card's memory, and then written to the host.
struct Write {
    /// The first cycle in which the host's port may take the first beat of the burst.
    at: u64,
    beats: u64,
    begin: u64,
    bytes: u64,
}

/// Returns two numbers of cycles. The first is from an engine grant to the request for bytes. The second is from the
/// arrival of the bytes to the end of the command. `latency` is the time of the command without its beats, in cycles.
fn halves(latency: u64) -> (u64, u64) {
    ((latency / 2).saturating_sub(TO_ENGINE), (latency - latency / 2).saturating_sub(FROM_ENGINE))
}

impl Card {
    /// Sends the packets of a command in order. Packets of other commands may go between these packets.
    pub(super) async fn send_packets(
        self: Rc<Card>,
        mut command: Command,
        sending: Sending,
        spec: CommandsSpec,
    ) {
        let Sending { of, header, payload, low, most } = sending;
        let grid = self.handlers.scheduler.grid();
        let granted = command.ticket.taken().await;
        let half = (spec.send / 2).saturating_sub(TO_ENGINE);
        let rest = spec.send - spec.send / 2;
        let (length, mut begin, mut asked) = (payload.len(), 0, granted + half);
        let sent = loop {
            let bytes = (length - begin).min(most);
            let slot = self.transmit.place().await;
            asked = asked.max(grid.from(self.sim.now()));
            let address = low.wrapping_add(begin as u32);
            let beats = self.handlers.scheduler.transfer(User::Sends, address, bytes, spec.beat, asked);
            let sent = beats.last + 1 + rest;
            let packet = Header { remote_offset: header.remote_offset + begin, length: bytes, ..header };
            let (card, piece, mut path) = (self.clone(), payload.part(begin, bytes), command.path.clone());
            self.sim.spawn(async move {
                card.sim.until(grid.at(sent)).await;
                path.advance(stages::COMMAND, card.sim.now());
                card.send_from_card(packet, piece, None, Some(slot), path, Starter::Handler(of));
            });
            begin += bytes;
            if begin >= length {
                break sent;
            }
            // The remaining packets go to the end of the queue, which issues one packet per cycle.
            asked += 1;
            self.sim.until(grid.at(asked).max(self.sim.now())).await;
        };
        self.sim.until(grid.at(sent.saturating_sub(FROM_ENGINE)).max(self.sim.now())).await;
        self.handlers.scheduler.engines().respond(&command.ticket).await;
        command.path.advance(stages::COMMAND, self.sim.now());
        self.command_done(command);
    }

    /// Copies bytes to host memory. `payload` has the bytes that were at `local` when the command was issued.
    pub(super) async fn copy_to_host(
        self: Rc<Card>,
        mut command: Command,
        (local, host): (u32, u64),
        payload: Payload,
        spec: CommandsSpec,
    ) {
        let grid = self.handlers.scheduler.grid();
        let (ask, rest) = halves(spec.to_host);
        let (burst, gap) = self.bursts();
        let mut next = command.ticket.taken().await + ask;
        let mut pieces = bursts(local.into(), host, payload.len(), burst).peekable();
        let mut writes: VecDeque<Write> = VecDeque::new();
        loop {
            let write_at = writes.front().map(|write| write.at);
            // A burst is read only when the previous burst is due, so that other engines have turns between the two
            // bursts.
            if let Some(&(begin, bytes)) = pieces.peek()
                && write_at.is_none_or(|at| next <= at + 1)
            {
                self.sim.until(grid.at(next.saturating_sub(1)).max(self.sim.now())).await;
                let address = local.wrapping_add(begin as u32);
                let read = self.handlers.scheduler.transfer(User::ToHost, address, bytes, spec.beat, next);
                let beats = beats_at(host + begin, bytes, spec.beat);
                let last = (read.last + 1 + rest).saturating_sub(beats);
                let port = self.handlers.scheduler.streams().host(true, last.max(read.first + rest), beats);
                writes.push_back(Write { at: port.first, beats, begin, bytes });
                next = read.last + 1 + gap;
                pieces.next();
            } else if let Some(write) = writes.pop_front() {
                self.sim.until(grid.at(write.at).max(self.sim.now())).await;
                self.write_burst(
                    &mut command,
                    host,
                    &payload,
                    &write,
                    writes.is_empty() && pieces.peek().is_none(),
                )
                .await;
            } else {
                break;
            }
        }
        if payload.is_empty() {
            self.sim.until(grid.at(next + rest)).await;
        }
        self.handlers.scheduler.engines().respond(&command.ticket).await;
        command.path.advance(Stage::DEPOSIT, self.sim.now());
        self.command_done(command);
    }

    /// Writes a burst to the host. Waits for the end of the write only if the burst is the `last` of its command.
    async fn write_burst(
        self: &Rc<Card>,
        command: &mut Command,
        host: u64,
        payload: &Payload,
        write: &Write,
        last: bool,
    ) {
        let Write { beats, begin, bytes, .. } = *write;
        let permit = match self.handlers.host_bursts.as_deref() {
            Some([writes, _]) => Some(writes.acquire(1).await),
            None => None,
        };
        command.path.advance(stages::COMMAND, self.sim.now());
        let begun = self.handlers.scheduler.grid().from(self.sim.now());
        let (message, path) = (command.message, command.path.clone());
        let whole = begin == 0 && bytes == payload.len();
        let piece = if whole { payload.clone() } else { payload.part(begin, bytes) };
        let handover = self.dma.write(message, host + begin, bytes, piece, path.clone());
        let done = handover.landed.max(self.handlers.scheduler.grid().at(begun + beats));
        self.recorder.slice(Resource::DMA, path.at(), done, Some(message), "write");
        if let Some(permit) = permit {
            self.release_at(permit, done + self.host_answer());
        }
        if last {
            self.sim.until(done).await;
            command.path.advance(Stage::DEPOSIT, done);
        }
    }

    /// Returns the time of the host's answer to a write.
    fn host_answer(&self) -> Duration {
        match &self.spec.bus {
            BusSpec::Plain(bus) => bus.latency,
            // The bridge to such a bus answers as soon as it has the bytes.
            BusSpec::Pcie(_) | BusSpec::Pci(_) => Duration::ZERO,
        }
    }

    /// Counts a burst as in flight until `done`.
    fn release_at(&self, permit: Permit, done: Time) {
        let sim = self.sim.clone();
        self.sim.spawn(async move {
            sim.until(done).await;
            drop(permit);
        });
    }

    /// Copies bytes of host memory to `local`.
    pub(super) async fn copy_from_host(
        self: Rc<Card>,
        mut command: Command,
        (host, local): (u64, u32),
        length: u64,
        spec: CommandsSpec,
    ) {
        let grid = self.handlers.scheduler.grid();
        let (ask, rest) = halves(spec.from_host);
        let (burst, gap) = self.bursts();
        let mut next = command.ticket.taken().await + ask;
        let mut done = next + rest;
        let mut reads = Vec::new();
        for (begin, bytes) in bursts(host, local.into(), length, burst) {
            let beats = beats_at(host + begin, bytes, spec.beat);
            let port = self.handlers.scheduler.streams().host(false, next, beats);
            reads.push(self.read_burst(
                &command,
                (host + begin, local.wrapping_add(begin as u32)),
                bytes,
                port,
                &spec,
            ));
            next = port.last + 1 + gap;
        }
        for (written, path) in join_all(reads).await {
            done = done.max(written + 1);
            command.path.follow(&path);
        }
        self.sim.until(grid.at(done).max(self.sim.now())).await;
        self.handlers.scheduler.engines().respond(&command.ticket).await;
        command.path.advance(Stage::FETCH, self.sim.now());
        self.command_done(command);
    }

    /// Reads a burst from the host. `port` has the cycles of the burst's beats at the host's port. Returns the cycle of
    /// the burst's last beat at the card's memory, and the path up to this beat's arrival.
    async fn read_burst(
        &self,
        command: &Command,
        (host, local): (u64, u32),
        bytes: u64,
        port: Beats,
        spec: &CommandsSpec,
    ) -> (u64, Path) {
        let grid = self.handlers.scheduler.grid();
        let (_, rest) = halves(spec.from_host);
        let beats = beats_at(host, bytes, spec.beat);
        self.sim.until(grid.at(port.first).max(self.sim.now())).await;
        let permit = match self.handlers.host_bursts.as_deref() {
            Some([_, reads]) => Some(reads.acquire(1).await),
            None => None,
        };
        let asked = grid.from(self.sim.now());
        let mut path = command.path.clone();
        path.advance(stages::COMMAND, self.sim.now());
        let from = path.at();
        let (payload, flight) = self.dma.read(command.message, host, bytes, path).await;
        let landed = flight.landed();
        self.recorder.slice(Resource::DMA, from, landed.at(), Some(command.message), "read");
        if let Some(permit) = permit {
            self.release_at(permit, landed.at());
        }
        let arrived = grid.from(landed.at()).max(asked + beats);
        let first = (arrived + rest).saturating_sub(beats).max(grid.from(self.sim.now()));
        let written = self.handlers.scheduler.transfer(User::FromHost, local, bytes, spec.beat, first);
        self.handlers.scheduler.streams().hold_packets(
            self.handlers.scheduler.target(local),
            asked,
            written.first,
        );
        command.issued.arriving.borrow_mut().push(Arriving { local, bytes: payload });
        (written.last, landed)
    }

    /// Writes bytes from registers to host memory.
    pub(super) async fn write_directly(
        self: Rc<Card>,
        mut command: Command,
        host: u64,
        payload: Payload,
        spec: CommandsSpec,
    ) {
        let grid = self.handlers.scheduler.grid();
        let (ask, rest) = halves(spec.to_host);
        let granted = command.ticket.taken().await;
        let beats = beats_at(host, payload.len(), spec.beat);
        let port = self.handlers.scheduler.streams().host(true, granted + ask + rest, beats);
        self.sim.until(grid.at(port.first).max(self.sim.now())).await;
        command.path.advance(stages::COMMAND, self.sim.now());
        let bytes = payload.len();
        let handover = self.dma.write(command.message, host, bytes, payload, command.path.clone());
        let from = command.path.at();
        self.recorder.slice(Resource::DMA, from, handover.landed, Some(command.message), "write");
        self.sim.until(handover.landed.max(grid.at(port.last + 1))).await;
        self.handlers.scheduler.engines().respond(&command.ticket).await;
        command.path.advance(Stage::DEPOSIT, self.sim.now());
        self.command_done(command);
    }

    /// Returns the size of a burst in bytes, and the number of cycles between two bursts of an engine.
    fn bursts(&self) -> (u64, u64) {
        self.spec.hpu.interconnect.map_or((WHOLE, 0), |spec| (spec.burst, spec.burst_gap))
    }

    /// Completes a command. A command with an event increments the counter of the match entry, if the entry has one.
    fn command_done(self: &Rc<Card>, command: Command) {
        let Command { thread, issued, handle, counter, path, .. } = command;
        thread.commands().done(handle, &issued);
        if let Some(counter) = counter {
            let by = CtEvent { success: 1, failure: 0 };
            self.with_effects(path, |interface, effects| {
                interface
                    .ct_inc(counter, by, effects)
                    .expect("the entry's counter lives as long as the entry");
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_up_a_command_with_its_way_to_and_from_the_engine() {
        for latency in 4..50 {
            let (ask, rest) = halves(latency);
            assert_eq!(TO_ENGINE + ask + rest + FROM_ENGINE, latency);
        }
        assert_eq!(halves(1), (0, 0));
    }
}
