//! A host, a card and the bus between them. Several steps may be in flight, and a test chooses the step that ends next.
//! Tests choose by hand, at random, or in every possible way.

use nicety_channels::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One call of a program. Channels have numbers: channel `n` joins the host to target `100 + n`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Send {
        on: usize,
        kind: Kind,
        bytes: u32,
        deadline: Deadline,
    },
    /// With one guard, a plain receive. With several guards, a selection.
    Receive {
        guards: Vec<(usize, Kind, u32)>,
        deadline: Deadline,
    },
    /// Only for threads of the host.
    Subscribe {
        on: usize,
    },
    Close {
        on: usize,
    },
}

pub fn send(on: usize, bytes: u32) -> Op {
    Op::Send { on, kind: Kind::Direct, bytes, deadline: None }
}

pub fn send_indirect(on: usize, bytes: u32) -> Op {
    Op::Send { on, kind: Kind::Indirect, bytes, deadline: None }
}

pub fn receive(on: usize, bytes: u32) -> Op {
    Op::Receive { guards: vec![(on, Kind::Direct, bytes)], deadline: None }
}

pub fn receive_indirect(on: usize, bytes: u32) -> Op {
    Op::Receive { guards: vec![(on, Kind::Indirect, bytes)], deadline: None }
}

impl Op {
    /// Returns the same call with the deadline `at`.
    pub fn until(mut self, at: u64) -> Op {
        match &mut self {
            Op::Send { deadline, .. } | Op::Receive { deadline, .. } => *deadline = Some(at),
            Op::Subscribe { .. } | Op::Close { .. } => panic!("these have no deadline"),
        }
        self
    }

    /// Returns the lanes that the call uses: the channel's number and the direction. `side` says whether a thread or a
    /// context makes the call.
    pub fn lanes(&self, side: Side) -> Vec<(usize, Direction)> {
        let (out, into) = match side {
            Side::Host => (Direction::ToCard, Direction::ToHost),
            Side::Card => (Direction::ToHost, Direction::ToCard),
        };
        match self {
            Op::Send { on, .. } => vec![(*on, out)],
            Op::Receive { guards, .. } => guards.iter().map(|(on, ..)| (*on, into)).collect(),
            Op::Subscribe { .. } | Op::Close { .. } => Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    Host,
    Card,
}

/// The constants of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub channels: usize,
    /// Whether all channels are open before the programs begin.
    pub subscribed: bool,
    pub managers: (u8, u8),
    pub retries: u8,
    pub threads: Vec<Vec<Op>>,
    pub contexts: Vec<Vec<Op>>,
    /// Size of a page in bytes. It is small, so that short messages have many pages.
    pub page_bytes: u32,
    pub dma_errors: u8,
    pub pin_errors: u8,
}

impl Scenario {
    pub fn new(channels: usize, threads: Vec<Vec<Op>>, contexts: Vec<Vec<Op>>) -> Scenario {
        Scenario {
            channels,
            subscribed: true,
            managers: (1, 1),
            retries: 1,
            threads,
            contexts,
            page_bytes: 1,
            dma_errors: 0,
            pin_errors: 0,
        }
    }
}

/// The outcome of a call: the index of the guard, and the number of bytes or the failure.
pub type Outcome = (u16, Result<u32, Failure>);

/// The state of a program: its position, its outcomes, and the memory of its indirect messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Process {
    pub pc: usize,
    pub memory: Vec<u8>,
    pub pinned: bool,
    pub results: Vec<Outcome>,
}

/// The outcomes reported to the two ends of one direction of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Log {
    /// The senders' calls with transferred messages: according to the senders, and according to the receivers.
    pub sent: Vec<(u8, u8)>,
    pub received: Vec<(u8, u8)>,
    /// Number of exchanges that failed at both ends: according to the sender, and according to the receiver.
    pub failed: [u32; 2],
}

