//! Forged mailboxes, invalid calls and completions without an action occur at any moment. An end may refuse, drop or
//! misunderstand them, but must not panic. Every effect can still be completed.

use nicety_channels::*;
use proptest::prelude::*;

/// Four random numbers that determine a step.
type Step = (u8, u8, u8, u16);

struct Fuzz {
    host: Host,
    card: Card,
    channels: Vec<Channel>,
    rings: Vec<Mailbox>,
    work: Vec<CardEffect>,
    to_host: Vec<HostEffect>,
    to_card: Vec<CardEffect>,
}

/// Returns a message with the exchange number of the mailbox `like` or a neighbouring number, or bytes that are no
/// message.
fn forge(like: &[u8; MAILBOX_BYTES], kind: u8, size: u8, stamp: u16) -> [u8; MAILBOX_BYTES] {
    let exchange = Message::decode(like).map_or(0, |m| m.exchange);
    let exchange = exchange.wrapping_add(stamp % 3).wrapping_sub(1);
    let page = Page::new(0, u32::from(size).max(1)).unwrap();
    let reply = |status| Body::Reply(Reply { status, done: size.into(), outstanding: 1, expected: 3 });
    let size = u32::from(size).max(1);
    let body = match kind % 11 {
        0 => Body::Direct(Payload::new(&[7; 5]).unwrap()),
        1 => Body::Pages(PageList::new(9, 0, &[Page::new(0, 9).unwrap()]).unwrap()),
        2 => Body::Pages(PageList::new(900, 9 * (size % 2), &[page]).unwrap()),
        3 => Body::Offer(size % 10 + 1),
        4 => Body::Cancel,
        5 => Body::GiveUp,
        6 => Body::Subscribe(TargetId(size % 4)),
        7 => Body::Close,
        8 => reply([Status::Ok, Status::DmaFailed, Status::Abandoned][size as usize % 3]),
        9 => reply([Status::SizeMismatch, Status::Cancelled, Status::PinFailed][size as usize % 3]),
        _ => {
            let mut bytes = *like;
            bytes[stamp as usize % MAILBOX_BYTES] ^= size as u8;
            return bytes;
        }
    };
    Message { exchange, stamp, body }.encode()
}

impl Fuzz {
    fn new() -> Fuzz {
        let mut fuzz = Fuzz {
            host: Host::new(HostLimits { channels: 3, threads: 4, message_bytes: 1 << 20, retries: 1 }),
            card: Card::new(CardLimits {
                channels: 3,
                targets: 3,
                contexts: 4,
                read_managers: 2,
                write_managers: 2,
                message_bytes: 1 << 20,
            })
            .unwrap(),
            channels: Vec::new(),
            rings: Vec::new(),
            work: Vec::new(),
            to_host: Vec::new(),
            to_card: Vec::new(),
        };
        for id in 0..3 {
            fuzz.card.register(TargetId(id)).unwrap();
            let channel = fuzz.host.subscribe(ThreadId(id as u16), TargetId(id), &mut fuzz.to_host).unwrap();
            fuzz.channels.push(channel);
        }
        fuzz.collect();
        fuzz
    }

    fn collect(&mut self) {
        for effect in self.to_host.drain(..) {
            if let HostEffect::Post { mailbox, .. } = effect {
                self.rings.push(mailbox);
            }
        }
        let worked = |e: &CardEffect| {
            !matches!(e, CardEffect::Interrupt | CardEffect::Signal { .. } | CardEffect::Drop { .. })
        };
        self.work.extend(self.to_card.drain(..).filter(worked));
    }

    fn call_host(&mut self, (_, what, size, at): Step) {
        let thread = ThreadId(at % 5);
        let channel = self.channels[usize::from(what) % self.channels.len()];
        let (bytes, buffer) = (u32::from(size) % 60, Buffer { address: 0, bytes: u32::from(size) * 100 });
        let (deadline, effects) = (at.is_multiple_of(2).then_some(u64::from(at)), &mut self.to_host);
        let _ = match what % 7 {
            0 => self.host.send(thread, channel, &vec![1; bytes as usize], deadline, effects),
            1 => self.host.send_indirect(thread, channel, buffer, deadline, effects),
            2 => self.host.receive(thread, channel, bytes, deadline, effects),
            3 => self.host.receive_indirect(thread, channel, buffer, deadline, effects),
            4 => self.host.close(thread, channel, effects),
            5 => {
                let guards: Vec<_> =
                    self.channels.iter().map(|c| Guard { from: *c, want: Want::Indirect(buffer) }).collect();
                self.host.select(thread, &guards, deadline, effects)
            }
            _ => self.host.subscribe(thread, TargetId(bytes % 4), effects).map(|channel| {
                self.channels.push(channel);
            }),
        };
    }

