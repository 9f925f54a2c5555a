//! The effects of changes in the Portals interface, and their way to the host.

use crate::Card;
use crate::complete::ChangeOrigin;
use nicety_host::Notice;
use nicety_portals::{Effect, Effects, Interface};
use nicety_types::{MessageId, Path, Payload, Stage, Starter, Time};
use std::rc::Rc;

impl Card {
    /// Calls `act` on the interface, and executes its effects. `path` ends at the time of the change.
    pub(crate) fn with_effects(self: &Rc<Card>, path: Path, act: impl FnOnce(&mut Interface, &mut Effects)) {
        self.with_effects_of(None, path, act);
    }

    /// Like [`Card::with_effects`], and attributes changes in the host's view to `message`. Returns the path up to the
    /// time at which the host sees these changes.
    pub(crate) fn with_effects_of(
        self: &Rc<Card>,
        message: Option<MessageId>,
        path: Path,
        act: impl FnOnce(&mut Interface, &mut Effects),
    ) -> Path {
        debug_assert!(
            path.at() >= self.sim.now(),
            "a path that ends in the past would show its effects too early"
        );
        let mut effects = self.complete.effects.take();
        let (before, after) = {
            let mut interface = self.interface.borrow_mut();
            let before = interface.unanswered_operations();
            act(&mut interface, &mut effects);
            (before, interface.unanswered_operations())
        };
        self.transmit.count_unanswered(before, after);
        let mut visible = path.clone();
        for effect in effects.drain() {
            if let Some(seen) = self.apply(effect, ChangeOrigin { path: path.clone(), message }) {
                visible = seen;
            }
        }
        self.complete.effects.replace(effects);
        visible
    }

    /// Executes an effect. If the host sees the effect, returns the path up to the time at which it does.
    fn apply(self: &Rc<Card>, effect: Effect, seen: ChangeOrigin) -> Option<Path> {
        let ChangeOrigin { path, message } = seen;
        match effect {
            Effect::Start(out) => {
                self.start(&out, path, Starter::Trigger);
                None
            }
            Effect::Ack(header) => {
                self.send_from_card(header, Payload::empty(), None, None, path, Starter::Card);
                None
            }
            Effect::Redeliver { header, start } => {
                self.redeliver(header, start, path);
                None
            }
            seen_by_host => {
                // The change is a posted write, which stays behind all earlier writes.
                let mut posted = self.complete.posted.borrow_mut();
                let behind = posted.back().map_or(Time::ZERO, |(time, ..)| *time);
                let notice = match seen_by_host {
                    Effect::Count { .. } => Notice::Counter,
                    _ => Notice::Event,
                };
                let mut path = self.dma.bus().post(notice, path);
                let visible = path.at().max(behind);
                path.advance(Stage::DEPOSIT, visible);
                posted.push_back((visible, seen_by_host, ChangeOrigin { path: path.clone(), message }));
                self.complete.posting.notify_one();
                Some(path)
            }
        }
    }

    /// Makes events and counts visible to the host when they have crossed the bus; never returns.
    pub(crate) async fn publish(self: Rc<Card>) {
        loop {
            self.complete.posting.wait_until(|| !self.complete.posted.borrow().is_empty()).await;
            let visible = self.complete.posted.borrow().front().expect("just seen").0;
            self.sim.until(visible).await;
            // Bytes that arrive at this instant were handed over before the event, so they are written first.
            self.dma.land_due();
            let (_, effect, seen) =
                self.complete.posted.borrow_mut().pop_front().expect("only this task takes them");
            match effect {
                Effect::Event { eq, event } if self.is_for_library(eq, &event, &seen) => {}
                Effect::Event { eq, event } => self.view.event(eq, event, seen),
                Effect::EventDropped { eq } => {
                    self.view.lost(eq);
                    if let Some(messages) = self.library.get().filter(|messages| messages.events == eq) {
                        messages.wake_all();
                    }
                }
                Effect::Count { ct, value } => self.view.count(ct, value, seen),
                Effect::Start(_) | Effect::Ack(_) | Effect::Redeliver { .. } => {
                    unreachable!("carried out by the card")
                }
            }
        }
    }
}
