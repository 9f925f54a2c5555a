//! The card's end: the managers, which serve all channels, and the calls of the card's processes.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | state, limits, effects |
//! | `calls.rs` | the contexts' calls and deadlines |
//! | `managers.rs` | assignment of channels to managers, and the steps of an exchange |
//! | `requests.rs` | messages in fetched mailboxes |

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
    /// Maximum number of channels with mailboxes. It must be at least that of the host.
    pub channels: u16,
    /// Maximum number of registered targets.
    pub targets: u16,
    /// Number of hardware contexts.
    pub contexts: u16,
    /// Number of managers for messages to the card.
    pub read_managers: u8,
    /// Number of managers for messages to the host.
    pub write_managers: u8,
    /// Maximum size of a message in bytes.
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

/// An action that the card must carry out. An action with a manager occupies the manager until the named completion
/// call. Other actions have no completion call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CardEffect {
    /// Read the host's copy of a mailbox over the bus; then call [`Card::fetched`].
    Fetch {
        /// The manager.
        manager: ManagerId,
        /// The mailbox.
        mailbox: Mailbox,
    },
    /// Ask the reader for the address and size of its buffer, once per message; then call [`Card::done`].
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
    /// Read a direct message, or the address and size of an indirect message, from the context's transfer registers;
    /// then call [`Card::done`].
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
        /// The mailbox's new contents.
        bytes: [u8; MAILBOX_BYTES],
    },
    /// Raise the interrupt, which all channels share.
    Interrupt,
    /// Signal a context: its call has ended.
    Signal {
        /// The context.
        context: ContextId,
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

/// The managers of one direction, and the queue of channels that wait for a manager. A channel is queued at most once,
/// which limits the queue's length.
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
    /// DMAs are in flight. Each bit of `pending` stands for a page.
    Move {
        list: PageList,
        pending: u8,
        failed: bool,
    },
    /// The mailbox write is in flight.
    Push,
}

/// The card's end of a channel, and the contexts that are blocked there.
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
    /// Whether the host has closed the channel, but the card cannot release it yet.
    closing: bool,
    to_card: Lane,
    to_host: Lane,
}

/// One direction of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Lane {
    /// Whether the doorbell has rung and no manager has begun to fetch the mailbox.
    rung: bool,
    /// Whether the lane is in the queue of channels that wait for a manager.
    queued: bool,
    /// Whether a manager serves the lane. At most one manager does, so two managers never write a mailbox at the same
    /// time.
    served: bool,
    /// To the card: number of the last exchange that the card has seen. To the host: number of the last exchange begun.
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
    /// To the card: a message is in the mailbox, and has not been delivered yet.
    Parked(Body),
    /// To the host: the card offers a message. Its collect or push is in flight, or has ended. `withdraw` says that the
    /// writer's deadline has passed.
    Offered { withdraw: bool },
    /// To the host: the card has asked the host to withdraw the message.
    Withdrawn,
    /// Both ends of an indirect message take part in the exchange. `done` is the number of bytes in page lists that
    /// succeeded.
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
        /// The index of the guard from which the reader has taken a message.
        met: Option<usize>,
    },
    Write {
        target: u16,
        want: Want,
        payload: Payload,
    },
}

impl Card {
    /// Returns a card without registered targets.
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

    /// Registers a target: an ID for the card's end of a channel. A host subscribes to this ID. A process with several
    /// channels registers several targets.
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

    /// Returns the earliest deadline of a call that waits for the other end. The driver calls [`Card::tick`] at this
    /// time.
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

    /// Returns the context that is blocked at the card's end of a lane.
    fn user(&self, mailbox: Mailbox) -> Option<ContextId> {
        let target = &self.targets[self.slots[mailbox.channel as usize].target? as usize];
        match mailbox.direction {
            Direction::ToCard => target.reader,
            Direction::ToHost => target.writer,
        }
    }

    /// Ends a context's call: removes the context from its targets, and signals it.
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

    /// Removes a context from its targets, except the target of guard `keep`.
    fn leave(&mut self, context: ContextId, keep: Option<usize>) {
        let state = &self.contexts[context.0 as usize];
        match state.call {
            Call::Idle => {}
            Call::Write { target, .. } => self.targets[target as usize].writer = None,
            Call::Read { .. } => {
                for (_, guard) in state.guards.iter().enumerate().filter(|(i, _)| Some(*i) != keep) {
                    // If this context has already left the target, another context may be blocked there now.
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