/// A step in flight that may end now, or a call that may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Call(Side, usize),
    /// The oldest doorbell ring arrives at the card.
    Ring,
    /// A manager's fetch reads the mailbox, or its push writes it. The completion is a later action.
    Transfer(ManagerId),
    /// A manager's fetch, ask, deliver, collect or push completes.
    Work(ManagerId),
    Dma(ManagerId, u8, bool),
    Interrupt,
    Pin(usize, bool),
    /// The next deadline of a side passes.
    Tick(Side),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct System {
    pub host: Host,
    pub card: Card,
    pub threads: Vec<Process>,
    pub contexts: Vec<Process>,
    pub channels: Vec<Option<Channel>>,
    pub rings: VecDeque<Mailbox>,
    pub interrupt: bool,
    pub pins: BTreeMap<ThreadId, Buffer>,
    pub work: BTreeMap<ManagerId, Vec<CardEffect>>,
    /// Bytes that fetches have read and pushes have written.
    pub transfers: BTreeMap<ManagerId, [u8; MAILBOX_BYTES]>,
    pub logs: BTreeMap<(usize, Direction), Log>,
    pub dma_errors: u8,
    pub pin_errors: u8,
    pub dropped: u32,
    pub retried: u32,
}

/// Returns the `n`th byte of the message that the `pc`th call of a process sends.
pub fn byte(side: Side, process: usize, pc: usize, n: usize) -> u8 {
    let side = if side == Side::Host { 0 } else { 128 };
    if n == 0 {
        side + (process * 16 + pc % 16) as u8
    } else {
        (n * 31 + pc * 7 + process * 13 + side as usize) as u8
    }
}

impl System {
    pub fn new(scenario: &Scenario) -> System {
        let channels = scenario.channels.max(1) as u16;
        let limits = HostLimits { channels, threads: 64, message_bytes: 1 << 20, retries: scenario.retries };
        let (read_managers, write_managers) = scenario.managers;
        let card = CardLimits {
            channels,
            targets: 64,
            contexts: 64,
            read_managers,
            write_managers,
            message_bytes: 1 << 20,
        };
        let mut system = System {
            host: Host::new(limits),
            card: Card::new(card).unwrap(),
            threads: vec![Process::default(); scenario.threads.len()],
            contexts: vec![Process::default(); scenario.contexts.len()],
            channels: vec![None; scenario.channels],
            rings: VecDeque::new(),
            interrupt: false,
            pins: BTreeMap::new(),
            work: BTreeMap::new(),
            transfers: BTreeMap::new(),
            logs: BTreeMap::new(),
            dma_errors: scenario.dma_errors,
            pin_errors: scenario.pin_errors,
            dropped: 0,
            retried: 0,
        };
        for on in 0..scenario.channels {
            system.card.register(TargetId(100 + on as u32)).unwrap();
        }
        if scenario.subscribed {
            let prelude = Scenario {
                threads: vec![(0..scenario.channels).map(|on| Op::Subscribe { on }).collect()],
                contexts: Vec::new(),
                ..scenario.clone()
            };
            (system.threads, system.contexts) = (vec![Process::default()], Vec::new());
            while let Some(action) = system.actions(&prelude).first().copied() {
                system.apply(&prelude, action).unwrap();
            }
            system.threads = vec![Process::default(); scenario.threads.len()];
            system.contexts = vec![Process::default(); scenario.contexts.len()];
        }
        system
    }

