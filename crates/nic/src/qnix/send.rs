//! From a Send command to the link.

use super::Card;
use super::header::Header;
use super::interface::{Command, SendCommand, Source};
use super::library::Completed;
use super::receive::{Arrived, Slot};
use super::transfer::{Doorbell, Fetch, Released, Transfer};
use nicety_fabric::{Channel, Packet};
use nicety_kernel::Permit;
use nicety_types::{Flight, MessageId, NodeId, Path, Payload, Stage};
use std::rc::Rc;

/// A packet on its way out: a part of a message, and its place in the card's memory.
pub(super) struct Staged {
    /// None while a channel fetches them.
    bytes: Option<(Payload, Path)>,
    /// Where it is not in a Context Region.
    place: Option<Permit>,
    operation: u64,
    message: MessageId,
    destination: NodeId,
    header: Header,
    offset: u64,
    last: bool,
}

/// A packet for the link.
pub(super) struct Leaving {
    packet: Packet,
    place: Option<Permit>,
}

impl Card {
    /// Whether there is something to do for an interface.
    pub(super) fn has_work(&self, vni: u32) -> bool {
        let work = self.interface(vni, |interface| {
            !interface.commands.is_empty()
                || interface.staged.front().is_some_and(|staged| staged.bytes.is_some())
                || interface.sends.front().is_some_and(|send| self.can_stage(send))
        });
        work.unwrap_or(false)
    }

    fn can_stage(&self, send: &SendCommand) -> bool {
        match send.source {
            Source::Card(_) => true,
            Source::Host(_) => self.transfers.is_free() && self.staging.available() > 0,
        }
    }

    /// Takes one command of an interface, stages one packet of its oldest send, and hands one to the link.
    pub(super) async fn serve_interface(self: &Rc<Card>, vni: u32) {
        match self.interface(vni, |interface| interface.commands.pop_front()).flatten() {
            Some(Command::Send(mut send)) => {
                self.work(self.spec.program.command, &mut send.path).await;
                self.count(|counted| {
                    counted.sends += 1;
                    counted.programmed += u64::from(matches!(send.source, Source::Card(_)));
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
        self.hand_over(vni).await;
    }

    /// Has the next packet of an interface's oldest send staged, where there is a place and a channel.
    async fn stage(self: &Rc<Card>, vni: u32) {
        let front = self.interface(vni, |interface| {
            let can = interface.sends.front().is_some_and(|send| self.can_stage(send));
            if can { interface.sends.pop_front() } else { None }
        });
        let Some(mut send) = front.flatten() else { return };
        let offset = send.staged;
        let bytes = self.spec.packet.min(send.bytes - offset);
        send.staged += bytes;
        let header = Header { from: vni, to: send.to.vni, bytes: send.bytes, tag: send.tag };
        let (last, destination) = (send.staged == send.bytes, send.to.node);
        let (operation, message) = (send.operation, send.message);
        let mut staged =
            Staged { bytes: None, place: None, operation, message, destination, header, offset, last };
        let mut fetch = None;
        match &send.source {
            Source::Card(payload) => staged.bytes = Some((payload.part(offset, bytes), send.path)),
            Source::Host(address) => {
                let place = self.staging.acquire(1).await;
                Released::waited(&self.unstaged, Stage::SendQueued, message, &mut send.path);
                let channel = self.channel(message, &mut send.path).await;
                staged.place = Some(place);
                fetch = Some((address + offset, channel, send.path));
            }
        }
        let number = self.interface(vni, |interface| {
            interface.staged.push_back(staged);
            if !last {
                interface.sends.push_front(send);
            }
            interface.handed_over + interface.staged.len() as u64 - 1
        });
        if let (Some((address, channel, path)), Some(number)) = (fetch, number) {
            let fetch = Fetch { vni, number, message, address, bytes, path };
            self.sim.spawn(self.clone().fetch(fetch, channel));
        }
    }

    /// The bytes of a packet have been fetched.
    pub(super) fn fetched(&self, vni: u32, number: u64, payload: Payload, path: Path) {
        self.interface(vni, |interface| {
            let at = (number - interface.handed_over) as usize;
            interface.staged[at].bytes = Some((payload, path));
        });
    }

    /// Builds the header of an interface's next packet, and hands it to the link.
    async fn hand_over(self: &Rc<Card>, vni: u32) {
        let next = self.interface(vni, |interface| {
            let (payload, path) = interface.staged.front_mut()?.bytes.take()?;
            interface.handed_over += 1;
            Some((interface.staged.pop_front()?, payload, path))
        });
        let Some((staged, payload, mut path)) = next.flatten() else { return };
        let Staged { place, operation, message, destination, header, offset, last, .. } = staged;
        self.work(self.spec.program.header, &mut path).await;
        let packet = Packet {
            source: self.node,
            destination,
            message,
            channel: Channel::Data,
            offset,
            header: header.encode(),
            payload,
            path,
        };
        let leaving = Leaving { packet, place };
        self.leaving.try_send(leaving).expect("a place for every packet that may be staged");
        self.count(|counted| counted.packets_sent += 1);
        if last {
            let peer = super::Endpoint { node: destination, vni: header.to };
            let completed = Completed { peer, tag: header.tag, bytes: header.bytes, truncated: false };
            self.enqueue(Transfer::Doorbell(Doorbell { vni, operation, message, completed, path }));
        }
    }

    /// Puts packets on the link, one after another.
    pub(super) async fn transmit(self: Rc<Card>) {
        while let Some(Leaving { mut packet, place }) = self.leaving.recv().await {
            if packet.destination == self.node {
                packet.path.advance(Stage::LinkQueued, self.sim.now());
                self.arrived(Arrived { packet, slot: Slot::Staged(place) });
                continue;
            }
            let (message, path) = (packet.message, packet.path);
            let turn = self.port.turn(Flight::resting(path)).await;
            let handed = self.port.launch(packet, turn);
            self.sim.until(handed.at()).await;
            self.unstage(place, message, &handed);
        }
    }

    /// A packet's place is free again.
    pub(super) fn unstage(&self, place: Option<Permit>, message: MessageId, path: &Path) {
        if let Some(place) = place {
            if self.staging.available() == 0 {
                Released::note(&self.unstaged, message, path);
            }
            drop(place);
            self.changed.notify_all();
        }
    }
}
