//! Messages that the library matches, above the receives of the card.
//!
//! A card with virtual network interfaces matches messages itself, holds a limited number of receives, and cannot
//! cancel a receive. A library with more receives, probes or cancellations therefore keeps the lists of receives and
//! messages itself. It uses the card's receives for messages in transfer. Half of the card's receives are for small
//! messages of any kind. Small messages arrive in pieces of the Buffer Pool, in the order in which the library posted
//! the card's receives. Each other receive of the card is for the bytes of one long message.
//!
//! A message that fits into a packet together with a header is sent at once. For a longer message, the sender's library
//! sends a request to send (RTS). The receiver's library posts a receive of the card for the program's own buffer, and
//! replies with a clear to send (CTS). The bytes then go to this buffer by the card's fastest transfer method. A
//! receive of the card is thus posted for a long message only when the bytes of the message are about to arrive.
//!
//! A thread of the library takes small messages. It spends the time to notice and to copy each message. A message
//! without a receive is copied to the library's memory.
//!
//! | file | contents |
//! |---|---|
//! | `header.rs` | the header before a small message |
//! | `receive.rs`, `send.rs` | the two ends of a message |
//!
//! | bits of the card's tag | field |
//! |---|---|
//! | 63 | 1 for a small message |
//! | 0..63 | for the bytes of a long message: the number of the message at its sender |

mod header;
mod receive;
mod send;

use crate::process::Process;
use crate::{Endpoint, QnixError};
use header::{HEADER, Header, Kind};
use nicety_kernel::{Credits, Pool};
use nicety_nic_core::library::{self, Announcements, Library, Transport, Types};
use nicety_nic_core::{CardError, Outgoing, Wanted};
use nicety_types::{NodeId, Path};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// Bit of the card's tag that marks small messages.
const SMALL: u64 = 1 << 63;
/// Maximum size in bytes of all messages without a receive: the memory size of the largest card.
const KEPT: u64 = 64 << 20;

type Receiving = library::Receiving<Messenger>;
type ArrivedMessage = library::ArrivedMessage<Body>;

/// A message that no receive has taken yet.
pub(crate) enum Body {
    /// The bytes of a small message.
    Small(Vec<u8>),
    /// The number of a long message at its sender.
    Long(u64),
}

impl Body {
    /// Returns the number of bytes that the message occupies in the library's memory.
    fn kept(&self) -> u64 {
        match self {
            Body::Small(bytes) => bytes.len() as u64,
            Body::Long(_) => 0,
        }
    }
}

/// The library of a host for `send` and `recv`.
pub(crate) struct Messenger {
    process: Rc<Process>,
    vni: u32,
    pub(crate) library: Library<Messenger>,
    /// Free contexts for sends. `receives` has the free contexts for receives of long messages.
    sends: Credits,
    receives: Credits,
    /// Addresses of free pieces of the Buffer Pool for outgoing small messages.
    pieces: RefCell<Vec<u64>>,
    free_pieces: Credits,
    /// Keeps small messages in the order of posting.
    turn: Pool,
    /// Number of bytes of messages that no receive has taken.
    kept: Cell<u64>,
    /// Number of long messages so far.
    long: Cell<u64>,
    /// Announced long messages. The CTS for a message has the number of bytes that the receiver requests.
    announced: Announcements<u64>,
}

impl Messenger {
    /// Returns the library of a process with an interface and a Buffer Pool. Starts the library's thread.
    ///
    /// # Errors
    /// When the Buffer Pool has no room for the library's pieces.
    pub(crate) fn start(process: &Rc<Process>, vni: u32) -> Result<Rc<Messenger>, QnixError> {
        let (sim, spec) = (&process.card().sim, process.card().spec());
        let small = (spec.limits.receives / 2).max(1);
        let piece = |bytes| process.pool_piece(bytes).map(|(pool, offset)| pool.address() + offset);
        let pieces = || (0..small).map(|_| piece(spec.packet)).collect::<Result<Vec<u64>, _>>();
        let (inbox, pieces) = (pieces()?, pieces()?);
        let messenger = Rc::new(Messenger {
            sends: Credits::new(sim, u64::from(spec.limits.sends)),
            receives: Credits::new(sim, u64::from(spec.limits.receives - small).max(1)),
            free_pieces: Credits::new(sim, pieces.len() as u64),
            pieces: RefCell::new(pieces),
            turn: Pool::new(sim, 1),
            library: Library::new(sim),
            kept: Cell::new(0),
            long: Cell::new(0),
            announced: Announcements::default(),
            process: process.clone(),
            vni,
        });
        sim.spawn(messenger.clone().run(inbox));
        Ok(messenger)
    }

    /// Returns the maximum size in bytes of a message that is sent at once, without its header.
    fn longest_small(&self) -> u64 {
        self.process.card().spec().packet - HEADER
    }

    fn endpoint(&self, rank: u32) -> Endpoint {
        Endpoint { node: NodeId(rank), vni: self.vni }
    }

    fn path(&self) -> Path {
        Path::from(self.process.card().sim.now())
    }

    /// Starts a task of the library. If the task fails, the whole library fails.
    fn spawn(self: &Rc<Self>, work: impl Future<Output = Result<(), CardError>> + 'static) {
        let own = self.clone();
        self.process.card().sim.spawn(async move {
            if let Err(error) = work.await {
                own.library.fail(error);
            }
        });
    }
}

impl Types for Messenger {
    type Body = Body;
    type Progress = ();
    type Failure = CardError;
    type Error = CardError;

    fn failed(failure: &CardError) -> CardError {
        failure.clone()
    }
}

impl Transport for Messenger {
    const SHOWS_WAITS: bool = true;
    const SHOWS_LOOKS: bool = false;

    fn library(&self) -> &Library<Messenger> {
        &self.library
    }

    fn check_send(&self, message: &Outgoing) -> Result<(), CardError> {
        self.process.check_peer(self.endpoint(message.to))?;
        self.process.check_bytes(message.address, message.bytes)?;
        self.library.failure().map_or(Ok(()), Err)
    }

    async fn send(
        self: &Rc<Self>,
        _thread: u32,
        message: Outgoing,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        if bytes > self.longest_small() {
            return self.send_long(message, path).await;
        }
        self.send_small(to, Header { kind: Kind::Whole, tag, bytes, number: 0 }, address, path).await
    }

    async fn call(&self, _thread: u32, path: &mut Path) {
        self.process.card().kernel().cpus().notice(path, None).await;
    }

    fn check_receive(self: &Rc<Self>, wanted: &Wanted) -> Result<(), CardError> {
        Ok(self.process.check_bytes(wanted.address, wanted.room)?)
    }

    fn deliver(self: &Rc<Self>, receiving: Rc<Receiving>, came: ArrivedMessage, path: Path) {
        self.kept.set(self.kept.get() - came.body.kept());
        self.bring(receiving, came, path);
    }
}
