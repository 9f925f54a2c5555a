//! The card's managers. Each of their steps takes virtual time on the clock of the microengines, on the bus and in the
//! memories.

use crate::card::record::{Carried, Leaving};
use crate::card::{Card, waited};
use crate::map::MemoryKind;
use crate::processor::{Memory, Reference};
use crate::stages;
use nicety_channels::{Body, CardEffect, ContextId, Direction, MAILBOX_BYTES, Mailbox, ManagerId, Message};
use nicety_host::Notice;
use nicety_types::{MessageId, Path, Payload, Stage, Time};
use std::rc::Rc;

/// State of a mailbox.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// The path of the message in the mailbox, up to the last step of a manager.
    pub(super) path: Path,
    /// The path up to the host's last doorbell for the mailbox.
    pub(super) rung: Path,
    /// The path up to the card's last interrupt for the mailbox.
    pub(super) raised: Path,
    /// The host's copy of the mailbox, as written by the driver.
    pub(super) outbox: [u8; MAILBOX_BYTES],
    /// The thread that uses the mailbox at the host's end.
    pub(super) owner: Option<nicety_channels::ThreadId>,
    /// The message to the host that a manager has begun to collect.
    pub(super) leaving: Option<Leaving>,
    /// The message in the mailbox, if messages are recorded.
    pub(super) carried: Option<Carried>,
    /// Whether the channel carries messages between hosts. The messenger records such messages as a whole, from host to
    /// host.
    pub(super) unrecorded: bool,
}

impl Default for Lane {
    fn default() -> Lane {
        let path = Path::from(Time::ZERO);
        Lane {
            path: path.clone(),
            rung: path.clone(),
            raised: path,
            outbox: [0; MAILBOX_BYTES],
            owner: None,
            leaving: None,
            carried: None,
            unrecorded: false,
        }
    }
}

/// Returns the address of the host's copy of a mailbox. It is a cache line in a separate block, below all allocations.
fn mailbox_address(mailbox: Mailbox) -> u64 {
    let line = 2 * u64::from(mailbox.channel) + mailbox.direction as u64;
    0x1000 + line % 0x1000 * MAILBOX_BYTES as u64
}

/// The DMA transfer of one page.
#[derive(Clone, Copy)]
struct Move {
    manager: ManagerId,
    mailbox: Mailbox,
    entry: u8,
    direction: Direction,
    host: u64,
    card: u64,
    bytes: u64,
}

impl Card {
    /// Begins an action that the card's state machine has requested.
    pub(super) fn begin(self: &Rc<Card>, effect: CardEffect, step: Option<(Mailbox, Path)>) {
        match effect {
            CardEffect::Fetch { manager, mailbox } => {
                let mut path = self.lane(mailbox, |lane| lane.rung.clone());
                waited(&mut path, stages::MANAGER_QUEUED, &self.sim);
                self.sim.spawn(self.clone().fetch(manager, mailbox, path));
            }
            CardEffect::Ask { manager, context } => {
                let (mailbox, path) = self.met(manager, context);
                let cycles = self.spec.channels.managers.ask;
                self.sim.spawn(self.clone().manage(manager, mailbox, cycles, path));
            }
            CardEffect::Deliver { manager, context, .. } => {
                let (mailbox, path) = self.met(manager, context);
                let cycles = self.spec.channels.managers.deliver;
                self.sim.spawn(self.clone().manage(manager, mailbox, cycles, path));
            }
            CardEffect::Collect { manager, context } => {
                let mailbox = self.mailbox_of(manager);
                let mut path = self.context(context, |call| call.path.clone());
                self.lane(mailbox, |lane| lane.leaving = Some(Leaving { context, base: path.clone() }));
                path.advance(stages::RECEIVER, self.lane(mailbox, |lane| lane.path.at()));
                waited(&mut path, stages::MANAGER_QUEUED, &self.sim);
                let cycles = self.spec.channels.managers.collect;
                self.sim.spawn(self.clone().manage(manager, mailbox, cycles, path));
            }
            CardEffect::Dma { manager, entry, direction, host, card, bytes } => {
                let mailbox = self.mailbox_of(manager);
                let moving = Move { manager, mailbox, entry, direction, host, card, bytes: u64::from(bytes) };
                let path = self.lane(mailbox, |lane| lane.path.clone());
                self.sim.spawn(self.clone().move_page(moving, path));
            }
            CardEffect::Push { manager, mailbox, bytes } => {
                let mut path = self.lane(mailbox, |lane| lane.path.clone());
                waited(&mut path, stages::MANAGER_QUEUED, &self.sim);
                let message = self.leaves(mailbox, &bytes);
                self.sim.spawn(self.clone().push(manager, mailbox, bytes, message, path));
            }
            CardEffect::Interrupt => {
                let (_, path) = step.expect("an interrupt follows a push");
                self.sim.spawn(self.clone().interrupt(path.at()));
            }
            CardEffect::Signal { context, guard, result } => {
                if let (Ok(_), Some((mailbox, path))) = (result, &step) {
                    self.delivered(*mailbox, path.clone());
                }
                self.end_call(context, guard, result, step.map(|(_, path)| path));
            }
            CardEffect::Drop { .. } => self.count(|counters| counters.dropped += 1),
        }
    }