    /// Returns every possible next step.
    pub fn actions(&self, scenario: &Scenario) -> Vec<Action> {
        let mut actions = Vec::new();
        if !self.rings.is_empty() {
            actions.push(Action::Ring);
        }
        if self.interrupt {
            actions.push(Action::Interrupt);
        }
        for (manager, effects) in &self.work {
            for effect in effects {
                if let CardEffect::Dma { entry, .. } = effect {
                    actions.push(Action::Dma(*manager, *entry, true));
                    actions.extend((self.dma_errors > 0).then_some(Action::Dma(*manager, *entry, false)));
                } else {
                    let bus = matches!(effect, CardEffect::Fetch { .. } | CardEffect::Push { .. });
                    let first = bus && !self.transfers.contains_key(manager);
                    actions.push(if first { Action::Transfer(*manager) } else { Action::Work(*manager) });
                }
            }
        }
        for thread in self.pins.keys() {
            actions.push(Action::Pin(thread.0.into(), true));
            actions.extend((self.pin_errors > 0).then_some(Action::Pin(thread.0.into(), false)));
        }
        for (i, process) in self.threads.iter().enumerate() {
            if process.pc < scenario.threads[i].len() && !self.host.is_blocked(ThreadId(i as u16)) {
                actions.push(Action::Call(Side::Host, i));
            }
        }
        for (i, process) in self.contexts.iter().enumerate() {
            if process.pc < scenario.contexts[i].len() && !self.card.is_blocked(ContextId(i as u16)) {
                actions.push(Action::Call(Side::Card, i));
            }
        }
        actions.extend(self.host.next_deadline().map(|_| Action::Tick(Side::Host)));
        actions.extend(self.card.next_deadline().map(|_| Action::Tick(Side::Card)));
        actions
    }

    /// Performs one action. The error describes the violated rule.
    pub fn apply(&mut self, scenario: &Scenario, action: Action) -> Result<(), String> {
        let (mut host, mut card) = (Vec::new(), Vec::new());
        match action {
            Action::Ring => self.card.ring(self.rings.pop_front().unwrap(), &mut card).unwrap(),
            Action::Interrupt => {
                self.interrupt = false;
                self.host.interrupt(&mut host);
            }
            Action::Transfer(manager) => {
                let bytes = match self.work[&manager][..] {
                    [CardEffect::Fetch { mailbox, .. }] => *self.host.mailbox(mailbox).unwrap(),
                    [CardEffect::Push { mailbox, bytes, .. }] => {
                        self.host.deposit(mailbox, &bytes).unwrap();
                        bytes
                    }
                    _ => panic!("only mailboxes cross the bus"),
                };
                self.transfers.insert(manager, bytes);
            }
            Action::Work(manager) => {
                match (&self.work.remove(&manager).unwrap()[..], self.transfers.remove(&manager)) {
                    ([CardEffect::Fetch { .. }], Some(bytes)) => {
                        self.card.fetched(manager, &bytes, &mut card).unwrap();
                    }
                    _ => self.card.done(manager, &mut card).unwrap(),
                }
            }
            Action::Dma(manager, entry, ok) => {
                let effects = self.work.get_mut(&manager).unwrap();
                let at =
                    effects.iter().position(|e| matches!(e, CardEffect::Dma { entry: e, .. } if *e == entry));
                let effect = effects.remove(at.unwrap());
                if effects.is_empty() {
                    self.work.remove(&manager);
                }
                if ok {
                    self.copy(effect, scenario)?;
                } else {
                    self.dma_errors -= 1;
                }
                self.card.dma_done(manager, entry, ok, &mut card).unwrap();
            }
            Action::Pin(thread, ok) => {
                let id = ThreadId(thread as u16);
                let buffer = self.pins.remove(&id).unwrap();
                if ok {
                    self.threads[thread].pinned = true;
                    let pages = pages(thread, buffer.bytes, scenario.page_bytes);
                    self.host.pinned(id, &pages, &mut host).unwrap();
                } else {
                    self.pin_errors -= 1;
                    self.host.pin_failed(id, &mut host).unwrap();
                }
            }
            Action::Tick(Side::Host) => self.host.tick(self.host.next_deadline().unwrap(), &mut host),
            Action::Tick(Side::Card) => self.card.tick(self.card.next_deadline().unwrap(), &mut card),
            Action::Call(Side::Host, i) => self.call_host(scenario, i, &mut host),
            Action::Call(Side::Card, i) => self.call_card(scenario, i, &mut card),
        }
        for effect in host {
            self.host_effect(scenario, effect)?;
        }
        for effect in card {
            self.card_effect(scenario, effect)?;
        }
        Ok(())
    }

