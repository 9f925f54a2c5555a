//! Commands that a host posts to its card, to change counters, entries and lists.
//!
//! A post takes the time o of a CPU. Then the command crosses the bus. The command waits for the matching unit like a
//! packet, and takes effect at the end of its service. If the command has a reply, the host sees the reply one bus
//! crossing later.

use crate::host::in_order::Posting;
use crate::stages;
use crate::{CallError, Card};
use nicety_host::{Cpus, Notice, Transfer};
use nicety_kernel::describe;
use nicety_nic_core::FailureKind;
use nicety_portals::{CtEvent, CtHandle, Effects, Error, Interface, List, Me, MeHandle, SearchOp};
use nicety_types::{MessageId, Path};
use std::cell::RefCell;
use std::rc::Rc;

/// The card's reply to a command, with the path up to the time at which the host sees it.
type Answer<T> = (Result<T, Error>, Path);

/// The result of a command in flight to the card.
pub struct Pending<T> {
    pub(crate) result: Rc<RefCell<Option<Answer<T>>>>,
}

impl<T> Clone for Pending<T> {
    fn clone(&self) -> Pending<T> {
        Pending { result: self.result.clone() }
    }
}

impl<T> Pending<T> {
    /// Returns the reason for which the card refused the command. `None` if the card has accepted the command, or has
    /// not served it yet.
    pub(crate) fn refused(&self) -> Option<Error> {
        match &*self.result.borrow() {
            Some((Err(error), _)) => Some(*error),
            _ => None,
        }
    }
}

/// An append in flight to the card.
pub type Appending = Pending<MeHandle>;

impl Card {
    /// Adds to a counter (`PtlCTInc`). Returns when the command has been posted.
    ///
    /// # Errors
    /// When there is no such counter, or both successes and failures are added.
    pub async fn ct_inc(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        ct: CtHandle,
        by: CtEvent,
    ) -> Result<(), CallError> {
        self.interface.borrow().ct_get(ct)?;
        self.tell(cpus, path, "counter increment", move |i, effects| i.ct_inc(ct, by, effects)).await;
        Ok(())
    }

    /// Sets a counter (`PtlCTSet`). Returns when the command has been posted.
    ///
    /// # Errors
    /// When there is no such counter.
    pub async fn ct_set(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        ct: CtHandle,
        value: CtEvent,
    ) -> Result<(), CallError> {
        self.interface.borrow().ct_get(ct)?;
        self.tell(cpus, path, "change of a counter", move |i, effects| i.ct_set(ct, value, effects)).await;
        Ok(())
    }

    /// Adds to `target` when `ct` has reached `threshold` (`PtlTriggeredCTInc`). Returns when the command has been
    /// posted.
    ///
    /// # Errors
    /// Like [`Card::ct_inc`].
    pub async fn triggered_ct_inc(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        target: (CtHandle, CtEvent),
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), CallError> {
        let (counter, by) = target;
        self.interface.borrow().ct_get(counter)?;
        self.interface.borrow().ct_get(ct)?;
        let act = move |interface: &mut Interface, effects: &mut Effects| {
            interface.triggered_ct_inc(counter, by, ct, threshold, effects)
        };
        self.tell(cpus, path, "triggered counter increment", act).await;
        Ok(())
    }

    /// Sets `target` when `ct` has reached `threshold` (`PtlTriggeredCTSet`). Returns when the command has been posted.
    ///
    /// # Errors
    /// Like [`Card::ct_set`].
    pub async fn triggered_ct_set(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        target: (CtHandle, CtEvent),
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), CallError> {
        let (counter, value) = target;
        self.interface.borrow().ct_get(counter)?;
        self.interface.borrow().ct_get(ct)?;
        let act = move |interface: &mut Interface, effects: &mut Effects| {
            interface.triggered_ct_set(counter, value, ct, threshold, effects)
        };
        self.tell(cpus, path, "triggered change of a counter", act).await;
        Ok(())
    }

