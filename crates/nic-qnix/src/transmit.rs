//! The transmit path: from a Send command to the link.

use crate::interface::{Command, Completed, SendCommand, Slot, Source, Staged};
use crate::transfer::{Doorbell, Fetch, Transfer};
use crate::wire::Repr;
use crate::{Card, Endpoint};
use nicety_fabric::{Channel, Label, Packet};
use nicety_kernel::Permit;
use nicety_nic_core::parts::LastUse;
use nicety_types::{Flight, MessageId, Path, Payload, Stage};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Packets ready for the link.
#[derive(Default)]
pub(super) struct Departures {
    /// Interfaces for which the oldest staged packet is complete, in the order of completion.
    ready: RefCell<VecDeque<u32>>,
    /// Whether a packet occupies the link.
    occupied: Cell<bool>,
    left: LastUse,
}

impl Card {
    /// Whether an interface has work for the control program.
    pub(super) fn has_work(&self, vni: u32) -> bool {
        let work = self.interface(vni, |interface| {
            !interface.commands.is_empty() || interface.sends.front().is_some_and(|send| self.can_stage(send))
        });
        work.unwrap_or(false)
    }

    fn can_stage(&self, send: &SendCommand) -> bool {
        match send.source {
            Source::Card(_) => true,
            Source::Host(_) => self.transfers.is_free() && self.staging.available() > 0,
        }
    }

    /// Takes one command of an interface, and stages one packet of the interface's oldest send.
    pub(super) async fn serve_interface(self: &Rc<Card>, vni: u32) {
        match self.interface(vni, |interface| interface.commands.pop_front()).flatten() {
            Some(Command::Send(mut send)) => {
                self.work(self.spec.program.command, &mut send.path).await;
                self.count(|counted| {
                    counted.sends += 1;
                    counted.programmed_io_sends += u64::from(matches!(send.source, Source::Card(_)));
                });
                self.interface(vni, |interface| interface.sends.push_back(send));
            }
            Some(Command::Receive(mut receive)) => {
                self.work(self.spec.program.command, &mut receive.path).await;
                self.count(|counted| counted.receives += 1);
                self.post(vni, receive).await;
            }
            None => {}
        }
        self.stage(vni).await;
    }

    /// Stages the next packet of an interface's oldest send, if a slot and a channel are free.
    async fn stage(self: &Rc<Card>, vni: u32) {
        let front = self.interface(vni, |interface| {
            let can = interface.sends.front().is_some_and(|send| self.can_stage(send));
            if can { interface.sends.pop_front() } else { None }
        });
        let Some(mut send) = front.flatten() else { return };
        let offset = send.staged;
        let bytes = self.spec.packet.min(send.bytes - offset);
        send.staged += bytes;
        let (message, from) = (send.message, Endpoint { node: self.node, vni });
        let (to, number) = (send.to, message.sequence);
        let header = Repr { from, to, number, offset, bytes: send.bytes, tag: send.tag };
        let (operation, last) = (send.operation, send.staged == send.bytes);
        let mut staged = Staged { bytes: None, place: None, operation, header, last };
        let mut fetch = None;
        match &send.source {
            Source::Card(payload) => staged.bytes = Some((payload.part(offset, bytes), send.path.clone())),
            Source::Host(address) => {
                let place = self.staging.acquire(1).await;
                self.unstaged.waited(Stage::SEND_QUEUED, message, &mut send.path);
                let channel = self.channel(message, &mut send.path).await;
                staged.place = Some(place);
                fetch = Some((address + offset, channel, send.path.clone()));
            }
        }
        let number = self.interface(vni, |interface| {
            interface.staged.push_back(staged);
            if !last {
                interface.sends.push_front(send);
            }
            interface.handed_over + interface.staged.len() as u64 - 1
        });
        let Some(number) = number else { return };
        match fetch {
            Some((address, channel, path)) => {
                let fetch = Fetch { vni, number, message, address, bytes, path };
                self.sim.spawn(self.clone().fetch(fetch, channel));
            }
            None => self.whole(vni, number),
        }
    }

    /// Records that a channel has fetched the bytes of a packet.
    pub(super) fn fetched(&self, vni: u32, number: u64, payload: Payload, path: Path) {
        self.interface(vni, |interface| {
            let at = (number - interface.handed_over) as usize;
            interface.staged[at].bytes = Some((payload, path));
        });
        self.whole(vni, number);
    }

    /// Records that a staged packet is complete. If the packet is the oldest of its interface, the interface queues for
    /// the link.
    fn whole(&self, vni: u32, number: u64) {
        if self.interface(vni, |interface| interface.handed_over) == Some(number) {
            self.departures.ready.borrow_mut().push_back(vni);
        }
    }

    /// Whether a packet may go to the link: some packet is complete, and the previous packet has left.
    pub(super) fn may_leave(&self) -> bool {
        !self.departures.occupied.get() && !self.departures.ready.borrow().is_empty()
    }

    /// Takes the interface at the head of the queue, builds the header of its oldest packet, and hands the packet to
    /// the link. The link takes one packet at a time, so the hand-over begins only after the previous packet has left.
    pub(super) async fn hand_over(self: &Rc<Card>) {
        let Some(vni) = self.departures.ready.borrow_mut().pop_front() else { return };
        let next = self.interface(vni, |interface| {
            let (payload, path) = interface.staged.front_mut()?.bytes.take()?;
            interface.handed_over += 1;
            let staged = interface.staged.pop_front()?;
            let whole = interface.staged.front().is_some_and(|next| next.bytes.is_some());
            Some((staged, payload, path, whole.then_some(interface.handed_over)))
        });
        let Some((staged, payload, mut path, next)) = next.flatten() else { return };
        if let Some(next) = next {
            self.whole(vni, next);
        }
        let Staged { place, operation, header, last, .. } = staged;
        let (message, destination) = (header.message(), header.to.node);
        self.departures.left.waited(Stage::LINK_QUEUED, message, &mut path);
        self.work(self.spec.program.header, &mut path).await;
        let packet = Packet {
            label: Label { destination, message, offset: header.offset },
            channel: Channel::Data(0),
            header: header.emit(),
            payload,
            path: path.clone(),
        };
        if destination == self.node {
            self.arrived(packet, Slot::Staged { place, message });
        } else {
            self.departures.occupied.set(true);
            self.sim.spawn(self.clone().transmit(packet, place));
        }
        self.count(|counted| counted.packets_sent += 1);
        if last {
            let completed =
                Completed { peer: header.to, tag: header.tag, bytes: header.bytes, truncated: false };
            self.enqueue(Transfer::Doorbell(Doorbell { vni, operation, message, completed, path }));
        }
    }

    /// Sends a packet on the link when the receiver has a credit for it.
    async fn transmit(self: Rc<Card>, packet: Packet, place: Option<Permit>) {
        let (message, path) = (packet.label.message, packet.path.clone());
        let turn = self.port.turn(Flight::resting(path)).await;
        let handed = self.port.launch(packet, turn);
        self.sim.until(handed.at()).await;
        self.departures.occupied.set(false);
        self.departures.left.released(message, &handed);
        self.unstage(place, message, &handed);
        self.changed.notify_all();
    }

    /// Frees the staging slot of a packet.
    pub(super) fn unstage(&self, place: Option<Permit>, message: MessageId, path: &Path) {
        if let Some(place) = place {
            if self.staging.available() == 0 {
                self.unstaged.released(message, path);
            }
            drop(place);
            self.changed.notify_all();
        }
    }
}
