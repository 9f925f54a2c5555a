//! Timeouts of replies. No packet tells an initiator that the remote card has given up its reply or acknowledgement, or
//! has failed. The initiator detects this by probes, and fails the operation.
//!
//! With reliable transport a card gives up after [`Wire::patience`](nicety_nic_core::parts::transport::Wire::patience).
//! An initiator that has waited for this time without an answer sends a probe to each target. If a target does not
//! answer the probe, or answers that it has given up, the operations on this target fail. If a target answers normally,
//! it may still reply, and it is probed again after the same time. After `transport.retries` + 1 rounds of probes
//! without any change, probing stops until the next change. So a run without progress can end.

use crate::Card;
use nicety_kernel::{Signal, Sim, race};
use nicety_portals::{FailType, OperationHandle};
use nicety_types::{Duration, NodeId, Path, Time};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The state of the waits for replies and acknowledgements.
pub(crate) struct Answers {
    changed: Signal,
    /// Number of changes in the number of operations without an answer.
    changes: Cell<u64>,
    /// Whether probing has stopped until the next change.
    resting: Cell<bool>,
}

impl Answers {
    pub(crate) fn new(sim: &Sim) -> Answers {
        Answers { changed: Signal::new(sim), changes: Cell::new(0), resting: Cell::new(false) }
    }

    /// Records a change in the number of operations without an answer.
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
    /// Watches the operations without an answer; never returns. `patience` is the time until the next round of probes.
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

    /// Fails the operations that wait for an answer from `peer`.
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

    /// Ends a reply that has begun to arrive, because its other packets will not arrive.
    fn cut_reply(self: &Rc<Card>, operation: OperationHandle) {
        let place = self.incoming.borrow_mut().cut(operation, self.sim.now());
        if let Some(place) = place {
            self.advance(place);
        }
    }
}