    /// Cancels the triggered operations of a counter (`PtlCTCancelTriggered`). Returns when the command has been
    /// posted.
    ///
    /// # Errors
    /// When there is no such counter.
    pub async fn ct_cancel_triggered(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        ct: CtHandle,
    ) -> Result<(), CallError> {
        self.interface.borrow().ct_get(ct)?;
        self.tell(cpus, path, "cancellation", move |interface, _| interface.ct_cancel_triggered(ct)).await;
        Ok(())
    }

    /// Appends a match entry (`PtlMEAppend`). Returns when the command has been posted.
    ///
    /// # Errors
    /// When the entry's memory is not host memory. [`Card::answered`] reports refusals by the card.
    pub async fn me_append(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        pt: u32,
        me: Me,
        list: List,
    ) -> Result<Appending, CallError> {
        self.dma.memory().check(me.start, me.length)?;
        let attachment = match me.handlers {
            None => None,
            Some(cookie) => {
                Some(self.processors().attachments.get(cookie).ok_or(CallError::NotAttached { cookie })?)
            }
        };
        if let Some(attachment) = &attachment {
            attachment.appending.set(attachment.appending.get() + 1);
        }
        let append = move |interface: &mut Interface, effects: &mut Effects| {
            if let Some(attachment) = attachment {
                attachment.appending.set(attachment.appending.get() - 1);
            }
            interface.me_append(pt, me, list, effects)
        };
        Ok(self.ask(cpus, path, append).await)
    }

    /// Like [`Card::me_append`] to the priority list, for a host that does not wait for the card's answer. The host
    /// only checks for a refusal.
    ///
    /// # Errors
    /// Like [`Card::me_append`].
    pub(crate) async fn me_append_unanswered(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        pt: u32,
        me: Me,
        posting: &Posting<'_>,
    ) -> Result<Appending, CallError> {
        self.dma.memory().check(me.start, me.length)?;
        let append = move |interface: &mut Interface, effects: &mut Effects| {
            interface.me_append(pt, me, List::Priority, effects)
        };
        Ok(self.post_command(cpus, path, Some(posting), append).await)
    }

    /// Waits until the card has appended an entry and the host has noticed this, like [`Card::answered`].
    ///
    /// # Errors
    /// When the card refused the command.
    pub async fn appended(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        appending: Appending,
    ) -> Result<MeHandle, CallError> {
        self.answered(cpus, path, appending, "append a match entry").await
    }

    /// Unlinks a match entry (`PtlMEUnlink`), even an entry that handlers have left linked. Returns when the command
    /// has been posted.
    pub async fn me_unlink(self: &Rc<Card>, cpus: &Cpus, path: &mut Path, me: MeHandle) -> Pending<()> {
        let card = self.clone();
        let unlink = move |interface: &mut Interface, effects: &mut Effects| {
            card.complete.unlink(interface, effects, me)
        };
        self.ask(cpus, path, unlink).await
    }

    /// Searches the unexpected headers (`PtlMESearch`). Returns when the command has been posted. Events report the
    /// results.
    pub async fn me_search(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        pt: u32,
        me: Me,
        op: SearchOp,
    ) -> Pending<()> {
        self.ask(cpus, path, move |interface, effects| interface.me_search(pt, me, op, effects)).await
    }

    /// Enables (`PtlPTEnable`) or disables (`PtlPTDisable`) a portal table entry. Returns when the command has been
    /// posted.
    pub async fn pt_enable(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        pt: u32,
        enabled: bool,
    ) -> Pending<()> {
        let act = move |interface: &mut Interface, _: &mut Effects| match enabled {
            true => interface.pt_enable(pt),
            false => interface.pt_disable(pt),
        };
        self.ask(cpus, path, act).await
    }

