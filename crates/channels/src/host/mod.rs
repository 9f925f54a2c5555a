//! The host's end: the driver's state, and the calls of its threads.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | state, limits, effects |
//! | `calls.rs` | the threads' calls, pinned pages, deadlines |
//! | `arrive.rs` | messages in mailboxes that the card has written |
//! | `transfer.rs` | the page lists of indirect messages, and their retries |

mod arrive;
mod calls;
mod transfer;

use crate::timers::Timers;
use crate::{
    Body, Buffer, Channel, Completion, Deadline, Direction, DropReason, Error, Failure, Guard, MAILBOX_BYTES,
    Mailbox, Message, Page, Payload, ThreadId, Want,
};

/// The limits of the host's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostLimits {
    /// Maximum number of open channels. The card's limit must be at least as high.
    pub channels: u16,
    /// Number of threads that may make calls.
    pub threads: u16,
    /// Maximum size of a message in bytes.
    pub message_bytes: u32,
    /// Maximum number of retries of a page list after DMA errors. If they all fail, the host gives the message up.
    pub retries: u8,
}

impl Default for HostLimits {
    fn default() -> HostLimits {
        HostLimits { channels: 1024, threads: 1024, message_bytes: 1 << 30, retries: 3 }
    }
}

/// An action that the host's driver must carry out. The order of actions matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostEffect {
    /// Pin the pages of a thread's buffer and map them for the bus; then call [`Host::pinned`] or [`Host::pin_failed`].
    Pin {
        /// The owner of the memory.
        thread: ThreadId,
        /// The memory.
        buffer: Buffer,
    },
    /// Unmap and unpin the pages that were pinned for the thread.
    Unpin {
        /// The owner of the memory.
        thread: ThreadId,
    },
    /// Write the host's copy of a mailbox and ring the card's doorbell for it. Call [`crate::Card::ring`] when the ring arrives; rings must
    /// arrive in order. The copy stays readable under [`Host::mailbox`].
    Post {
        /// The mailbox.
        mailbox: Mailbox,
        /// The mailbox's new contents.
        bytes: [u8; MAILBOX_BYTES],
    },
    /// A page list failed and is posted again. This effect is for the log and needs no action.
    Retry {
        /// The thread that sends or receives the message.
        thread: ThreadId,
        /// The number of failures of this list so far.
        attempt: u8,
    },
    /// Wake a thread: its call has ended.
    Wake {
        /// The thread.
        thread: ThreadId,
        /// For a selection, the index of the guard. Otherwise zero.
        guard: u16,
        /// The result of the call.
        result: Result<Completion, Failure>,
    },
    /// The contents of a mailbox were dropped. This effect is for the log and needs no action.
    Drop {
        /// The mailbox.
        mailbox: Mailbox,
        /// The reason.
        reason: DropReason,
    },
}

/// The host's end of all channels of one card.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    limits: HostLimits,
    slots: Vec<Slot>,
    threads: Vec<Thread>,
    timers: Timers<ThreadId>,
    /// Mailboxes that the card has written since the last served interrupt, oldest first.
    arrived: Vec<Mailbox>,
}

/// The state of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot {
    generation: u16,
    state: SlotState,
    to_card: Lane,
    to_host: Lane,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SlotState {
    Free,
    Subscribing,
    Open,
    Closing,
}

/// One direction of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lane {
    /// The thread that is blocked in a call on this direction.
    user: Option<ThreadId>,
    /// To the card: number of the last exchange begun. To the host: number of the last exchange that a receiver took or
    /// the card withdrew.
    exchange: u16,
    /// Stamps of the last message written, and of the last message read.
    wrote: u16,
    read: u16,
    /// The host's copy of the mailbox, as the card fetches it.
    outbox: [u8; MAILBOX_BYTES],
    /// The bytes that the card has written, and whether the next interrupt must read them.
    inbox: [u8; MAILBOX_BYTES],
    arrived: bool,
    /// A message from the card that waits until a receiver calls.
    parked: Option<Offered>,
}

