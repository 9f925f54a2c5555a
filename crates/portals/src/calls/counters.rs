//! Counting events, and the triggered operations that wait on them ('Lightweight Counting Events', 'Triggered Operations').
//!
//! A triggered operation is due when its counter's successes plus failures reach its threshold. So a chain of
//! operations continues to its end even after a failure. A wait (`PtlCTWait`) compares only the successes.
//!
//! Operations on one counter become due in the order of their thresholds. With equal thresholds, they become due in the
//! order of posting. A change of a counter first makes all operations due that have reached their threshold, and then
//! carries them out. So an operation that sets the counter back does not delay the others. Operations of all counters
//! are carried out in the order in which they became due.

use crate::error::release;
use crate::state::counter::{Action, Ct};
use crate::{CtEvent, CtHandle, Effect, Effects, Error, Interface};

impl Interface {
    /// Allocates a counter at zero (`PtlCTAlloc`).
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    pub fn ct_alloc(&mut self) -> Result<CtHandle, Error> {
        self.counters.insert(Ct::default())
    }

    /// Frees a counter (`PtlCTFree`).
    ///
    /// # Errors
    /// [`Error::Stale`], or [`Error::InUse`] while a match entry, descriptor or triggered operation uses it.
    pub fn ct_free(&mut self, ct: CtHandle) -> Result<(), Error> {
        let counter = self.counters.get(ct)?;
        release(counter.users, "counter", "a match entry, memory descriptor or triggered operation")?;
        release(counter.waiting.len() as u32, "counter", "triggered operations that wait on it")?;
        self.counters.remove(ct).map(drop)
    }

    /// Returns the counter's current value (`PtlCTGet`).
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn ct_get(&self, ct: CtHandle) -> Result<CtEvent, Error> {
        Ok(self.counters.get(ct)?.value)
    }

    /// Sets the counter and carries out the operations that become due (`PtlCTSet`).
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn ct_set(&mut self, ct: CtHandle, value: CtEvent, effects: &mut Effects) -> Result<(), Error> {
        self.counters.get(ct)?;
        self.change(ct, |_| value, effects);
        self.carry_out(effects);
        Ok(())
    }

    /// Adds successes or failures to the counter and carries out the operations that become due (`PtlCTInc`). The sum wraps at 2^64.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::ArgInvalid`] if `by` has both successes and failures, which the specification forbids.
    pub fn ct_inc(&mut self, ct: CtHandle, by: CtEvent, effects: &mut Effects) -> Result<(), Error> {
        self.counters.get(ct)?;
        one_of_both(by)?;
        self.count(ct, by, effects);
        Ok(())
    }

    /// Adds `by` to `target` when the successes plus failures of `ct` reach `threshold` (`PtlTriggeredCTInc`).
    ///
    /// # Errors
    /// Those of [`Interface::ct_inc`], and [`Error::NoSpace`].
    pub fn triggered_ct_inc(
        &mut self,
        target: CtHandle,
        by: CtEvent,
        ct: CtHandle,
        threshold: u64,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        one_of_both(by)?;
        self.wait_to_change(target, Action::Inc(target, by), ct, threshold, effects)
    }

    /// Sets `target` when the successes plus failures of `ct` reach `threshold` (`PtlTriggeredCTSet`).
    ///
    /// # Errors
    /// Those of [`Interface::ct_set`], and [`Error::NoSpace`].
    pub fn triggered_ct_set(
        &mut self,
        target: CtHandle,
        value: CtEvent,
        ct: CtHandle,
        threshold: u64,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        self.wait_to_change(target, Action::Set(target, value), ct, threshold, effects)
    }

    /// Cancels every triggered operation that waits on the counter (`PtlCTCancelTriggered`).
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn ct_cancel_triggered(&mut self, ct: CtHandle) -> Result<(), Error> {
        self.counters.get(ct)?;
        while let Some((_, action)) = self.counters.get_mut(ct)?.waiting.pop_front() {
            self.triggered -= 1;
            match action {
                Action::Start(operation) => self.forget(operation),
                Action::Inc(target, _) | Action::Set(target, _) => self.counters.get_mut(target)?.users -= 1,
            }
        }
        Ok(())
    }

    fn wait_to_change(
        &mut self,
        target: CtHandle,
        action: Action,
        ct: CtHandle,
        threshold: u64,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        self.counters.get(target)?;
        self.can_wait(ct)?;
        self.counters.get_mut(target)?.users += 1;
        self.wait(action, ct, threshold, effects);
        Ok(())
    }

    /// Checks that `ct` exists, and that the limit allows one more triggered operation.
    pub(crate) fn can_wait(&self, ct: CtHandle) -> Result<(), Error> {
        self.counters.get(ct)?;
        if self.triggered >= self.limits.triggered {
            let limit = self.limits.triggered;
            return Err(Error::NoSpace { what: "triggered operation", name: "triggered", limit });
        }
        Ok(())
    }

    /// Queues `action` on the counter, or carries it out if the counter has already reached the threshold.
    pub(crate) fn wait(&mut self, action: Action, ct: CtHandle, threshold: u64, effects: &mut Effects) {
        self.triggered += 1;
        let counter = self.counters.get_mut(ct).expect("the caller has looked at the counter");
        if counter.value.total() >= threshold {
            self.due.push_back(action);
            self.carry_out(effects);
        } else {
            let at = counter.waiting.partition_point(|(t, _)| *t <= threshold);
            counter.waiting.insert(at, (threshold, action));
        }
    }

    /// Adds to a counter that is in use, and carries out the operations that become due.
    pub(crate) fn count(&mut self, ct: CtHandle, by: CtEvent, effects: &mut Effects) {
        self.add(ct, by, effects);
        self.carry_out(effects);
    }

    fn add(&mut self, ct: CtHandle, by: CtEvent, effects: &mut Effects) {
        let sum = |old: CtEvent| CtEvent {
            success: old.success.wrapping_add(by.success),
            failure: old.failure.wrapping_add(by.failure),
        };
        self.change(ct, sum, effects);
    }

    /// Changes a counter, reports its value to the host, and makes all operations due that have reached their
    /// threshold.
    fn change(&mut self, ct: CtHandle, new: impl FnOnce(CtEvent) -> CtEvent, effects: &mut Effects) {
        let counter = self.counters.get_mut(ct).expect("a counter in use is not freed");
        counter.value = new(counter.value);
        effects.push(Effect::Count { ct, value: counter.value });
        while let Some((threshold, action)) = counter.waiting.front() {
            if *threshold > counter.value.total() {
                break;
            }
            self.due.push_back(*action);
            counter.waiting.pop_front();
        }
    }

    /// Carries out all due operations, and all operations that these make due. The loop ends, because each operation is
    /// carried out only once.
    fn carry_out(&mut self, effects: &mut Effects) {
        while let Some(action) = self.due.pop_front() {
            self.triggered -= 1;
            match action {
                Action::Start(operation) => effects.push(Effect::Start(self.operations.begin(operation))),
                Action::Inc(target, by) => {
                    self.add(target, by, effects);
                    self.counters.unuse(Some(target));
                }
                Action::Set(target, value) => {
                    self.change(target, |_| value, effects);
                    self.counters.unuse(Some(target));
                }
            }
        }
    }
}

fn one_of_both(by: CtEvent) -> Result<(), Error> {
    if by.success != 0 && by.failure != 0 {
        return Err(Error::ArgInvalid(
            "an increment adds to the successes or to the failures; use two increments to add to both",
        ));
    }
    Ok(())
}