    fn call_card(&mut self, (_, what, size, at): Step) {
        let (context, target) = (ContextId(at % 5), TargetId(u32::from(what / 8) % 4));
        let (bytes, buffer) =
            (u32::from(size) % 60, Buffer { address: 1 << 39, bytes: u32::from(size) * 100 });
        let (deadline, effects) = (at.is_multiple_of(2).then_some(u64::from(at)), &mut self.to_card);
        let _ = match what % 5 {
            0 => self.card.write(context, target, &vec![1; bytes as usize], deadline, effects),
            1 => self.card.write_indirect(context, target, buffer, deadline, effects),
            2 => self.card.read(context, target, bytes, deadline, effects),
            3 => self.card.read_indirect(context, target, buffer, deadline, effects),
            _ => {
                let guards = [0, 1].map(|id| Guard { from: TargetId(id), want: Want::Indirect(buffer) });
                self.card.select(context, &guards, deadline, effects)
            }
        };
    }

    /// Completes the work of a manager, with the real mailbox or a forged one.
    fn work(&mut self, (_, what, size, at): Step) {
        if self.work.is_empty() {
            return;
        }
        let (effect, effects) = (self.work.swap_remove(usize::from(at) % self.work.len()), &mut self.to_card);
        match effect {
            CardEffect::Fetch { manager, mailbox } => {
                let mut bytes = *self.host.mailbox(mailbox).unwrap();
                if what.is_multiple_of(3) {
                    bytes = forge(&bytes, what / 3, size, at);
                }
                self.card.fetched(manager, &bytes, effects).unwrap();
            }
            CardEffect::Push { manager, mailbox, bytes } => {
                let bytes = if what.is_multiple_of(3) { forge(&bytes, what / 3, size, at) } else { bytes };
                self.host.deposit(mailbox, &bytes).unwrap();
                self.card.done(manager, effects).unwrap();
            }
            CardEffect::Dma { manager, entry, .. } => {
                self.card.dma_done(manager, entry, !what.is_multiple_of(5), effects).unwrap();
            }
            CardEffect::Ask { manager, .. }
            | CardEffect::Deliver { manager, .. }
            | CardEffect::Collect { manager, .. } => self.card.done(manager, effects).unwrap(),
            CardEffect::Interrupt | CardEffect::Signal { .. } | CardEffect::Drop { .. } => unreachable!(),
        }
    }

    /// Makes completion calls for actions that may not have begun.
    fn stray_completion(&mut self, (_, what, size, at): Step) {
        let thread = ThreadId(at % 5);
        let bytes = forge(&[0; MAILBOX_BYTES], what, size, at);
        let direction = if at.is_multiple_of(2) { Direction::ToCard } else { Direction::ToHost };
        match what % 5 {
            0 => drop(self.host.pin_failed(thread, &mut self.to_host)),
            1 => drop(self.host.pinned(thread, &[Page::new(0, 100).unwrap()], &mut self.to_host)),
            2 => drop(self.host.deposit(Mailbox { channel: size.into(), direction }, &bytes)),
            3 => drop(self.card.ring(Mailbox { channel: size.into(), direction }, &mut self.to_card)),
            _ => {
                let manager = ManagerId { direction, index: size | 2 };
                assert!(self.card.done(manager, &mut self.to_card).is_err());
                assert!(self.card.fetched(manager, &bytes, &mut self.to_card).is_err());
                assert!(self.card.dma_done(manager, size, true, &mut self.to_card).is_err());
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step.0 % 16 {
            0 | 1 => self.call_host(step),
            2 | 3 => self.call_card(step),
            4 | 5 if !self.rings.is_empty() => {
                let mailbox = self.rings.remove(0);
                self.card.ring(mailbox, &mut self.to_card).unwrap();
            }
            6 | 7 => self.host.interrupt(&mut self.to_host),
            8 if step.1 < 64 => self.host.tick(step.3.into(), &mut self.to_host),
            9 if step.1 < 64 => self.card.tick(step.3.into(), &mut self.to_card),
            10 => self.stray_completion(step),
            _ => self.work(step),
        }
        self.collect();
    }
}

proptest! {
    #[test]
    fn forged_mailboxes_break_nothing(steps in prop::collection::vec(any::<Step>(), 1..400)) {
        let mut fuzz = Fuzz::new();
        for step in steps {
            fuzz.step(step);
        }
    }
}