    fn mailbox_of(&self, manager: ManagerId) -> Mailbox {
        self.card.borrow().serving(manager).expect("a manager with something to do has a mailbox")
    }

    /// Begins a manager's work on a message that has a waiting receiver. Returns the mailbox, and the message's path.
    fn met(&self, manager: ManagerId, context: ContextId) -> (Mailbox, Path) {
        let mailbox = self.mailbox_of(manager);
        let mut path = self.lane(mailbox, |lane| lane.path.clone());
        path.advance(stages::RECEIVER, self.context(context, |call| call.called));
        waited(&mut path, stages::MANAGER_QUEUED, &self.sim);
        (mailbox, path)
    }

    /// Spends `cycles` cycles of a manager's work.
    async fn work(&self, cycles: u64, path: &mut Path) {
        self.sim.delay(self.spec.clock.cycles(cycles)).await;
        waited(path, stages::MANAGER, &self.sim);
    }

    /// Carries out an action that consists only of the manager's own work.
    async fn manage(self: Rc<Card>, manager: ManagerId, mailbox: Mailbox, cycles: u64, mut path: Path) {
        self.work(cycles, &mut path).await;
        let done = self.on_card(Some((mailbox, path)), |card, effects| card.done(manager, effects));
        done.expect(BEGUN);
    }

    /// Reads the host's copy of a mailbox.
    async fn fetch(self: Rc<Card>, manager: ManagerId, mailbox: Mailbox, mut path: Path) {
        self.work(self.spec.channels.managers.fetch, &mut path).await;
        let (message, bytes) = (self.next_message(), MAILBOX_BYTES as u64);
        let transfer = self.dma.bus().read(message, mailbox_address(mailbox), bytes, bytes, path).await;
        let found = self.lane(mailbox, |lane| lane.outbox);
        let path = transfer.packet(0).await.landed();
        self.sim.until(path.at()).await;
        match Message::decode(&found).map(|message| message.body) {
            Ok(Body::Subscribe(_)) => {
                // A process that wrote before the subscription has waited for the channel until now.
                let to_host = Mailbox { direction: Direction::ToHost, ..mailbox };
                self.lane(to_host, |lane| lane.path = path.clone());
            }
            Ok(Body::Direct(_) | Body::Pages(_)) if mailbox.direction == Direction::ToCard => {
                self.message_arrived(mailbox, &path);
            }
            _ => {}
        }
        let step = Some((mailbox, path));
        let fetched = self.on_card(step, |card, effects| card.fetched(manager, &found, effects));
        fetched.expect(BEGUN);
    }

