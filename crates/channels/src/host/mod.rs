//! The host's end: the driver's state, and the calls of its threads.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | state, limits, effects |
//! | `calls.rs` | the threads' calls, pinned pages, deadlines |
//! | `arrive.rs` | mailboxes that the card wrote, and the ends of exchanges |
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
    /// Channels that are open at a time. The card needs at least as many.
    pub channels: u16,
    /// Threads that may be blocked in a call.
    pub threads: u16,
    /// Bytes of one message.
    pub message_bytes: u32,
    /// Retries of one page list after DMA errors. After these the message is given up.
    pub retries: u8,
}

impl Default for HostLimits {
    fn default() -> HostLimits {
        HostLimits { channels: 1024, threads: 1024, message_bytes: 1 << 30, retries: 3 }
    }
}

/// An action for the host's driver. Take the actions in their order.
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
        /// Its new contents.
        bytes: [u8; MAILBOX_BYTES],
    },
    /// A page list failed and is posted again. For the log; no action is needed.
    Retry {
        /// The owner of the message.
        thread: ThreadId,
        /// The number of failures of this list.
        attempt: u8,
    },
    /// End a thread's call: wake it from its wait queue.
    Wake {
        /// The thread.
        thread: ThreadId,
        /// For a selection: the index of the guard; else zero.
        guard: u16,
        /// The result of the call.
        result: Result<Completion, Failure>,
    },
    /// A mailbox was dropped. For the log; no action is needed.
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
    /// Mailboxes written since the last interrupt was served, oldest first.
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
    /// The thread that sends or receives here.
    user: Option<ThreadId>,
    /// To the card: the last exchange begun. To the host: the last exchange matched or withdrawn.
    exchange: u16,
    /// Stamps of the last message written, and of the last message read.
    wrote: u16,
    read: u16,
    /// The host's copy of the mailbox, as the card fetches it.
    outbox: [u8; MAILBOX_BYTES],
    /// The bytes the card wrote, and whether the next interrupt has to read them.
    inbox: [u8; MAILBOX_BYTES],
    arrived: bool,
    /// A message from the card that waits for its receiver.
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
    /// The buffer is being pinned, and the card has no message of this call yet. `expired` says that the deadline has passed.
    Pinning { expired: bool },
    /// The call waits for the other end.
    Waiting,
    /// The sender asked to withdraw; its message may have been received.
    Cancelling,
    /// The receiver met its sender, and its buffer is being pinned.
    Committed(usize),
    /// Page lists are in flight.
    Moving(usize),
    /// The host has told the card that no more lists will come.
    GivingUp(usize),
}

/// The pages of a thread's indirect message, and its progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Transfer {
    pinned: bool,
    pages: Vec<Page>,
    size: u32,
    /// Bytes of the lists that succeeded, and the first page and the number of pages of the list in flight.
    done: u32,
    first: usize,
    count: usize,
    /// Failures of the list in flight.
    attempts: u8,
}

impl Host {
    /// Opens a device: returns the host's end, with no channel open. Nothing is allocated before its first use.
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
    /// [`Error::NoSuch`] if no channel had this number yet.
    pub fn mailbox(&self, mailbox: Mailbox) -> Result<&[u8; MAILBOX_BYTES], Error> {
        self.slot_of(mailbox).map(|slot| &slot.lane(mailbox.direction).outbox)
    }

    /// Whether a thread is blocked in a call.
    pub fn is_blocked(&self, thread: ThreadId) -> bool {
        self.threads.get(thread.0 as usize).is_some_and(|t| t.call != Call::Idle)
    }

    /// Returns the earliest deadline of a call that waits for the other end; call [`Host::tick`] then.
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

    /// Writes a message of `exchange` into a mailbox.
    fn post(&mut self, mailbox: Mailbox, exchange: u16, body: Body, effects: &mut Vec<HostEffect>) {
        let lane = self.lane_mut(mailbox);
        lane.wrote = lane.wrote.wrapping_add(1);
        lane.outbox = Message { exchange, stamp: lane.wrote, body }.encode();
        effects.push(HostEffect::Post { mailbox, bytes: lane.outbox });
    }

    /// Begins the next exchange to the card.
    fn post_next(&mut self, mailbox: Mailbox, body: Body, effects: &mut Vec<HostEffect>) {
        let lane = self.lane_mut(mailbox);
        lane.exchange = lane.exchange.wrapping_add(1);
        let exchange = lane.exchange;
        self.post(mailbox, exchange, body, effects);
    }

    /// Ends a thread's call: takes it off its channels, unpins its pages, and wakes it.
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

    /// Takes a thread off its lanes, except the lane of guard `keep`.
    fn leave(&mut self, thread: ThreadId, keep: Option<usize>) {
        let state = &self.threads[thread.0 as usize];
        match state.call {
            Call::Subscribe(channel) | Call::Close(channel) | Call::Send(channel, ..) => {
                self.slots[channel.index as usize].to_card.user = None;
            }
            Call::Receive(_) => {
                for (_, guard) in state.guards.iter().enumerate().filter(|(i, _)| Some(*i) != keep) {
                    // If the thread left this channel before, another thread may be there now.
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