    fn call_host(&mut self, scenario: &Scenario, i: usize, effects: &mut Vec<HostEffect>) {
        let (thread, process) = (ThreadId(i as u16), &mut self.threads[i]);
        let buffer = |bytes| Buffer { address: (i as u64) << 32, bytes };
        match &scenario.threads[i][process.pc] {
            Op::Subscribe { on } => {
                let channel = self.host.subscribe(thread, TargetId(100 + *on as u32), effects).unwrap();
                self.channels[*on] = Some(channel);
            }
            Op::Close { on } => self.host.close(thread, self.channels[*on].unwrap(), effects).unwrap(),
            Op::Send { on, kind, bytes, deadline } => {
                let data: Vec<u8> =
                    (0..*bytes as usize).map(|n| byte(Side::Host, i, process.pc, n)).collect();
                let channel = self.channels[*on].unwrap();
                match kind {
                    Kind::Direct => self.host.send(thread, channel, &data, *deadline, effects),
                    Kind::Indirect => {
                        process.memory = data;
                        self.host.send_indirect(thread, channel, buffer(*bytes), *deadline, effects)
                    }
                }
                .unwrap();
            }
            Op::Receive { guards, deadline } => {
                process.memory = vec![0xEE; memory_bytes(guards)];
                let wants: Vec<_> = guards
                    .iter()
                    .map(|(on, kind, bytes)| Guard {
                        from: self.channels[*on].unwrap(),
                        want: want(*kind, buffer(*bytes)),
                    })
                    .collect();
                match wants[..] {
                    [Guard { from, want: Want::Direct(bytes) }] => {
                        self.host.receive(thread, from, bytes, *deadline, effects)
                    }
                    [Guard { from, want: Want::Indirect(buffer) }] => {
                        self.host.receive_indirect(thread, from, buffer, *deadline, effects)
                    }
                    _ => self.host.select(thread, &wants, *deadline, effects),
                }
                .unwrap();
            }
        }
    }

    fn call_card(&mut self, scenario: &Scenario, i: usize, effects: &mut Vec<CardEffect>) {
        let (context, process) = (ContextId(i as u16), &mut self.contexts[i]);
        let id = |on: usize| TargetId(100 + on as u32);
        let buffer = |bytes| Buffer { address: (i as u64) << 32, bytes };
        match &scenario.contexts[i][process.pc] {
            Op::Send { on, kind, bytes, deadline } => {
                let data: Vec<u8> =
                    (0..*bytes as usize).map(|n| byte(Side::Card, i, process.pc, n)).collect();
                match kind {
                    Kind::Direct => self.card.write(context, id(*on), &data, *deadline, effects),
                    Kind::Indirect => {
                        process.memory = data;
                        self.card.write_indirect(context, id(*on), buffer(*bytes), *deadline, effects)
                    }
                }
                .unwrap();
            }
            Op::Receive { guards, deadline } => {
                process.memory = vec![0xEE; memory_bytes(guards)];
                let wants: Vec<_> = guards
                    .iter()
                    .map(|(on, kind, bytes)| Guard { from: id(*on), want: want(*kind, buffer(*bytes)) })
                    .collect();
                self.card.select(context, &wants, *deadline, effects).unwrap();
            }
            op => panic!("the card cannot {op:?}"),
        }
    }

    /// Performs the copy of a DMA.
    fn copy(&mut self, effect: CardEffect, scenario: &Scenario) -> Result<(), String> {
        let CardEffect::Dma { direction, host, card, bytes, .. } = effect else {
            panic!("{effect:?} is no DMA")
        };
        let (thread, page) = ((host >> 32) as usize, (host as u32 / PAGE_BYTES) as usize);
        let (context, to) = ((card >> 32) as usize, card as u32 as usize);
        if !self.threads[thread].pinned {
            return Err(format!("DMA to or from the memory of thread {thread}, which is not pinned"));
        }
        let (at, n) = (page * scenario.page_bytes as usize, bytes as usize);
        let (host, card) = (&mut self.threads[thread].memory, &mut self.contexts[context].memory);
        match direction {
            Direction::ToCard => card[to..to + n].copy_from_slice(&host[at..at + n]),
            Direction::ToHost => host[at..at + n].copy_from_slice(&card[to..to + n]),
        }
        Ok(())
    }

