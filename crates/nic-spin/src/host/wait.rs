//! A host's waits for counters and events, in its own view. The host takes the time o of a CPU to notice a change.

use crate::host::view::{ChangeOrigin, Slot};
use crate::{CallError, Card};
use nicety_host::Cpus;
use nicety_kernel::{Signal, describe, timeout};
use nicety_portals::{Counted, CtEvent, CtHandle, EqHandle, Event};
use nicety_types::{Duration, Path, Stage, Time};

/// Returns a hint for a counter that does not advance.
const fn counting(counted: Counted) -> &'static str {
    match counted {
        Counted::Yes => "",
        Counted::ByAcknowledgements => {
            ", and event_ct_ack counts only puts that request an acknowledgement (ack)"
        }
        Counted::ByHandlers => {
            ", and only handlers count into it, with PtlHandlerCTInc or a counting put; its match entry lacks event_ct_comm"
        }
        Counted::ByNothing => {
            ", and nothing counts into it: set ct and event_ct_comm of a match entry, or ct and \
             event_ct_send, event_ct_reply or event_ct_ack of a memory descriptor"
        }
    }
}

impl Card {
    /// Returns a signal for every change of a counter or an event queue in the host's view.
    pub fn changed(&self) -> Signal {
        self.view.changed.clone()
    }

    /// Returns a counter in the host's view (`PtlCTGet`).
    pub fn ct_get(&self, ct: CtHandle) -> CtEvent {
        self.view.counter(ct).map_or_else(CtEvent::default, |(value, _)| value)
    }

    /// As [`ct_get`](Card::ct_get), for a handle that a program has kept.
    ///
    /// # Errors
    /// When the counter does not exist.
    pub fn ct_value(&self, ct: CtHandle) -> Result<CtEvent, CallError> {
        self.interface.borrow().ct_get(ct)?;
        Ok(self.ct_get(ct))
    }

    /// Returns the time of a counter's last change in the host's view. `None` if the counter has not changed.
    pub fn ct_changed(&self, ct: CtHandle) -> Option<Time> {
        self.view.counter(ct).map(|(_, seen)| seen.path.at())
    }