    /// Waits until the current atomic operations have written host memory and the host has noticed this
    /// (`PtlAtomicSync`).
    ///
    /// # Errors
    /// Like [`Card::answered`].
    pub async fn atomic_sync(self: &Rc<Card>, cpus: &Cpus, path: &mut Path) -> Result<(), CallError> {
        let command = self.next_message();
        cpus.post(path, command).await;
        let crossing = self.dma.bus().push(command, 0, 1, path.clone());
        *path = self.command_served(command, crossing).await;
        // The reply is a write that follows the writes of the atomic operations.
        self.atomics.idle().await;
        path.advance(stages::ATOMIC_QUEUED, self.sim.now());
        *path = self.dma.bus().post(Notice::Event, path.clone());
        self.sim.until(path.at()).await;
        cpus.notice(path, None).await;
        Ok(())
    }

    /// Waits until the card has replied to a command and the host has noticed the reply. `what` names the command in
    /// deadlock reports.
    ///
    /// # Errors
    /// When the card refused the command.
    pub async fn answered<T>(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        pending: Pending<T>,
        what: &'static str,
    ) -> Result<T, CallError> {
        let done = self.view.changed.wait_until(|| pending.result.borrow().is_some());
        describe(move || format!("its card to {what}"), done).await;
        let (result, seen) = pending.result.take().expect("just waited for");
        path.follow(&seen);
        cpus.notice(path, None).await;
        Ok(result?)
    }

    /// Posts a command without a reply. If the card refuses the command, the refusal is among the card's failures.
    pub(crate) async fn tell(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        what: &'static str,
        act: impl FnOnce(&mut Interface, &mut Effects) -> Result<(), Error> + 'static,
    ) {
        let command = self.next_message();
        cpus.post(path, command).await;
        let (card, crossing) = (self.clone(), self.dma.bus().push(command, 0, 1, path.clone()));
        self.sim.spawn(async move {
            let path = card.command_served(command, crossing).await;
            let mut result = Ok(());
            card.with_effects(path, |interface, effects| result = act(interface, effects));
            if let Err(error) = result {
                card.processors().report_failure(
                    FailureKind::Refused,
                    None,
                    format!("the card refused a {what}: {error}"),
                );
            }
        });
    }

    /// Posts a command with an answer that the host sees.
    pub(crate) async fn ask<T: 'static>(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        act: impl FnOnce(&mut Interface, &mut Effects) -> Result<T, Error> + 'static,
    ) -> Pending<T> {
        self.post_command(cpus, path, None, act).await
    }

    /// Posts a command with an answer. Without `posting`, the host may wait for the answer. With `posting`, the command
    /// stays behind earlier calls, and the host only checks for a refusal.
    async fn post_command<T: 'static>(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        posting: Option<&Posting<'_>>,
        act: impl FnOnce(&mut Interface, &mut Effects) -> Result<T, Error> + 'static,
    ) -> Pending<T> {
        let command = self.next_message();
        cpus.post(path, command).await;
        if let Some(posting) = posting {
            posting.turn(path).await;
        }
        let waits = posting.is_none();
        let pending = Pending { result: Rc::default() };
        let (card, result) = (self.clone(), pending.result.clone());
        let crossing = self.dma.bus().push(command, 0, 1, path.clone());
        self.sim.spawn(async move {
            let path = card.command_served(command, crossing).await;
            let mut answer = None;
            card.with_effects(path.clone(), |interface, effects| answer = Some(act(interface, effects)));
            // The host sees the reply one bus crossing later.
            let seen = card.dma.bus().post(Notice::Event, path);
            let refused = matches!(answer, Some(Err(_)));
            if !refused && !waits {
                return card.sim.expect(seen.at());
            }
            card.sim.until(seen.at()).await;
            *result.borrow_mut() = answer.map(|answer| (answer, seen));
            card.view.changed.notify_all();
            if let Some(messages) = card.library.get().filter(|_| refused) {
                messages.wake_all();
            }
        });
        pending
    }

    /// Waits for the end of a command's service in the matching unit. Returns the path up to that time.
    async fn command_served(&self, command: MessageId, crossing: Transfer) -> Path {
        let crossing = crossing.packet(0).await;
        self.sim.until(crossing.head).await;
        let mut path = crossing.landed();
        self.matched(command, self.spec.match_command, &mut path).await;
        path
    }
}
