//! Large receive offload. The card joins consecutive frames of a connection before they go to host memory.
//!
//! A frame with payload waits for the next frame of its connection, at most for `receive.lro_time`. The waiting frame
//! goes to host memory, with the frames joined to it, in each of these cases:
//!
//! - A frame arrives that pushes (PSH) or does not continue the waiting frame.
//! - The joined frame has the maximum length.
//! - Frames of too many other connections wait.

use crate::card::Card;
use crate::stages;
use crate::xdp::Came;
use nicety_stack::{Parsed, TcpHeader};
use nicety_types::{Buffer, MessageId, Path, Payload};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The TCP flags of a frame that may wait: an acknowledgement alone (RFC 9293, 3.1).
const ACK: u8 = 0x10;

/// A frame on its way to host memory, or several joined ones.
pub(crate) struct Arriving {
    pub(crate) hash: usize,
    pub(crate) payload: Payload,
    /// Number of joined frames.
    pub(crate) frames: u64,
    /// Whether the card found its checksums valid.
    pub(crate) verified: bool,
    pub(crate) message: MessageId,
    pub(crate) path: Path,
    pub(crate) came: Came,
}

/// The waiting frames of a channel.
#[derive(Default)]
pub(crate) struct Joining {
    waiting: RefCell<VecDeque<Waiting>>,
    begun: Cell<u64>,
}

struct Waiting {
    /// The frame's number among all frames that waited.
    number: u64,
    bytes: Vec<u8>,
    /// The frame without its payload, which is in `bytes`.
    arriving: Arriving,
}

impl Waiting {
    fn into_arriving(self, card: &Card) -> Arriving {
        let Waiting { bytes, mut arriving, .. } = self;
        arriving.path.advance(stages::JOINING, card.sim.now());
        Arriving { payload: Payload::real(Buffer::copy_of(&bytes)), ..arriving }
    }
}

impl Card {
    /// Joins a frame to a waiting one, makes it wait, or writes it to host memory.
    pub(crate) async fn join(self: &Rc<Card>, arriving: Arriving, frame: &[u8]) {
        let channel = arriving.hash % self.receive.len();
        let joining = &self.receive[channel].joining;
        let held = {
            let mut waiting = joining.waiting.borrow_mut();
            let at = waiting.iter().position(|held| held.arriving.hash == arriving.hash);
            at.and_then(|at| waiting.remove(at))
        };
        let arriving = match held {
            None => arriving,
            Some(mut held) => {
                let most = self.spec.receive.lro as usize;
                if !nicety_stack::coalesce(&mut held.bytes, frame, most) {
                    self.write(held.into_arriving(self)).await;
                    arriving
                } else {
                    held.arriving.frames += 1;
                    (held.arriving.path, held.arriving.message) = (arriving.path, arriving.message);
                    if waits(frame) {
                        joining.waiting.borrow_mut().push_back(held);
                    } else {
                        self.write(held.into_arriving(self)).await;
                    }
                    return;
                }
            }
        };
        if !waits(frame) {
            return self.write(arriving).await;
        }
        let number = joining.begun.replace(joining.begun.get() + 1);
        let arriving = Arriving { payload: Payload::empty(), ..arriving };
        let oldest = {
            let mut waiting = joining.waiting.borrow_mut();
            let full = waiting.len() == self.spec.receive.lro_connections;
            let oldest = if full { waiting.pop_front() } else { None };
            waiting.push_back(Waiting { number, bytes: frame.to_vec(), arriving });
            oldest
        };
        let card = self.clone();
        self.sim.spawn(async move {
            card.sim.delay(card.spec.receive.lro_time).await;
            let late = {
                let mut waiting = card.receive[channel].joining.waiting.borrow_mut();
                let at = waiting.iter().position(|held| held.number == number);
                at.and_then(|at| waiting.remove(at))
            };
            if let Some(late) = late {
                card.write(late.into_arriving(&card)).await;
            }
        });
        if let Some(oldest) = oldest {
            self.write(oldest.into_arriving(self)).await;
        }
    }
}

/// Whether a frame may wait for the next one. Such a frame has payload, and no flag but an acknowledgement.
fn waits(frame: &[u8]) -> bool {
    let Some(ip) = Parsed::read(frame).ok().and_then(|parsed| parsed.ip) else { return false };
    let segment = &frame[ip.payload.clone()];
    !ip.fragment
        && ip.protocol == TCP
        && TcpHeader::read(segment).is_ok_and(|tcp| tcp.flags == ACK && tcp.length < segment.len())
}

/// TCP's protocol number in an IP packet.
const TCP: u8 = 6;
