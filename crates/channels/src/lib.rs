//! CSP channels between the threads of a host and the processes of a card, as the NFComms framework has them
//! (Pennefather, Bradshaw and Irwin, SACJ 31(2), 2019): synchronous messages of at most 56 bytes in mailboxes, and
//! indirect messages of any size by DMA, over a few managers that serve any number of channels.
//!
//! There is no time, no memory and no bus in here. A driver has one [`Host`], a card one [`Card`]. Each takes
//! the calls of its programs and the completions of its earlier effects, and answers with effects: the next
//! actions, each of which takes its time elsewhere. So the same two machines run under a simulated clock,
//! under every order of events that a test can think of, and under a live driver.
//!
//! # Layers, from the bottom
//! - [`TargetId`], [`Channel`], [`ThreadId`], [`ContextId`], [`Mailbox`], [`Want`], [`Guard`] (`names.rs`):
//!   the parties and operands of calls.
//! - [`Error`]: why a call is refused, with nothing changed. [`Failure`]: how a call that was begun can fail.
//! - [`Message`] (`message.rs`): the contents of a mailbox, and its 64 bytes.
//! - [`Host`] (`host/`): the driver's end. [`HostEffect`]: pin, post, unpin, wake.
//! - [`Card`] (`card/`): the managers and the contexts' calls. [`CardEffect`]: fetch, ask, deliver, collect, DMA,
//!   push, interrupt, signal.
//!
//! # A channel
//! A process of the card registers a target; a thread of the host subscribes to its ID, and has a channel,
//! which joins one with one and carries messages both ways. Each direction has a mailbox, of which both sides
//! have a copy. The host's copy to the card is written by the driver and fetched by a manager; the host's
//! copy to the host is pushed by a manager. *Read managers* serve all messages to the card and *write
//! managers* all messages to the host, the replies to them included.
//!
//! The two ends meet at the receiver: a message waits in the receiver's mailbox until the receiver comes. So
//! a selection needs no agreement with other parties, and only receives can be selected from, as in occam.
//! Both ends must name the same size and the same kind.
//!
//! # A direct message to the card
//! 1. [`Host::send`]: the driver writes its mailbox and rings ([`HostEffect::Post`]).
//! 2. A read manager fetches the mailbox ([`CardEffect::Fetch`]). If no reader has come, the message stays in the
//!    card's mailbox and the manager goes on to other channels; the reader's call will find it.
//! 3. With the reader there, a manager moves the bytes into the reader's transfer registers
//!    ([`CardEffect::Deliver`]), signals the reader, pushes the reply ([`CardEffect::Push`]), and raises the
//!    interrupt.
//! 4. [`Host::interrupt`] finds the reply and wakes the sender.
//!
//! # A direct message to the host
//! A write manager collects the bytes from the writer ([`CardEffect::Collect`]), pushes them into the host's
//! mailbox and raises the interrupt. They stay there until a thread receives; then the driver posts the reply,
//! a manager fetches it, and signals the writer. The thread need not wait for that: the writer has come.
//!
//! # An indirect message
//! The driver pins the host's pages ([`HostEffect::Pin`]) and posts them, six a list: this is a direct message of
//! another kind. When it has met its reader, a manager asks that for address and size ([`CardEffect::Ask`]), begins
//! one DMA a page ([`CardEffect::Dma`]), waits for all, and replies with the bytes done, the bytes outstanding and
//! a status. The host posts the next six; or the same again, up to [`HostLimits::retries`] times, if a DMA
//! failed; or gives up, which the card acknowledges. A manager keeps nothing from one list to the next, and asks the
//! context again for each. After the last list both ends are woken and the pages are
//! unpinned ([`HostEffect::Unpin`]).
//!
//! To the host there is one message more, since the host's addresses must travel first: the card pushes an offer
//! of so many bytes, and the host answers with lists. A writer that goes on to its next message may write over its
//! last reply; the host takes the new message for it.
//!
//! A call may have one, in the driver's own unit, and [`Host::tick`] and [`Card::tick`] pass the current
//! time. It bounds the wait for the other end. A receiver just leaves. A sender's message is at the other
//! side, so the sender withdraws it and learns the outcome: timed out, or received after all. Both ends
//! always agree. Once both have come, a transfer runs to its end, which the limit of retries bounds.
//!
//! # Guarantees
//! A manager never waits for an end that has not come, so a blocked channel blocks no other, with one manager as
//! with eight. A channel is served by one manager at a time. `tests/explore.rs` visits every state of small
//! configurations, in every order in which things can happen, and checks that no run goes on for ever, that none
//! ends while both ends of a channel wait, that no end goes on before the other has come, that the bytes are the
//! ones that were sent, and that managers and pages are free in the end.
//!
//! # Rules for a driver
//! - A mailbox is transferred whole, and so are the rings: none is lost, and they get to the card in order.
//! - [`Card::done`] of a push is called when the bytes are in the host's copy or later, and the interrupt comes after
//!   that.
//! - Several interrupts may be served as one; an interrupt too many does no harm.
//!
//! ```
//! use nicety_channels::*;
//!
//! let (mut host, mut card) = (Host::new(HostLimits::default()), Card::new(CardLimits::default())?);
//! let (thread, context, target) = (ThreadId(0), ContextId(0), TargetId(7));
//! let (mut of_host, mut of_card) = (Vec::new(), Vec::new());
//! let mut log = Vec::new();
//!
//! card.register(target)?;
//! let channel = host.subscribe(thread, target, &mut of_host)?;
//! for step in 0..2 {
//!     if step == 1 {
//!         host.send(thread, channel, b"hello", None, &mut of_host)?;
//!         card.read(context, target, 5, None, &mut of_card)?;
//!     }
//!     // A driver that needs no time for anything.
//!     while !(of_host.is_empty() && of_card.is_empty()) {
//!         for effect in std::mem::take(&mut of_host) {
//!             match effect {
//!                 HostEffect::Post { mailbox, .. } => card.ring(mailbox, &mut of_card)?,
//!                 HostEffect::Wake { result, .. } => log.push(format!("host: {} bytes", result?.bytes)),
//!                 other => panic!("no such thing in a direct message: {other:?}"),
//!             }
//!         }
//!         for effect in std::mem::take(&mut of_card) {
//!             match effect {
//!                 CardEffect::Fetch { manager, mailbox } => {
//!                     card.fetched(manager, host.mailbox(mailbox)?, &mut of_card)?;
//!                 }
//!                 CardEffect::Deliver { manager, .. } => card.done(manager, &mut of_card)?,
//!                 CardEffect::Push { manager, mailbox, bytes } => {
//!                     host.deposit(mailbox, &bytes)?;
//!                     card.done(manager, &mut of_card)?;
//!                 }
//!                 CardEffect::Interrupt => host.interrupt(&mut of_host),
//!                 CardEffect::Signal { result, .. } => {
//!                     log.push(format!("card: {}", String::from_utf8_lossy(&result?.payload)));
//!                 }
//!                 other => panic!("no such thing in a direct message: {other:?}"),
//!             }
//!         }
//!     }
//! }
//! assert_eq!(log, ["host: 0 bytes", "card: hello", "host: 5 bytes"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//! Selection among sends; several hosts of one card; scattered memory on the card.

mod card;
mod error;
mod host;
mod message;
mod names;
mod timers;

pub use card::{Card, CardEffect, CardLimits};
pub use error::{Error, Failure};
pub use host::{Host, HostEffect, HostLimits};
pub use message::{
    BUS_ADDRESS_BITS, Body, CARD_ADDRESS_BITS, DropReason, LIST_PAGES, MAILBOX_BYTES, Message, MessageError,
    PAGE_BYTES, PAYLOAD_BYTES, Page, PageList, Payload, Reply, Status,
};
pub use names::{
    Buffer, Channel, Completion, ContextId, Deadline, Direction, Guard, Kind, Mailbox, ManagerId, TargetId,
    ThreadId, Want,
};
