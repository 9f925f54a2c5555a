//! The card's end: managers that serve every channel, and the calls of the target processes.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | state, limits, effects |
//! | `calls.rs` | the contexts' calls and deadlines |
//! | `managers.rs` | assignment of channels to managers, and the stages of an exchange |
//! | `requests.rs` | fetched mailboxes, and their requests |

mod calls;
mod managers;
mod requests;

use crate::timers::Timers;
use crate::{
    Body, Completion, ContextId, Deadline, Direction, DropReason, Error, Failure, Guard, MAILBOX_BYTES,
    Mailbox, ManagerId, PageList, Payload, TargetId, Want,
};
use std::collections::{BTreeMap, VecDeque};

/// The limits of the card's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CardLimits {
    /// Channels with mailboxes; at least as many as the host has.
    pub channels: u16,
    /// Target IDs that can be registered.
    pub targets: u16,
    /// Hardware contexts that may be blocked in a call.
    pub contexts: u16,
    /// Managers for messages to the card.
    pub read_managers: u8,
    /// Managers for messages to the host.
    pub write_managers: u8,
    /// Bytes of one message.
    pub message_bytes: u32,
}

impl Default for CardLimits {
    fn default() -> CardLimits {
        CardLimits {
            channels: 1024,
            targets: 1024,
            contexts: 480,
            read_managers: 8,
            write_managers: 8,
            message_bytes: 1 << 30,
        }
    }
}

/// An action for the card. An action with a manager occupies that manager until the named completion; other actions have no completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CardEffect {
    /// Read the host's copy of a mailbox over the bus; then call [`Card::fetched`].
    Fetch {
        /// The manager.
        manager: ManagerId,
        /// The mailbox.
        mailbox: Mailbox,
    },
    /// Ask the reader for the address and size of its memory, once per message; then call [`Card::done`].
    Ask {
        /// The manager.
        manager: ManagerId,
        /// The context to ask.
        context: ContextId,
    },
    /// Move a direct message into the context's transfer registers; then call [`Card::done`].
    Deliver {
        /// The manager.
        manager: ManagerId,
        /// The receiving context.
        context: ContextId,
        /// The message.
        payload: Payload,
    },
    /// Take a direct message, or the address and size of an indirect one, out of the context's transfer registers; then call
    /// [`Card::done`].
    Collect {
        /// The manager.
        manager: ManagerId,
        /// The sending context.
        context: ContextId,
    },
    /// Move one page's bytes between host and card; then call [`Card::dma_done`]. All DMAs of a list begin together, and may end in any
    /// order.
    Dma {
        /// The manager.
        manager: ManagerId,
        /// The index of the page in the list, from zero.
        entry: u8,
        /// The direction.
        direction: Direction,
        /// The bus address of the first byte.
        host: u64,
        /// The address of the first byte on the card, 40 bits.
        card: u64,
        /// The number of bytes.
        bytes: u32,
    },
    /// Write the host's copy of a mailbox over the bus. When the bytes have arrived, call [`crate::Host::deposit`], then [`Card::done`].
    Push {
        /// The manager.
        manager: ManagerId,
        /// The mailbox.
        mailbox: Mailbox,
        /// Its new contents.
        bytes: [u8; MAILBOX_BYTES],
    },
    /// Raise the interrupt, which all channels share.
    Interrupt,
    /// End a context's call: signal it.
    Signal {
        /// The context.
        context: ContextId,
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

/// The card's end of all channels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Card {
    limits: CardLimits,
    targets: Vec<Target>,
    by_id: BTreeMap<TargetId, u16>,
    slots: Vec<Slot>,
    contexts: Vec<Context>,
    timers: Timers<ContextId>,
    readers: Group,
    writers: Group,
}

/// The managers of one direction, and the queue of channels that wait for one. A channel is queued at most once, which bounds the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    managers: Vec<Manager>,
    ready: VecDeque<u16>,
}

/// The stage of a manager, and its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Manager {
    channel: u16,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Stage {
    #[default]
    Idle,
    Fetch,
    Ask,
    Deliver,
    Collect,
    /// DMAs are in flight for the pages in the bits of `pending`.
    Move {
        list: PageList,
        pending: u8,
        failed: bool,
    },
    /// The mailbox write is in flight.
    Push,
}

/// The far end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Target {
    id: TargetId,
    channel: Option<u16>,
    reader: Option<ContextId>,
    writer: Option<ContextId>,
}

/// The card's side of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Slot {
    target: Option<u16>,
    /// The host has closed the channel, and a write manager still serves it.
    closing: bool,
    to_card: Lane,
    to_host: Lane,
}