    fn host_effect(&mut self, scenario: &Scenario, effect: HostEffect) -> Result<(), String> {
        match effect {
            HostEffect::Pin { thread, buffer } => assert!(self.pins.insert(thread, buffer).is_none()),
            HostEffect::Unpin { thread } => {
                let pinned = &mut self.threads[thread.0 as usize].pinned;
                if !std::mem::take(pinned) {
                    return Err(format!("{thread:?} is unpinned and was not pinned"));
                }
            }
            HostEffect::Post { mailbox, .. } => self.rings.push_back(mailbox),
            HostEffect::Retry { .. } => self.retried += 1,
            HostEffect::Wake { thread, guard, result } => {
                self.ended(scenario, Side::Host, thread.0.into(), guard, result)?;
            }
            HostEffect::Drop { .. } => self.dropped += 1,
        }
        Ok(())
    }

    fn card_effect(&mut self, scenario: &Scenario, effect: CardEffect) -> Result<(), String> {
        match effect {
            CardEffect::Fetch { manager, .. }
            | CardEffect::Ask { manager, .. }
            | CardEffect::Deliver { manager, .. }
            | CardEffect::Collect { manager, .. }
            | CardEffect::Push { manager, .. }
            | CardEffect::Dma { manager, .. } => self.work.entry(manager).or_default().push(effect),
            CardEffect::Interrupt => self.interrupt = true,
            CardEffect::Signal { context, guard, result } => {
                self.ended(scenario, Side::Card, context.0.into(), guard, result)?;
            }
            CardEffect::Drop { .. } => self.dropped += 1,
        }
        Ok(())
    }

