//! The disposition of packets (to handlers, to host memory, or dropped), and the handlers that are ready to run.

use crate::Card;
use crate::incoming::{Arrived, Disposition, LastPacket};
use crate::programs::program::Kind;
use nicety_portals::HeaderKind;
use nicety_types::{Path, Time};
use std::rc::Rc;

/// The position of a run's packet in each buffer, from the start of the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Offset in the packet buffer.
    pub(crate) buffer: Option<u32>,
    /// Offset in the memory of its cluster.
    pub(crate) cluster: Option<u32>,
}

/// The times at which the run of a packet got its places.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stay {
    /// The packet got slots in the packet buffer.
    pub(crate) admitted: Time,
    /// The run was assigned to a cluster.
    pub(crate) assigned: Time,
    /// The packet got slots in the cluster.
    pub(crate) placed: Time,
    /// The handler began.
    pub(crate) began: Time,
}

/// A handler ready to run.
pub(crate) struct Run {
    /// Index of its message among the messages in progress.
    pub(crate) place: usize,
    pub(crate) kind: Kind,
    /// The packet, for header and payload handlers.
    pub(crate) packet: Option<Arrived>,
    /// The path up to the time at which it became ready.
    pub(crate) path: Path,
    /// The slots of its packet, on a card with clusters, and the times of its allocations.
    pub(crate) slots: Slots,
    pub(crate) stay: Stay,
}

impl Run {
    /// Returns a run that is ready now.
    pub(crate) fn new(place: usize, kind: Kind, packet: Option<Arrived>, path: Path) -> Run {
        Run { place, kind, packet, path, slots: Slots::default(), stay: Stay::default() }
    }

    /// Returns the bytes of its packet.
    pub(crate) fn packet_bytes(&self) -> u64 {
        self.packet.as_ref().map_or(0, |packet| packet.payload.len())
    }
}

impl Card {
    /// Runs the header handler of a message on its first packet.
    pub(crate) fn run_header(self: &Rc<Card>, place: usize, packet: Arrived) {
        let path = packet.path.clone();
        self.ready(Run::new(place, Kind::Header, Some(packet), path));
    }

    /// Runs the completion handler of a message. On PsPIN it runs on the last packet.
    pub(crate) fn run_completion(self: &Rc<Card>, place: usize, path: Path, last: Option<Box<LastPacket>>) {
        self.contexts.completes();
        let (packet, slot) = last.map_or((None, None), |last| (Some(last.packet), last.slot));
        let run = Run::new(place, Kind::Completion, packet, path);
        self.ready(Run { slots: Slots { buffer: slot, cluster: None }, ..run });
    }

    /// Keeps a packet for a tail handler, if it is the last one of a message with a tail handler.
    pub(crate) fn keep_last(&self, place: usize, packet: Arrived, slot: Option<u32>) {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(place);
        if incoming.keeps(packet.offset, packet.payload.len()) {
            incoming.last = Some(Box::new(LastPacket { packet, slot }));
        }
    }

    /// Applies the disposition that the header handler has decided on the first packet.
    pub(crate) fn decide(
        self: &Rc<Card>,
        place: usize,
        first: Arrived,
        disposition: Disposition,
        path: &Path,
    ) {
        let mut waiting = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.disposition = disposition;
            incoming.path.follow(path);
            incoming.waiting.push_front(first);
            std::mem::take(&mut incoming.waiting)
        };
        for mut packet in waiting.drain(..) {
            packet.path.follow(path);
            self.sim.spawn(self.clone().settle(place, packet, disposition));
        }
        self.incoming.borrow_mut().get(place).waiting = waiting;
    }

    /// Applies the disposition to a packet, and frees its slot of the packet buffer.
    pub(crate) async fn settle(self: Rc<Card>, place: usize, packet: Arrived, disposition: Disposition) {
        match disposition {
            Disposition::Undecided => unreachable!("a packet is settled only once its disposition is known"),
            Disposition::Drop => {
                self.count_dropped(place, &packet);
                self.settled_unhandled(place, packet);
            }
            Disposition::Process | Disposition::Deposit if self.asks(place) => {
                // Boxed: it is rarer than a put, and would enlarge the task of every packet.
                Box::pin(self.serve(place, packet)).await;
            }
            Disposition::Process => {
                if self.kept(place, &packet) == 0 {
                    self.settled_unhandled(place, packet);
                } else {
                    let path = packet.path.clone();
                    self.ready(Run::new(place, Kind::Payload, Some(packet), path));
                }
            }
            Disposition::Deposit => self.deposit(place, packet).await,
        }
    }

    /// Settles a packet on which no packet handler runs.
    fn settled_unhandled(self: &Rc<Card>, place: usize, packet: Arrived) {
        let (offset, path) = (packet.offset, packet.path.clone());
        self.keep_last(place, packet, None);
        self.settled(place, offset, &path);
    }

    /// Returns whether a message needs more from the card than a write of its bytes.
    fn asks(&self, place: usize) -> bool {
        let kind = self.incoming.borrow_mut().get(place).header.kind;
        !matches!(kind, HeaderKind::Put | HeaderKind::Reply)
    }
}