    /// Writes the host's copy of a mailbox, then raises the interrupt.
    async fn push(
        self: Rc<Card>,
        manager: ManagerId,
        mailbox: Mailbox,
        bytes: [u8; MAILBOX_BYTES],
        message: Option<MessageId>,
        mut path: Path,
    ) {
        self.work(self.spec.channels.managers.push, &mut path).await;
        let (crossing, size) = (self.next_message(), MAILBOX_BYTES as u64);
        let written = self.dma.bus().write(crossing, mailbox_address(mailbox), size, path);
        let mut raised = self.dma.bus().post(Notice::Event, written.path);
        raised.advance(Stage::DEPOSIT, written.landed);
        self.sim.until(written.landed).await;
        self.count(|counters| counters.pushed += 1);
        self.lane(mailbox, |lane| {
            lane.raised = raised.clone();
            if let Some(message) = message {
                lane.carried = Some(Carried::new(message));
            }
        });
        self.host.borrow_mut().deposit(mailbox, &bytes).expect("the host has the channels that the card has");
        let step = Some((mailbox, raised));
        self.on_card(step, |card, effects| card.done(manager, effects)).expect(BEGUN);
    }

    /// Moves a page by DMA. A failed transfer takes the same time, and moves nothing.
    async fn move_page(self: Rc<Card>, page: Move, mut path: Path) {
        self.work(self.spec.channels.managers.dma, &mut path).await;
        let errors = self.spec.channels.dma_errors;
        let failed = errors.numerator() > 0
            && self.faults.borrow_mut().below(errors.denominator()) < errors.numerator();
        self.count(|counters| {
            counters.transfers += 1;
            if failed {
                counters.errors += 1;
            } else {
                counters.bytes += page.bytes;
            }
        });
        match page.direction {
            Direction::ToCard => self.page_to_card(page, failed, &mut path).await,
            Direction::ToHost => self.page_to_host(page, failed, &mut path).await,
        }
        self.lane(page.mailbox, |lane| lane.path.follow(&path));
        let path = self.lane(page.mailbox, |lane| lane.path.clone());
        let (manager, entry) = (page.manager, page.entry);
        let step = Some((page.mailbox, path));
        self.on_card(step, |card, effects| card.dma_done(manager, entry, !failed, effects)).expect(BEGUN);
    }

    /// Reads a page from the host. The card's memory takes the bytes as they arrive.
    async fn page_to_card(&self, page: Move, failed: bool, path: &mut Path) {
        let Move { host, card, bytes, .. } = page;
        let (payload, flight) = self.dma.read(self.next_message(), host, bytes, path.clone()).await;
        self.sim.until(flight.head).await;
        let (memory, offset) = self.card_memory(card);
        let first = self.nfp.cycle();
        let stored = memory.claim(Reference::Write, first, bytes);
        *path = flight.landed();
        let behind = self.nfp.cycle_at(path.at()) + memory.write_latency();
        self.sim.until(self.nfp.time(stored.max(behind))).await;
        waited(path, stages::CARD_MEMORY, &self.sim);
        if !failed {
            payload.pieces().for_each(|(at, bytes)| memory.poke(offset + at, bytes).expect(INSIDE));
        }
    }

    /// Reads a page out of the card's memory, and writes it to the host.
    async fn page_to_host(&self, page: Move, failed: bool, path: &mut Path) {
        let Move { host, card, bytes, .. } = page;
        let (memory, offset) = self.card_memory(card);
        let fetched = memory.claim(Reference::Read, self.nfp.cycle(), bytes);
        let payload = Payload::real(nicety_types::Buffer::filled_by(bytes as usize, |into| {
            memory.peek(offset, into).expect(INSIDE);
        }));
        self.sim.until(self.nfp.time(fetched)).await;
        waited(path, stages::CARD_MEMORY, &self.sim);
        let message = self.next_message();
        // The bus keeps order, so the reply arrives after these bytes.
        let written = match failed {
            true => self.dma.bus().write(message, host, bytes, path.clone()),
            false => self.dma.write(message, host, bytes, payload, path.clone()),
        };
        *path = written.path;
        self.sim.until(path.at()).await;
    }

    /// Returns the memory and the offset of a 40-bit address. The address was checked when the call began.
    pub(super) fn card_memory(&self, address: u64) -> (&Memory, u64) {
        let low = address as u32;
        let kind = MemoryKind::ALL.into_iter().rev().find(|kind| kind.base() <= low).expect(INSIDE);
        let island = (address >> 32).saturating_sub(1) as usize;
        (self.nfp.memory(kind, island), u64::from(low - kind.base()))
    }
}

const BEGUN: &str = "a manager reports each step once";
const INSIDE: &str = "a call's memory was checked when it was made";
