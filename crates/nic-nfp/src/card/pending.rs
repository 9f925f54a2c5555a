//! Asynchronous calls: a thread passes a message to the driver, and continues. A thread of the kernel does the rest of
//! the call.

use crate::card::driver::{Caller, Request};
use crate::card::{Card, ChannelError, Device};
use crate::stages;
use nicety_channels::{Buffer, Channel, Error, Payload};
use nicety_kernel::describe;
use nicety_types::{Duration, MessageId, Path, Stage};
use std::fmt;
use std::rc::Rc;

/// A message that an asynchronous call sends or receives.
#[derive(Clone, Copy, Debug)]
pub enum Job<'b> {
    /// Sends a direct message of these bytes to the process.
    Send(&'b [u8]),
    /// Receives a direct message of this length in bytes from the process.
    Receive(u32),
    /// Sends an indirect message from host memory: its address, and its length in bytes.
    SendIndirect(u64, u32),
    /// Receives an indirect message into host memory: its address, and its length in bytes.
    ReceiveIndirect(u64, u32),
}

/// A call that has begun. If this value is dropped, the call still completes.
pub struct Pending {
    card: Rc<Card>,
    caller: Caller,
    target: u32,
}

impl Device {
    /// Begins a call on a channel. Returns when the driver has done the call's first work: the card has the message to
    /// send, or the pages are locked. The interrupt wakes a thread of the kernel, which does the driver's further work.
    ///
    /// # Errors
    /// Those of [`Device::send`] and [`Device::send_indirect`], if the call cannot begin. [`Pending::wait`] returns
    /// later errors.
    pub async fn start(
        &self,
        path: &mut Path,
        channel: Channel,
        job: Job<'_>,
        timeout: Option<Duration>,
    ) -> Result<Pending, ChannelError> {
        let request = match job {
            Job::Send(bytes) => {
                let payload = Payload::new(bytes).ok_or(Error::DirectTooLong(bytes.len() as u64))?;
                Request::Send(channel, payload)
            }
            Job::Receive(bytes) => Request::Receive(channel, bytes),
            Job::SendIndirect(address, bytes) => Request::SendIndirect(channel, Buffer { address, bytes }),
            Job::ReceiveIndirect(address, bytes) => {
                Request::ReceiveIndirect(channel, Buffer { address, bytes })
            }
        };
        let caller = self.make(path, request, timeout).await?;
        caller.thread.ended.wait_until(|| caller.begun().is_some()).await;
        *path = caller.begun().expect("a call that has begun has a path");
        if let Some(error) = caller.refusal() {
            return Err(error);
        }
        Ok(Pending { card: self.card().clone(), caller, target: self.target(channel) })
    }
}

impl Pending {
    /// Whether the call has ended. The library reads this from memory, which takes no virtual time.
    pub fn is_done(&self) -> bool {
        self.caller.is_done()
    }

    /// Waits for the call's end by a system call: the thread sleeps until the kernel's thread wakes it. Returns the
    /// bytes of a received direct message, and an empty payload after other calls.
    ///
    /// # Errors
    /// Those of [`Device::send`] and [`Device::send_indirect`].
    pub async fn wait(self, path: &mut Path) -> Result<Payload, ChannelError> {
        let (card, caller) = (&self.card, &self.caller);
        card.kernel.cpus().spend(card.spec.channels.library, Stage::LIBRARY, path).await;
        card.kernel.call(path).await;
        let sleeps = !caller.is_done();
        let what = || format!("the process at target {} to take part in a call that has begun", self.target);
        describe(what, caller.thread.ended.wait_until(|| caller.is_done())).await;
        let outcome = caller.outcome().expect("a call that is done has an outcome");
        if sleeps {
            path.follow(&outcome.path);
            path.advance(stages::RECEIVER, card.sim.now());
            card.kernel.wake(path).await;
        }
        card.noticed(outcome.received);
        Ok(outcome.result?.1?.payload)
    }
}

impl Card {
    /// Records that a thread has seen the message that it received.
    pub(super) fn noticed(&self, received: Option<MessageId>) {
        if let Some(message) = received {
            self.recorder.message_noticed(message, self.sim.now());
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending(target {})", self.target)
    }
}
