//! Messages between hosts over channels and the cards' ports: the host's side of `handlers/nfp/forward.c`.
//!
//! A file imports only from files above it in this table:
//!
//! | file | contents |
//! |---|---|
//! | `error.rs` | errors of messages |
//! | `envelope.rs` | the protocol unit: eager message, RTS (request to send), CTS (clear to send), credit |
//! | `lanes.rs` | the channels for bulk data |
//! | `progress.rs` | receives in progress |
//! | `mail.rs` | validation of envelopes |
//! | `network.rs` | the card's forwarding processes, and the channels to them |
//! | `serve.rs` | the start of a messenger, and the thread that receives envelopes |
//! | `here.rs` | messages of a host to itself |
//! | `send.rs` | a send: its envelope, then its bytes |
//! | `receive.rs` | a receive, from its post to its bytes |
//! | `seam.rs` | the messenger as the transport of the library of `send` and `recv` |
//!
//! The card's forwarding processes start with the first message: when the host sends or receives a message, or a
//! message arrives. Before that, the microengines are free for other processes.
//!
//! A message of at most [`INLINE`] bytes is eager: its bytes are in its envelope. A longer message uses rendezvous. The
//! sender sends an RTS. When the receive is posted, the receiver replies with a CTS that names a lane. The sender then
//! passes the bytes to its card in chunks.
//!
//! A message to the host itself does not use the card (`here.rs`), so a single host has a messenger, too.
//!
//! # Bounds
//! A host has at most [`WINDOW`] messages to each other host that no receive has taken. If several processes share the
//! library, the limit holds for each pair of processes. At the limit, `send` waits. Bytes outside envelopes are
//! transferred only after a receive has been posted. So a host that does not receive stalls only the hosts that send to
//! it, and its card always has room.
//!
//! # Failures
//! If a DMA transfer fails too often, its message fails at both hosts. Other messages are not affected. If the caller
//! drops a send before the send has a credit, the send has no effect. If the caller drops it later, the send still
//! completes. Guards free the resources of a send.

mod envelope;
mod error;
mod here;
mod lanes;
mod mail;
mod network;
mod progress;
mod receive;
mod seam;
mod send;
mod serve;

pub use envelope::INLINE;
pub use error::{Arrival, MessageError};
pub use mail::WINDOW;
pub use progress::Posted;

use crate::ProgramError;
use crate::card::{Card, Device};
use here::OwnMessage;
use mail::Mail;
use network::Network;
use nicety_hpu::Image;
use nicety_kernel::{Pool, Sim};
use nicety_nic_core::library::Library;
use nicety_nic_core::{BlockedSends, CardError, Pairs};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// Counters of invalid frames and envelopes of messages between hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessengerCounters {
    /// Invalid frames of messages between hosts, which were dropped.
    #[serde(rename = "frames_refused")]
    pub frames: u64,
    /// Invalid envelopes of messages between hosts, which were dropped.
    #[serde(rename = "envelopes_refused")]
    pub envelopes: u64,
}

/// The host's end of messages between hosts, and of messages of the host to itself.
pub struct Messenger {
    sim: Sim,
    /// The host's rank.
    own: u32,
    device: Device,
    /// The channels to the card's processes. `None` if there are no other hosts.
    network: Option<Network>,
    ranks: u32,
    /// The reason why messages to and from other ranks are unavailable.
    unfit: Option<CardError>,
    mail: Mail,
    pub(crate) library: Library<Messenger>,
    /// Keeps the messages of this host to itself in the order of sending.
    turn_here: Pool,
    /// Maps the number of each unfinished message of this host to itself to the message.
    here: RefCell<BTreeMap<u32, OwnMessage>>,
    refused: Cell<u64>,
}

impl Messenger {
    /// Whether a program has the processes that forward messages.
    pub fn is_of(image: &Image) -> bool {
        image.symbol("forward_port").is_some()
    }

    /// Returns the sends that wait for room in their window.
    pub(crate) fn blocked_sends(&self) -> Vec<BlockedSends> {
        self.mail.windows.blocked_sends()
    }

    /// Gives each pair of processes a window. By default, each host has one. Call this method before the first message.
    ///
    /// # Errors
    /// When the card's memory is too small.
    pub(crate) fn have_pairs(&self, pairs: Pairs) -> Result<(), ProgramError> {
        if self.mail.windows.pairs() != pairs {
            self.mail.windows.resize(pairs, WINDOW);
            if let Some(network) = &self.network {
                network.have_room(self.device.card(), self.ranks * pairs.count())?;
            }
        }
        Ok(())
    }

    /// Returns a messenger among `ranks` hosts, without a network to the other hosts.
    pub fn local(sim: &Sim, card: &Rc<Card>, ranks: u32) -> Rc<Messenger> {
        Rc::new(Messenger::new(sim, card, ranks, Ok(None)))
    }

    /// Returns a messenger that refuses messages to and from other ranks. `why` is the reason.
    pub(crate) fn unfit(sim: &Sim, card: &Rc<Card>, ranks: u32, why: CardError) -> Rc<Messenger> {
        Rc::new(Messenger::new(sim, card, ranks, Err(why)))
    }

    fn new(sim: &Sim, card: &Rc<Card>, ranks: u32, network: Result<Option<Network>, CardError>) -> Messenger {
        let own = sim.node().0;
        let (network, unfit) = match network {
            Ok(network) => (network, None),
            Err(why) => (None, Some(why)),
        };
        Messenger {
            sim: sim.clone(),
            own,
            device: card.open().patient(),
            network,
            ranks,
            unfit,
            mail: Mail::new(sim, own, ranks),
            library: Library::new(sim),
            turn_here: Pool::new(sim, 1),
            here: RefCell::default(),
            refused: Cell::new(0),
        }
    }

    /// Returns the channels to the card's processes. Only a messenger between hosts has them.
    fn network(&self) -> &Network {
        self.network.as_ref().expect("a messenger between hosts has a network")
    }
}

impl fmt::Debug for Messenger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messenger({} ranks)", self.ranks)
    }
}
