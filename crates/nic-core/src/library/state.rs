//! The state of a host's library.

use super::{Announcements, ArrivedMessage, Receiving, Types};
use crate::parts::{Early, Matching};
use crate::{Arrival, Wanted, counted};
use nicety_kernel::{Signal, Sim};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Posted receives, and messages without a receive.
type Lists<T> = Matching<Rc<Receiving<T>>, ArrivedMessage<<T as Types>::Body>>;

/// The state of a host's library.
pub struct Library<T: Types> {
    sim: Sim,
    matching: RefCell<Lists<T>>,
    early: Rc<Early>,
    /// Notified when a CTS arrives, when the library fails, and on progress that the design reports.
    pub changed: Signal,
    failed: RefCell<Option<T::Failure>>,
    /// Whether a call has returned the failure.
    told: Cell<bool>,
}

impl<T: Types> Library<T> {
    /// Returns a library without messages.
    pub fn new(sim: &Sim) -> Library<T> {
        Library::signalling(sim, Rc::new(Early::new(sim)))
    }

    /// Returns a library without messages. It signals messages without a receive by `early`. Other code may also signal
    /// changes by `early`.
    pub fn signalling(sim: &Sim, early: Rc<Early>) -> Library<T> {
        Library {
            sim: sim.clone(),
            matching: RefCell::default(),
            early,
            changed: Signal::new(sim),
            failed: RefCell::default(),
            told: Cell::new(false),
        }
    }

    /// The signal of messages without a receive, and of the library's failure.
    pub fn early(&self) -> &Early {
        &self.early
    }

    /// Removes and returns the oldest posted receive that takes a message from this source with this tag.
    pub fn take_receive(&self, source: u32, tag: u64) -> Option<Rc<Receiving<T>>> {
        self.matching.borrow_mut().take_receive(|posted| posted.wanted.takes(source, tag)).0
    }

    /// Whether a posted receive takes a message from this source with this tag.
    pub fn awaits(&self, source: u32, tag: u64) -> bool {
        self.matching.borrow().receives().any(|posted| posted.wanted.takes(source, tag))
    }

    /// Keeps a message that no posted receive takes.
    pub fn keep(&self, came: ArrivedMessage<T::Body>) {
        self.matching.borrow_mut().keep(came);
        self.early.note();
    }

    /// Adds a receive. Returns the receive, and the oldest message that it takes. If there is no such message, posts
    /// the receive.
    pub(super) fn add(&self, wanted: Wanted) -> (Rc<Receiving<T>>, Option<ArrivedMessage<T::Body>>) {
        let receiving = Rc::new(Receiving::new(&self.sim, wanted));
        let mut matching = self.matching.borrow_mut();
        let came = matching.take_message(|came| came.is_for(&wanted)).0;
        if came.is_none() {
            matching.post(receiving.clone());
        }
        (receiving, came)
    }

    /// Withdraws a posted receive. Returns false if a message has already taken the receive.
    pub fn withdraw(&self, receiving: &Rc<Receiving<T>>) -> bool {
        self.matching.borrow_mut().withdraw(|posted| Rc::ptr_eq(posted, receiving)).is_some()
    }

    /// Returns the oldest message without a receive that `wanted` would take. The message stays in its list.
    pub fn first(&self, wanted: &Wanted) -> Option<Arrival> {
        let matching = self.matching.borrow();
        matching.messages().find(|came| came.is_for(wanted)).map(|came| came.arrival(came.bytes))
    }

    /// Describes the messages that no receive has taken, for a note. `None` if there are none.
    pub fn unreceived(&self) -> Option<String> {
        let matching = self.matching.borrow();
        let mut messages = matching.messages();
        let count = messages.len() as u64;
        let ArrivedMessage { source, tag, bytes, .. } = messages.next()?;
        let (first, verb) = if count == 1 { (":", "waits") } else { (", the first", "wait") };
        let count = counted(count, "message");
        Some(format!("{count} {verb} for a recv{first} one of {bytes} bytes from rank {source}, tag {tag}"))
    }

    /// Waits for the CTS of a long message, and takes the CTS. The message stays announced.
    ///
    /// # Errors
    /// When the library fails before the CTS arrives.
    pub async fn answered<P>(
        &self,
        announced: &Announcements<P>,
        number: u64,
    ) -> Result<(P, Path), T::Error> {
        self.until(|| announced.is_answered(number)).await?;
        Ok(announced.take(number).expect("just seen"))
    }

    /// Records the library's failure. Only the first failure counts.
    pub fn fail(&self, failure: T::Failure) {
        self.failed.borrow_mut().get_or_insert(failure);
        self.changed.notify_all();
        self.early.note();
    }

    /// Whether the library has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.borrow().is_some()
    }

    /// Returns the library's failure as the error of a call, if the library has failed.
    pub fn failure(&self) -> Option<T::Error> {
        let failed = self.failed.borrow();
        let failure = failed.as_ref()?;
        self.told.set(true);
        Some(T::failed(failure))
    }

    /// Returns the library's failure, if no call has returned it yet.
    pub fn untold(&self) -> Option<T::Failure> {
        self.failed.borrow().clone().filter(|_| !self.told.get())
    }

    /// Waits until `there` returns true or the library has failed.
    ///
    /// # Errors
    /// When the library fails before `there` returns true.
    pub async fn until(&self, there: impl Fn() -> bool) -> Result<(), T::Error> {
        self.changed.wait_until(|| there() || self.has_failed()).await;
        if there() { Ok(()) } else { Err(self.failure().expect("one of the two")) }
    }
}

/// Runs `work` in a separate task, so that `work` completes even if the caller is dropped. Returns the first part of
/// its result. The second part is dropped after the caller has been woken.
pub async fn to_its_end<V: 'static, R: 'static>(
    sim: &Sim,
    work: impl Future<Output = (V, R)> + 'static,
) -> V {
    let (result, done) = (Rc::new(RefCell::new(None)), Signal::new(sim));
    let (store, tell) = (result.clone(), done.clone());
    sim.spawn(async move {
        let (value, _rest) = work.await;
        store.replace(Some(value));
        tell.notify_one();
    });
    done.wait_until(|| result.borrow().is_some()).await;
    let value = result.take();
    value.expect("just seen")
}
