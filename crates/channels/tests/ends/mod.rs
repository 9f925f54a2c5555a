//! One host, one card and one open channel. A test carries out each step of the protocol.

#![allow(dead_code, reason = "each of the two test programs uses its part")]

use nicety_channels::*;

pub const T: ThreadId = ThreadId(0);
pub const C: ContextId = ContextId(0);
pub const ID: TargetId = TargetId(7);
pub const READER: ManagerId = ManagerId { direction: Direction::ToCard, index: 0 };
pub const WRITER: ManagerId = ManagerId { direction: Direction::ToHost, index: 0 };
pub const DOWN: Mailbox = Mailbox { channel: 0, direction: Direction::ToCard };
pub const UP: Mailbox = Mailbox { channel: 0, direction: Direction::ToHost };

pub fn take<T>(effects: &mut Vec<T>) -> Vec<T> {
    std::mem::take(effects)
}

/// A host and a card with one open channel, and their outstanding effects.
pub struct Ends {
    pub host: Host,
    pub card: Card,
    pub channel: Channel,
    pub h: Vec<HostEffect>,
    pub c: Vec<CardEffect>,
}

impl Ends {
    pub fn new() -> Ends {
        let (mut h, mut c) = (Vec::new(), Vec::new());
        let mut host = Host::new(HostLimits::default());
        let mut card = Card::new(CardLimits::default()).unwrap();
        card.register(ID).unwrap();
        let channel = host.subscribe(T, ID, &mut h).unwrap();
        let mut ends = Ends { host, card, channel, h: Vec::new(), c: Vec::new() };
        assert!(matches!(take(&mut h)[..], [HostEffect::Post { mailbox: DOWN, .. }]));
        ends.card.ring(DOWN, &mut c).unwrap();
        assert_eq!(take(&mut c), [CardEffect::Fetch { manager: READER, mailbox: DOWN }]);
        ends.fetch(READER, DOWN);
        ends.pushed(
            READER,
            DOWN,
            Body::Reply(Reply { status: Status::Ok, done: 0, outstanding: 0, expected: 0 }),
        );
        ends.woken(Ok(Completion { bytes: 0, payload: Payload::EMPTY }));
        ends
    }

    /// Completes a fetch.
    pub fn fetch(&mut self, manager: ManagerId, mailbox: Mailbox) {
        self.c.retain(|e| !matches!(e, CardEffect::Fetch { .. }));
        self.card.fetched(manager, self.host.mailbox(mailbox).unwrap(), &mut self.c).unwrap();
    }

    /// Completes the push of `body`, which must be the card's next effect, and raises the interrupt.
    pub fn pushed(&mut self, manager: ManagerId, mailbox: Mailbox, body: Body) {
        let effects = take(&mut self.c);
        let [CardEffect::Push { manager: by, mailbox: to, bytes }] = effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!((by, to, Message::decode(&bytes).unwrap().body), (manager, mailbox, body));
        self.host.deposit(mailbox, &bytes).unwrap();
        self.card.done(manager, &mut self.c).unwrap();
        assert_eq!(take(&mut self.c), [CardEffect::Interrupt]);
        self.host.interrupt(&mut self.h);
    }

    /// Posts `body` on the host, and lets a manager fetch it.
    pub fn posted(&mut self, manager: ManagerId, mailbox: Mailbox, body: Body) {
        let at =
            self.h.iter().position(|e| matches!(e, HostEffect::Post { .. })).expect("something is posted");
        let HostEffect::Post { mailbox: to, bytes } = self.h.remove(at) else { unreachable!() };
        assert_eq!((to, Message::decode(&bytes).unwrap().body), (mailbox, body));
        self.card.ring(mailbox, &mut self.c).unwrap();
        assert_eq!(self.c, [CardEffect::Fetch { manager, mailbox }]);
        self.fetch(manager, mailbox);
    }

    pub fn woken(&mut self, result: Result<Completion, Failure>) {
        assert_eq!(take(&mut self.h), [HostEffect::Wake { thread: T, guard: 0, result }]);
    }
}

pub fn payload(bytes: &[u8]) -> Payload {
    Payload::new(bytes).unwrap()
}

pub fn ok(done: u32) -> Body {
    Body::Reply(Reply { status: Status::Ok, done, outstanding: 0, expected: 0 })
}

pub const SENT: Completion = Completion { bytes: 3, payload: Payload::EMPTY };

/// Carries out the effects of both ends until none are left. `pages` are the pages of a pinned buffer.
pub fn settle(e: &mut Ends, pages: &[Page]) {
    while !(e.h.is_empty() && e.c.is_empty()) {
        if let Some(effect) = e.h.pop() {
            match effect {
                HostEffect::Pin { thread, .. } => e.host.pinned(thread, pages, &mut e.h).unwrap(),
                HostEffect::Post { mailbox, .. } => e.card.ring(mailbox, &mut e.c).unwrap(),
                _ => {}
            }
        }
        if let Some(effect) = e.c.pop() {
            match effect {
                CardEffect::Fetch { manager, mailbox } => {
                    e.card.fetched(manager, e.host.mailbox(mailbox).unwrap(), &mut e.c).unwrap();
                }
                CardEffect::Push { manager, mailbox, bytes } => {
                    e.host.deposit(mailbox, &bytes).unwrap();
                    e.card.done(manager, &mut e.c).unwrap();
                }
                CardEffect::Ask { manager, .. }
                | CardEffect::Deliver { manager, .. }
                | CardEffect::Collect { manager, .. } => e.card.done(manager, &mut e.c).unwrap(),
                CardEffect::Dma { manager, entry, .. } => {
                    e.card.dma_done(manager, entry, true, &mut e.c).unwrap();
                }
                CardEffect::Interrupt => e.host.interrupt(&mut e.h),
                CardEffect::Signal { .. } | CardEffect::Drop { .. } => {}
            }
        }
    }
}