    /// Waits until a counter has reached `threshold` successes or has a failure. Then the host notices the counter
    /// (`PtlCTWait`).
    ///
    /// # Errors
    /// When there is no such counter, or counted operations have failed.
    pub async fn ct_wait(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<CtEvent, CallError> {
        self.interface.borrow().ct_get(ct)?;
        let reached = || {
            self.view.counter(ct).is_some_and(|(value, _)| value.success >= threshold || value.failure > 0)
        };
        let why = || {
            let (value, counted) = (self.ct_get(ct).success, self.interface.borrow().counted(ct));
            format!("a counter to reach {threshold}; it is at {value}{}", counting(counted))
        };
        if threshold > 0 {
            describe(why, self.view.changed.wait_until(reached)).await;
        }
        let nothing = (CtEvent::default(), ChangeOrigin { path: path.clone(), message: None });
        let (value, seen) = self.view.counter(ct).unwrap_or(nothing);
        self.notice(cpus, path, &seen).await;
        match value.failure {
            0 => Ok(value),
            failures => {
                let first = self.interface.borrow().first_failure(ct);
                Err(CallError::Failures { failures, first })
            }
        }
    }

    /// Waits until one of these counters has reached its threshold or has a failure, or until `limit` has passed. Then
    /// the host notices the counter (`PtlCTPoll`). Returns the counter's index and value, or `None` after `limit`.
    ///
    /// # Errors
    /// When there is no such counter.
    pub async fn ct_poll(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        counters: &[(CtHandle, u64)],
        limit: Option<Duration>,
    ) -> Result<Option<(usize, CtEvent)>, CallError> {
        for (ct, _) in counters {
            self.interface.borrow().ct_get(*ct)?;
        }
        let reached = || {
            counters.iter().position(|&(ct, threshold)| {
                let value = self.ct_get(ct);
                value.success >= threshold || value.failure > 0
            })
        };
        let why = || format!("one of {} counters to reach its threshold", counters.len());
        if !self.wait_for(path, limit, || reached().is_some(), why).await {
            cpus.notice(path, None).await;
            return Ok(None);
        }
        let index = reached().expect("just waited for");
        let ct = counters[index].0;
        let nothing = (CtEvent::default(), ChangeOrigin { path: path.clone(), message: None });
        let (value, seen) = self.view.counter(ct).unwrap_or(nothing);
        self.notice(cpus, path, &seen).await;
        Ok(Some((index, value)))
    }

    /// Waits until `over` returns true, at most for `limit`. Returns false if `limit` has passed. The wait is then
    /// accounted as polling.
    async fn wait_for(
        &self,
        path: &mut Path,
        limit: Option<Duration>,
        over: impl Fn() -> bool + Unpin,
        why: impl Fn() -> String,
    ) -> bool {
        if over() {
            return true;
        }
        let waiting = describe(why, self.view.changed.wait_until(over));
        let Some(limit) = limit else {
            waiting.await;
            return true;
        };
        let came = timeout(&self.sim, limit, waiting).await.is_ok();
        if !came {
            path.advance(Stage::NOTICE, self.sim.now());
        }
        came
    }

    /// Waits for the first event in a queue that `wanted` accepts, takes the event, and notices it (`PtlEQWait`). Other
    /// events stay in the queue. `what` names the event in deadlock reports.
    ///
    /// # Errors
    /// When there is no such queue, or earlier events were lost because the queue was full (`PTL_EQ_DROPPED`). The loss is
    /// reported once. The next call continues after the loss.
    pub async fn eq_wait(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        eq: EqHandle,
        wanted: impl Fn(&Event) -> bool,
        what: impl Fn() -> String,
    ) -> Result<Event, CallError> {
        self.interface.borrow().eq_dropped(eq)?;
        describe(what, self.view.changed.wait_until(|| self.view.has(eq, &wanted))).await;
        self.take(cpus, path, eq, wanted).await
    }

    /// Returns the next event of a queue, if there is one (`PtlEQGet`). The call takes the time o of a CPU, with or
    /// without an event.
    ///
    /// # Errors
    /// When there is no such queue, or as [`Card::eq_wait`].
    pub async fn eq_get(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        eq: EqHandle,
    ) -> Result<Option<Event>, CallError> {
        let found = self.eq_poll(cpus, path, &[eq], Some(Duration::ZERO)).await?;
        Ok(found.map(|(_, event)| event))
    }

    /// Waits until one of these queues has an event, or until `limit` has passed. Takes an event from the first queue
    /// that has one, and notices it (`PtlEQPoll`). Returns the queue's index and the event, or `None` after `limit`.
    ///
    /// # Errors
    /// When there is no such queue, or as [`Card::eq_wait`].
    pub async fn eq_poll(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        queues: &[EqHandle],
        limit: Option<Duration>,
    ) -> Result<Option<(usize, Event)>, CallError> {
        for eq in queues {
            self.interface.borrow().eq_dropped(*eq)?;
        }
        let ready = || queues.iter().position(|&eq| self.view.has(eq, |_| true));
        let why = || match queues.len() {
            1 => "an event in its queue".to_string(),
            several => format!("an event in one of {several} queues"),
        };
        let now = limit.is_some_and(Duration::is_zero);
        let came =
            if now { ready().is_some() } else { self.wait_for(path, limit, || ready().is_some(), why).await };
        if !came {
            cpus.notice(path, None).await;
            return Ok(None);
        }
        let index = ready().expect("just waited for");
        Ok(Some((index, self.take(cpus, path, queues[index], |_| true).await?)))
    }

    /// Takes the entry found by [`HostView::has`](crate::host::view::HostView::has), and notices it.
    pub(crate) async fn take(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        eq: EqHandle,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Event, CallError> {
        match self.view.take(eq, wanted).expect("just seen") {
            Slot::Lost(lost) => Err(CallError::EventsLost { lost }),
            Slot::Event(event, seen) => {
                self.interface.borrow_mut().eq_consumed(eq, 1)?;
                self.notice(cpus, path, &seen).await;
                Ok(event)
            }
        }
    }

    /// Spends the CPU time to notice a change in the host's view.
    async fn notice(&self, cpus: &Cpus, path: &mut Path, seen: &ChangeOrigin) {
        path.follow(&seen.path);
        cpus.notice(path, seen.message).await;
        if let Some(message) = seen.message {
            self.recorder.message_noticed(message, self.sim.now());
        }
    }
}
