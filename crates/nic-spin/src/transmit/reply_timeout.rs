//! Timeouts of replies. An operation fails at the initiator if the target's card has given up its reply or its
//! acknowledgement. It also fails if the target's card has failed before it could send them.
//!
//! With reliable transport a card gives up after [`Wire::patience`](nicety_nic_core::parts::transport::Wire::patience).
//! An initiator that has waited for this time without any reply probes the targets. The operations on a target that
//! does not answer, or has given up, have failed. A target that answers the probe may still reply, and is probed again
//! after the same time. After `transport.retries` + 1 rounds of probes without any change, probing stops until the next
//! change. Thus a run without progress can end.

use crate::Card;
use nicety_kernel::{Signal, Sim, race};
use nicety_portals::{FailType, OperationHandle};
use nicety_types::{Duration, NodeId, Path, Time};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The state of waiting for replies.
pub(crate) struct Answers {
    changed: Signal,
    /// Number of changes in the number of pending operations.
    changes: Cell<u64>,
    /// Whether probing has stopped until the next change.
    resting: Cell<bool>,
}

impl Answers {
    pub(crate) fn new(sim: &Sim) -> Answers {
        Answers { changed: Signal::new(sim), changes: Cell::new(0), resting: Cell::new(false) }
    }

    /// Records a change in the number of pending operations.
    pub(crate) fn count(&self, before: u32, after: u32) {
        if before == after {
            return;
        }
        self.changes.set(self.changes.get() + 1);
        if before == 0 || after == 0 || self.resting.get() {
            self.changed.notify_all();
        }
    }
}

impl Card {
    /// The task that watches operations with outstanding answers. `patience` is the time until the next probes.
    pub(crate) async fn watch_answers(self: Rc<Card>, patience: Duration) {
        let Answers { changed, changes, resting } = &self.transmit.answers;
        let unanswered = || self.interface.borrow().unanswered_operations();
        let (mut asked, mut before) = (0, 0);
        loop {
            changed.wait_until(|| unanswered() > 0).await;
            let over = Time::from_ps(self.sim.now().ps().saturating_add(patience.ps()));
            race(self.sim.until(over), changed.wait_until(|| unanswered() == 0)).await;
            if unanswered() == 0 {
                continue;
            }
            if before != changes.get() {
                (asked, before) = (0, changes.get());
            } else if asked > self.spec.transport.retries {
                resting.set(true);
                changed.wait_until(|| changes.get() != before).await;
                resting.set(false);
                continue;
            }
            asked += 1;
            let peers: BTreeSet<NodeId> =
                self.interface.borrow().unanswered().map(|(_, peer, _)| peer).collect();
            for peer in peers {
                if !self.transmit.port.answers(peer).await {
                    self.fail_answers(peer);
                }
            }
        }
    }

    /// Fails the operations that wait for an answer of `peer`.
    fn fail_answers(self: &Rc<Card>, peer: NodeId) {
        let lost: Vec<(OperationHandle, bool)> = {
            let interface = self.interface.borrow();
            let of_peer = interface.unanswered().filter(|(_, from, _)| *from == peer);
            of_peer.map(|(operation, _, arriving)| (operation, arriving)).collect()
        };
        let path = Path::from(self.sim.now());
        for (operation, arriving) in lost {
            if arriving {
                self.cut_reply(operation);
            } else {
                self.with_effects(path.clone(), |interface, effects| {
                    interface
                        .failed(operation, FailType::Undeliverable, effects)
                        .expect("it is sent, and waits for an answer");
                });
            }
        }
    }

    /// Ends a reply that has begun to arrive: its other packets will not arrive.
    fn cut_reply(self: &Rc<Card>, operation: OperationHandle) {
        let place = self.incoming.borrow_mut().cut(operation, self.sim.now());
        if let Some(place) = place {
            self.advance(place);
        }
    }
}