impl Default for Lane {
    fn default() -> Lane {
        let empty = [0; MAILBOX_BYTES];
        let (outbox, inbox) = (empty, empty);
        Lane { user: None, exchange: 0, wrote: 0, read: 0, outbox, inbox, arrived: false, parked: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Offered {
    exchange: u16,
    what: OfferedBody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OfferedBody {
    Direct(Payload),
    Indirect(u32),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    call: Call,
    deadline: Deadline,
    guards: Vec<Guard<Channel>>,
    transfer: Transfer,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Call {
    #[default]
    Idle,
    Subscribe(Channel),
    Close(Channel),
    Send(Channel, Want, Phase),
    Receive(Phase),
}

/// The phase of a call. `usize` is the index of the receiver's guard, or zero for a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The buffer is being pinned, and the host has not sent anything for this call. `expired` says that the deadline
    /// has passed.
    Pinning { expired: bool },
    /// The call waits for the other end.
    Waiting,
    /// The sender has asked to withdraw its message, which may already have been received.
    Cancelling,
    /// The receiver has taken a sender's message, and the receiver's buffer is being pinned.
    Committed(usize),
    /// Page lists are in flight.
    Moving(usize),
    /// The host has given the message up, and waits for the card's acknowledgement.
    GivingUp(usize),
}

/// The pages of a thread's indirect message, and the progress of its transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Transfer {
    pinned: bool,
    pages: Vec<Page>,
    size: u32,
    /// Number of bytes in the lists that succeeded. `first` and `count` are the first page and the number of pages of
    /// the list in flight.
    done: u32,
    first: usize,
    count: usize,
    /// Number of failures of the list in flight.
    attempts: u8,
}

impl Host {
    /// Returns the host's end, without open channels. Memory is allocated only at the first use.
    pub fn new(limits: HostLimits) -> Host {
        Host { limits, slots: Vec::new(), threads: Vec::new(), timers: Timers::new(), arrived: Vec::new() }
    }

    /// Returns the limits of this host.
    pub fn limits(&self) -> &HostLimits {
        &self.limits
    }

    /// Returns the host's current copy of a mailbox, which the card fetches.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if no channel has had this number.
    pub fn mailbox(&self, mailbox: Mailbox) -> Result<&[u8; MAILBOX_BYTES], Error> {
        self.slot_of(mailbox).map(|slot| &slot.lane(mailbox.direction).outbox)
    }

    /// Whether a thread is blocked in a call.
    pub fn is_blocked(&self, thread: ThreadId) -> bool {
        self.threads.get(thread.0 as usize).is_some_and(|t| t.call != Call::Idle)
    }

    /// Returns the earliest deadline of a call that waits for the other end. The driver calls [`Host::tick`] at this
    /// time.
    pub fn next_deadline(&self) -> Deadline {
        self.timers.next()
    }

    fn slot_of(&self, mailbox: Mailbox) -> Result<&Slot, Error> {
        let (number, count) = (u32::from(mailbox.channel), self.slots.len() as u32);
        self.slots.get(number as usize).ok_or(Error::NoSuch { what: "mailbox", number, count })
    }

    fn lane_mut(&mut self, mailbox: Mailbox) -> &mut Lane {
        self.slots[mailbox.channel as usize].lane_mut(mailbox.direction)
    }

    fn thread_mut(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.threads[thread.0 as usize]
    }

    /// Writes a message of exchange `exchange` into a mailbox.
    fn post(&mut self, mailbox: Mailbox, exchange: u16, body: Body, effects: &mut Vec<HostEffect>) {
        let lane = self.lane_mut(mailbox);
        lane.wrote = lane.wrote.wrapping_add(1);
        lane.outbox = Message { exchange, stamp: lane.wrote, body }.encode();
        effects.push(HostEffect::Post { mailbox, bytes: lane.outbox });
    }

    /// Begins the next exchange to the card with a message.
    fn post_next(&mut self, mailbox: Mailbox, body: Body, effects: &mut Vec<HostEffect>) {
        let lane = self.lane_mut(mailbox);
        lane.exchange = lane.exchange.wrapping_add(1);
        let exchange = lane.exchange;
        self.post(mailbox, exchange, body, effects);
    }

    /// Ends a thread's call: removes the thread from its channels, unpins its pages, and wakes it.
    fn end(
        &mut self,
        thread: ThreadId,
        guard: usize,
        result: Result<Completion, Failure>,
        effects: &mut Vec<HostEffect>,
    ) {
        self.leave(thread, None);
        self.stop_timer(thread);
        let state = self.thread_mut(thread);
        state.call = Call::Idle;
        state.guards.clear();
        if state.transfer.pinned {
            effects.push(HostEffect::Unpin { thread });
        }
        state.transfer.clear();
        effects.push(HostEffect::Wake { thread, guard: guard as u16, result });
    }

    /// Removes a thread from its lanes, except the lane of guard `keep`.
    fn leave(&mut self, thread: ThreadId, keep: Option<usize>) {
        let state = &self.threads[thread.0 as usize];
        match state.call {
            Call::Subscribe(channel) | Call::Close(channel) | Call::Send(channel, ..) => {
                self.slots[channel.index as usize].to_card.user = None;
            }
            Call::Receive(_) => {
                for (_, guard) in state.guards.iter().enumerate().filter(|(i, _)| Some(*i) != keep) {
                    // If this thread has already left the channel, another thread may be blocked there now.
                    let user = &mut self.slots[guard.from.index as usize].to_host.user;
                    user.take_if(|user| *user == thread);
                }
            }
            Call::Idle => {}
        }
    }

    fn stop_timer(&mut self, thread: ThreadId) {
        if let Some(at) = self.thread_mut(thread).deadline.take() {
            self.timers.stop(at, thread);
        }
    }
}

impl Slot {
    fn lane(&self, direction: Direction) -> &Lane {
        match direction {
            Direction::ToCard => &self.to_card,
            Direction::ToHost => &self.to_host,
        }
    }

    fn lane_mut(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::ToCard => &mut self.to_card,
            Direction::ToHost => &mut self.to_host,
        }
    }
}

impl Channel {
    fn mailbox(self, direction: Direction) -> Mailbox {
        Mailbox { channel: self.index, direction }
    }
}