    /// Ends a call. Checks its bytes, and that a successful call had the other end's call before it.
    fn ended(
        &mut self,
        scenario: &Scenario,
        side: Side,
        i: usize,
        guard: u16,
        result: Result<Completion, Failure>,
    ) -> Result<(), String> {
        let (processes, programs) = match side {
            Side::Host => (&mut self.threads, &scenario.threads),
            Side::Card => (&mut self.contexts, &scenario.contexts),
        };
        let process = &mut processes[i];
        let (op, pc) = (&programs[i][process.pc], process.pc);
        process.pc += 1;
        process.results.push((guard, result.map(|c| c.bytes)));
        let memory = std::mem::take(&mut process.memory);
        if process.pinned {
            return Err(format!("thread {i} is woken and its pages are pinned"));
        }
        let Some(&lane) = op.lanes(side).get(guard as usize) else { return Ok(()) };
        let sender = matches!(op, Op::Send { .. });
        let log = self.logs.entry(lane).or_default();
        let done = match result {
            Ok(_) if sender => {
                log.sent.push((i as u8, pc as u8));
                log.sent.len()
            }
            Ok(completion) => {
                let Op::Receive { guards, .. } = op else { unreachable!() };
                let (_, kind, bytes) = guards[guard as usize];
                let got =
                    if kind == Kind::Direct { &completion.payload[..] } else { &memory[..bytes as usize] };
                let from = if side == Side::Host { Side::Card } else { Side::Host };
                let (process, pc) = (usize::from(got[0] % 128 / 16), usize::from(got[0] % 16));
                let whole = (0..bytes as usize).all(|n| got.get(n) == Some(&byte(from, process, pc, n)));
                if !whole || got.len() != bytes as usize {
                    return Err(format!("{side:?} {i} received other bytes than were sent on {lane:?}"));
                }
                log.received.push((process as u8, pc as u8));
                log.received.len()
            }
            Err(Failure::SizeMismatch { .. } | Failure::KindMismatch { .. } | Failure::Dma { .. }) => {
                log.failed[usize::from(!sender)] += 1;
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        let other_done = if sender { log.received.len() } else { log.sent.len() };
        let other_side = if side == Side::Host { Side::Card } else { Side::Host };
        if other_done + usize::from(self.is_at(scenario, other_side, lane)) < done {
            return Err(format!("{side:?} {i} is done on {lane:?} and the other end has not come"));
        }
        Ok(())
    }

    /// Returns whether a process of a side is blocked in a call at a lane.
    pub fn is_at(&self, scenario: &Scenario, side: Side, lane: (usize, Direction)) -> bool {
        let at = |ops: &[Op], pc: usize| ops.get(pc).is_some_and(|op| op.lanes(side).contains(&lane));
        match side {
            Side::Host => (0..self.threads.len()).any(|i| {
                self.host.is_blocked(ThreadId(i as u16)) && at(&scenario.threads[i], self.threads[i].pc)
            }),
            Side::Card => (0..self.contexts.len()).any(|i| {
                self.card.is_blocked(ContextId(i as u16)) && at(&scenario.contexts[i], self.contexts[i].pc)
            }),
        }
    }

    /// Checks the conditions of a state with no possible step.
    pub fn check_end(&self, scenario: &Scenario) -> Result<(), String> {
        for (direction, count) in
            [(Direction::ToCard, scenario.managers.0), (Direction::ToHost, scenario.managers.1)]
        {
            if self.card.idle_managers(direction) != count.into() {
                return Err(format!("a manager {direction:?} is not free at the end"));
            }
        }
        let lanes: BTreeSet<_> =
            scenario.threads.iter().flatten().flat_map(|op| op.lanes(Side::Host)).collect();
        for lane in lanes {
            if self.is_at(scenario, Side::Host, lane) && self.is_at(scenario, Side::Card, lane) {
                return Err(format!("deadlock: both ends of {lane:?} have come"));
            }
        }
        for (lane, log) in &self.logs {
            if log.sent != log.received || log.failed[0] != log.failed[1] {
                return Err(format!("the ends of {lane:?} do not agree: {log:?}"));
            }
        }
        let mut threads = self.threads.iter().enumerate();
        if threads.any(|(i, thread)| thread.pinned && !self.host.is_blocked(ThreadId(i as u16))) {
            return Err("pages are still pinned, and their call has ended".into());
        }
        if self.dropped > 0 {
            return Err(format!("{} mailboxes were not heeded", self.dropped));
        }
        Ok(())
    }

    /// Returns whether every program has ended.
    pub fn all_ended(&self, scenario: &Scenario) -> bool {
        self.threads.iter().zip(&scenario.threads).all(|(p, ops)| p.pc == ops.len())
            && self.contexts.iter().zip(&scenario.contexts).all(|(p, ops)| p.pc == ops.len())
    }
}

/// Returns the pages of a thread's buffer. In the first page, the buffer ends at the page's end. In every other page,
/// it begins at the page's start.
fn pages(thread: usize, bytes: u32, page_bytes: u32) -> Vec<Page> {
    (0..bytes.div_ceil(page_bytes))
        .map(|n| {
            let length = page_bytes.min(bytes - n * page_bytes);
            let offset = if n == 0 { PAGE_BYTES - length } else { 0 };
            Page::new(((thread as u64) << 32) + u64::from(n * PAGE_BYTES + offset), length).unwrap()
        })
        .collect()
}

fn want(kind: Kind, buffer: Buffer) -> Want {
    match kind {
        Kind::Direct => Want::Direct(buffer.bytes),
        Kind::Indirect => Want::Indirect(buffer),
    }
}

fn memory_bytes(guards: &[(usize, Kind, u32)]) -> usize {
    guards.iter().filter(|(_, kind, _)| *kind == Kind::Indirect).map(|g| g.2 as usize).max().unwrap_or(0)
}