/// One direction of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Lane {
    /// The doorbell has rung, and no manager has fetched the mailbox yet.
    rung: bool,
    /// In the queue of channels that wait for a manager.
    queued: bool,
    /// Served by a manager. At most one serves a lane, so a mailbox is never written twice at once.
    served: bool,
    /// To the card: the last exchange known. To the host: the last exchange begun.
    exchange: u16,
    /// Stamps of the last message written, and of the last message read.
    wrote: u16,
    read: u16,
    state: LaneState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum LaneState {
    #[default]
    Idle,
    /// To the card: a message is in the mailbox, and its reader has not called yet.
    Parked(Body),
    /// To the host: the message was collected, and its push has begun or ended.
    Offered { withdraw: bool },
    /// To the host: the host was asked for a withdrawal.
    Withdrawn,
    /// Both ends of an indirect message are in the exchange, and `done` bytes of its lists have succeeded.
    Met { done: u32 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Context {
    call: Call,
    deadline: Deadline,
    guards: Vec<Guard<TargetId>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Call {
    #[default]
    Idle,
    Read {
        /// The guard that met its sender.
        met: Option<usize>,
    },
    Write {
        target: u16,
        want: Want,
        payload: Payload,
    },
}

impl Card {
    /// Returns a card with no target registered.
    ///
    /// # Errors
    /// [`Error::Limit`] if there is no read or no write manager.
    pub fn new(limits: CardLimits) -> Result<Card, Error> {
        for (name, count) in
            [("read_managers", limits.read_managers), ("write_managers", limits.write_managers)]
        {
            if count == 0 {
                return Err(Error::Limit {
                    name,
                    must: "at least 1, or no message in its direction is ever moved",
                });
            }
        }
        let group =
            |count: u8| Group { managers: vec![Manager::default(); count.into()], ready: VecDeque::new() };
        Ok(Card {
            limits,
            targets: Vec::new(),
            by_id: BTreeMap::new(),
            slots: Vec::new(),
            contexts: Vec::new(),
            timers: Timers::new(),
            readers: group(limits.read_managers),
            writers: group(limits.write_managers),
        })
    }

    /// Returns the limits of this card.
    pub fn limits(&self) -> &CardLimits {
        &self.limits
    }

    /// Registers a target: an ID for the far end of a channel, to which a host can subscribe. A process with several channels registers
    /// several targets.
    ///
    /// # Errors
    /// [`Error::TargetExists`], [`Error::NoSpace`].
    pub fn register(&mut self, id: TargetId) -> Result<(), Error> {
        let limit = self.limits.targets;
        if self.by_id.contains_key(&id) {
            return Err(Error::TargetExists(id));
        }
        if self.targets.len() >= limit as usize {
            return Err(Error::NoSpace { what: "target", name: "targets", limit: limit.into() });
        }
        self.by_id.insert(id, self.targets.len() as u16);
        self.targets.push(Target { id, channel: None, reader: None, writer: None });
        Ok(())
    }

    /// Whether a context is blocked in a call.
    pub fn is_blocked(&self, context: ContextId) -> bool {
        self.contexts.get(context.0 as usize).is_some_and(|c| c.call != Call::Idle)
    }

    /// Returns the number of idle managers of a direction.
    pub fn idle_managers(&self, direction: Direction) -> usize {
        self.group(direction).managers.iter().filter(|m| m.stage == Stage::Idle).count()
    }

    /// Returns the mailbox that a manager works on, or `None` if the manager is idle or does not exist.
    pub fn serving(&self, manager: ManagerId) -> Option<Mailbox> {
        let &Manager { channel, stage } =
            self.group(manager.direction).managers.get(manager.index as usize)?;
        (stage != Stage::Idle).then_some(Mailbox { channel, direction: manager.direction })
    }

    /// Returns the earliest deadline of a call that waits for the other end; call [`Card::tick`] then.
    pub fn next_deadline(&self) -> Deadline {
        self.timers.next()
    }

    fn group(&self, direction: Direction) -> &Group {
        match direction {
            Direction::ToCard => &self.readers,
            Direction::ToHost => &self.writers,
        }
    }

    fn group_mut(&mut self, direction: Direction) -> &mut Group {
        match direction {
            Direction::ToCard => &mut self.readers,
            Direction::ToHost => &mut self.writers,
        }
    }

    fn lane(&self, mailbox: Mailbox) -> &Lane {
        let slot = &self.slots[mailbox.channel as usize];
        match mailbox.direction {
            Direction::ToCard => &slot.to_card,
            Direction::ToHost => &slot.to_host,
        }
    }

    fn lane_mut(&mut self, mailbox: Mailbox) -> &mut Lane {
        let slot = &mut self.slots[mailbox.channel as usize];
        match mailbox.direction {
            Direction::ToCard => &mut slot.to_card,
            Direction::ToHost => &mut slot.to_host,
        }
    }

    /// Returns the context at the card's end of a lane.
    fn user(&self, mailbox: Mailbox) -> Option<ContextId> {
        let target = &self.targets[self.slots[mailbox.channel as usize].target? as usize];
        match mailbox.direction {
            Direction::ToCard => target.reader,
            Direction::ToHost => target.writer,
        }
    }

    /// Ends a context's call: takes it off its targets, and signals it.
    fn end(
        &mut self,
        context: ContextId,
        guard: usize,
        result: Result<Completion, Failure>,
        effects: &mut Vec<CardEffect>,
    ) {
        self.leave(context, None);
        self.stop_timer(context);
        let state = &mut self.contexts[context.0 as usize];
        state.call = Call::Idle;
        state.guards.clear();
        effects.push(CardEffect::Signal { context, guard: guard as u16, result });
    }

    /// Takes a context off its targets, except the target of guard `keep`.
    fn leave(&mut self, context: ContextId, keep: Option<usize>) {
        let state = &self.contexts[context.0 as usize];
        match state.call {
            Call::Idle => {}
            Call::Write { target, .. } => self.targets[target as usize].writer = None,
            Call::Read { .. } => {
                for (_, guard) in state.guards.iter().enumerate().filter(|(i, _)| Some(*i) != keep) {
                    // If the context left this target before, another context may be there now.
                    let reader = &mut self.targets[self.by_id[&guard.from] as usize].reader;
                    reader.take_if(|reader| *reader == context);
                }
            }
        }
    }

    fn stop_timer(&mut self, context: ContextId) {
        if let Some(at) = self.contexts[context.0 as usize].deadline.take() {
            self.timers.stop(at, context);
        }
    }
}
