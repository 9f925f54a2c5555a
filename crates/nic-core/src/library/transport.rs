//! The functions that a card's design implements for the library, and operations that use them.

use super::{ArrivedMessage, Library, Receiving, Types};
use crate::{Arrival, CardError, Outgoing, Wanted};
use nicety_kernel::{describe, race};
use nicety_types::Path;
use std::rc::Rc;

/// A design's part of the library of a host. It moves messages, and takes the simulated time of the host's calls.
#[expect(async_fn_in_trait, reason = "all tasks of a node run on one thread")]
pub trait Transport: Types {
    /// Whether a recording has rows for waits for receives.
    const SHOWS_WAITS: bool = false;
    /// Whether a recording has rows for probes and cancellations.
    const SHOWS_LOOKS: bool = true;

    /// The state of the library.
    fn library(&self) -> &Library<Self>;

    /// Checks a message before it is sent. Takes no simulated time.
    ///
    /// # Errors
    /// When the message cannot be sent.
    fn check_send(&self, _message: &Outgoing) -> Result<(), CardError> {
        Ok(())
    }

    /// Sends a message for a thread of the host's program. Returns when the message's buffer may be reused.
    ///
    /// # Errors
    /// When the message cannot be sent.
    async fn send(self: &Rc<Self>, thread: u32, message: Outgoing, path: &mut Path) -> Result<(), CardError>;

    /// Checks a receive before it is posted. Takes no simulated time.
    ///
    /// # Errors
    /// When the receive cannot be posted.
    fn check_receive(self: &Rc<Self>, _wanted: &Wanted) -> Result<(), CardError> {
        Ok(())
    }

    /// Checks the source of a probe. Takes no simulated time.
    ///
    /// # Errors
    /// When no message can arrive from this source.
    fn check_source(&self, _source: Option<u32>) -> Result<(), CardError> {
        Ok(())
    }

    /// Begins to deliver a message to the receive that has taken it. `path` is the path of the message or of the
    /// receive, whichever came later.
    fn deliver(self: &Rc<Self>, receiving: Rc<Receiving<Self>>, came: ArrivedMessage<Self::Body>, path: Path);

    /// Informs the design of a posted receive. `path` is the path of the program that posted it.
    fn posted(self: &Rc<Self>, _receiving: &Rc<Receiving<Self>>, _path: &Path) {}

    /// Informs the design of a cancelled receive.
    fn withdrawn(&self, _receiving: &Receiving<Self>) {}

    /// Waits for the message of a receive.
    ///
    /// # Errors
    /// When the receive or the library has failed.
    async fn receive(
        self: &Rc<Self>,
        _thread: u32,
        receiving: &Rc<Receiving<Self>>,
        path: &mut Path,
    ) -> Result<Arrival, CardError> {
        self.ended(receiving, path).await.map_err(Into::into)
    }

    /// Takes the simulated time of a call that only reads or changes the library's lists.
    async fn call(&self, thread: u32, path: &mut Path);

    /// Prepares a probe, and takes the probe's simulated time.
    ///
    /// # Errors
    /// When no message can be probed.
    async fn look(self: &Rc<Self>, thread: u32, _wanted: &Wanted, path: &mut Path) -> Result<(), CardError> {
        self.call(thread, path).await;
        Ok(())
    }

    /// Matches a message that has arrived. Returns whether a posted receive has taken it.
    fn arrive(self: &Rc<Self>, came: ArrivedMessage<Self::Body>, path: Path) -> bool {
        let receiving = self.library().take_receive(came.source, came.tag);
        let met = receiving.is_some();
        match receiving {
            Some(receiving) => self.deliver(receiving, came, path),
            None => self.library().keep(came),
        }
        met
    }

    /// Posts a receive. It takes the oldest message that matches, or waits for a message. `path` is the path of the
    /// program that posts it.
    fn post(self: &Rc<Self>, wanted: Wanted, path: &Path) -> Rc<Receiving<Self>> {
        let (receiving, came) = self.library().add(wanted);
        if let Some(came) = came {
            self.deliver(receiving.clone(), came, path.clone());
        }
        self.posted(&receiving, path);
        receiving
    }

    /// Waits until a receive has ended or the library has failed.
    ///
    /// # Errors
    /// When the receive or the library has failed.
    async fn ended(&self, receiving: &Receiving<Self>, path: &mut Path) -> Result<Arrival, Self::Error> {
        let (library, wanted) = (self.library(), receiving.wanted);
        let failed = library.changed.wait_until(|| library.has_failed());
        let done = receiving.done.wait_until(|| receiving.has_result());
        describe(move || wanted.what(), race(done, failed)).await;
        match receiving.take_result() {
            Some((result, its)) => {
                path.follow(&its);
                result
            }
            None => Err(library.failure().expect("one of the two")),
        }
    }
}
