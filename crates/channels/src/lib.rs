//! CSP channels between the threads of a host and the processes of a card, as in the NFComms framework.
//!
//! Source: Pennefather, Bradshaw and Irwin, SACJ 31(2), 2019. Messages are synchronous: both calls end after the
//! transfer. Direct messages of at most 56 bytes go through mailboxes, and indirect messages of any size by DMA. A few
//! managers serve any number of channels.
//!
//! This crate models no time, memory or bus. A driver has one [`Host`], and a card one [`Card`]. Each accepts the calls
//! of its programs and the completions of earlier effects. It returns new effects: the actions that driver and card
//! must carry out, and that take time there. So the same two state machines run with a simulated clock, in tests with
//! every order of events, and in a real driver.
//!
//! # Layers, from the bottom
//! - [`TargetId`], [`Channel`], [`ThreadId`], [`ContextId`], [`Mailbox`], [`Want`], [`Guard`] (`names.rs`): the parties and operands of
//!   calls.
//! - [`Error`]: the reason for a refused call, which changes nothing. [`Failure`]: the failure of a call that had begun.
//! - [`Message`] (`message.rs`): the contents of a mailbox, and their encoding in 64 bytes.
//! - [`Host`] (`host/`): the driver's end. [`HostEffect`]: pin, post, unpin, wake.
//! - [`Card`] (`card/`): the managers and the contexts' calls. [`CardEffect`]: fetch, ask, deliver, collect, DMA, push, interrupt, signal.
//!
//! # A channel
//! A process of the card registers a target. A thread of the host subscribes to the target's ID, and gets a channel to
//! it. The channel carries messages in both directions. Each direction has a mailbox, with one copy on the host and one
//! on the card. For a message to the card, the driver writes the host's copy, and a manager fetches it. For a message
//! to the host, a manager writes the host's copy: it pushes the message. The *read managers* serve all messages to the
//! card. The *write managers* serve all messages to the host, including replies.
//!
//! A message stays in the receiver's mailbox until the receiver calls. So a selection needs no agreement with other
//! processes, but it may contain only receives, as in occam. Both ends must name the same size and the same kind.
//!
//! # A direct message to the card
//! 1. [`Host::send`]: the driver writes its mailbox and rings the doorbell ([`HostEffect::Post`]).
//! 2. A read manager fetches the mailbox ([`CardEffect::Fetch`]). If no reader has called, the message stays in the
//!    card's mailbox, and the manager serves other channels.
//! 3. When a reader has called, a manager moves the bytes into the reader's transfer registers
//!    ([`CardEffect::Deliver`]), signals the reader, pushes the reply ([`CardEffect::Push`]), and raises the interrupt.
//! 4. [`Host::interrupt`] finds the reply and wakes the sender.
//!
//! # A direct message to the host
//! A write manager collects the bytes from the writer ([`CardEffect::Collect`]), pushes them into the host's mailbox
//! and raises the interrupt. The bytes stay there until a thread receives them. Then the driver posts the reply, and a
//! manager fetches the reply and signals the writer. The thread's call ends without waiting for this signal.
//!
//! # An indirect message
//! The driver pins the host's pages ([`HostEffect::Pin`]), and posts them in lists of up to six pages. A list is a
//! mailbox message of its own kind. When the reader has called, a manager
//!
//! - asks the reader for address and size of its buffer ([`CardEffect::Ask`]), but only for the first list of a
//!   message,
//! - begins one DMA per page ([`CardEffect::Dma`]), and waits for all of them,
//! - replies with the number of bytes transferred, the number of bytes outstanding, and a status.
//!
//! The host posts the next list. After a DMA error it posts the same list again, up to [`HostLimits::retries`] times.
//! If the last retry fails, the host gives the message up, and the card acknowledges that. After the last list, the
//! calls of both ends return, and the pages are unpinned ([`HostEffect::Unpin`]).
//!
//! For a message to the host, the card needs the host's addresses first. The card pushes an offer with the size, and
//! the host answers with lists. The writer's next message may overwrite the card's last reply in the mailbox. The host
//! then treats the new message as that reply.
//!
//! A call may have a deadline, in the driver's own unit. The driver passes the current time to [`Host::tick`] and
//! [`Card::tick`]. The deadline limits the wait for the other end. At its deadline, a receiver's call ends at once. A
//! sender's message is already at the other side, so the sender asks to withdraw it. The reply says whether the message
//! was withdrawn or received. Both ends always agree. A transfer that has begun runs to its end, and the limit of
//! retries limits its duration.
//!
//! # Guarantees
//! A manager never waits for a call of the other end. So a blocked channel blocks no other channel, even if there is
//! only one manager. At most one manager at a time serves a channel's direction. `tests/explore.rs` visits every state
//! of small configurations, with every order of events, and checks:
//!
//! - every run ends;
//! - no run ends while both ends of a channel wait;
//! - no call ends successfully before the other end has called;
//! - the received bytes are the sent bytes;
//! - at the end of a run, all managers are idle and all pages are unpinned.
//!
//! # Rules for a driver
//! - A mailbox is transferred as a whole. No ring of a doorbell is lost, and rings arrive in order.
//! - Call [`Card::done`] for a push only after the bytes are in the host's copy. Raise the interrupt after that.
//! - One interrupt may serve several mailboxes. An interrupt without a new mailbox has no effect.
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
//! A selection cannot contain sends. A card has one host. A buffer on the card is one contiguous range of addresses.

mod card;
mod completion;
mod error;
mod host;
mod message;
mod names;
mod timers;

pub use card::{Card, CardEffect, CardLimits};
pub use completion::Completion;
pub use error::{Error, Failure};
pub use host::{Host, HostEffect, HostLimits};
pub use message::{
    BUS_ADDRESS_BITS, Body, CARD_ADDRESS_BITS, DropReason, LIST_PAGES, MAILBOX_BYTES, Message, MessageError,
    PAGE_BYTES, PAYLOAD_BYTES, Page, PageList, Payload, Reply, Status,
};
pub use names::{
    Buffer, Channel, ContextId, Deadline, Direction, Guard, Kind, Mailbox, ManagerId, TargetId, ThreadId,
    Want,
};
