//! The calls of a host's programs: channels to the processes of the card.

use crate::card::driver::{Caller, Ended, Request};
use crate::card::{Card, ChannelError};
use nicety_channels::{Buffer, Channel, Completion, Error, Guard, Payload, TargetId, Want};
use nicety_kernel::describe;
use nicety_types::{Duration, Path, Stage};
use std::fmt;
use std::rc::Rc;

/// The result of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Index of the guard that received a message.
    pub index: usize,
    /// The result of this guard's receive.
    pub result: Result<Completion, ChannelError>,
}

/// An open device. A clone is cheap and refers to the same device.
///
/// At most `limits.threads` threads (a spec key) may be in calls at the same time. At the beginning of a call, `path`
/// accounts for the thread's time up to now. When the call returns, `path` also accounts for the call. If the caller
/// drops a call, the call still completes, like the call of a thread that is never joined.
///
/// A timeout limits the wait for the other end. Without a timeout, the wait is unlimited.
#[derive(Clone)]
pub struct Device {
    card: Rc<Card>,
    /// Whether a call waits for a free thread. If not, it fails when no thread is free.
    patient: bool,
}

impl Device {
    pub(super) fn new(card: &Rc<Card>) -> Device {
        Device { card: card.clone(), patient: false }
    }

    /// Returns the same device, with calls that wait for a free thread.
    pub(crate) fn patient(self) -> Device {
        Device { patient: true, ..self }
    }

    /// Returns the device's card.
    pub fn card(&self) -> &Rc<Card> {
        &self.card
    }

    /// Subscribes to a target, and returns a channel to the process that registered it.
    ///
    /// # Errors
    /// When no process has registered the target, another channel is subscribed to it, or the maximum number of
    /// channels is open.
    pub async fn subscribe(&self, path: &mut Path, target: u32) -> Result<Channel, ChannelError> {
        let what = move || format!("the card to answer its subscription to target {target}");
        let (ended, opened) = self.call(path, Request::Subscribe(TargetId(target)), None, what).await?;
        ended.1?;
        let channel = opened.expect("a subscription that ended well has opened a channel");
        let (mut targets, index) = (self.card.targets.borrow_mut(), usize::from(channel.index()));
        if targets.len() <= index {
            targets.resize(index + 1, 0);
        }
        targets[index] = target;
        Ok(channel)
    }

    /// Closes a channel. A process that waits at the other end of the channel receives an error.
    ///
    /// # Errors
    /// When the channel is not open, or a thread is in a call on the channel.
    pub async fn close(&self, path: &mut Path, channel: Channel) -> Result<(), ChannelError> {
        let what = move || format!("the card to let go of target {}", self.target(channel));
        let (ended, _) = self.call(path, Request::Close(channel), None, what).await?;
        ended.1?;
        Ok(())
    }

    /// Sends a direct message of 1 to 56 bytes. Returns when the process has received the message.
    ///
    /// # Errors
    /// When the message is empty or too long, another thread sends on this channel, or the channel is not open. Also
    /// when the process expects another size or kind of message, or does not read before the timeout.
    pub async fn send(
        &self,
        path: &mut Path,
        channel: Channel,
        bytes: &[u8],
        timeout: Option<Duration>,
    ) -> Result<(), ChannelError> {
        let payload = Payload::new(bytes).ok_or(Error::DirectTooLong(bytes.len() as u64))?;
        let what =
            move || format!("the process at target {} to read {}", self.target(channel), payload.len());
        let request = Request::Send(channel, payload);
        let (ended, _) = self.call(path, request, timeout, move || what() + " bytes").await?;
        ended.1?;
        Ok(())
    }

    /// Receives a direct message of exactly `bytes` bytes.
    ///
    /// # Errors
    /// Those of [`Device::send`].
    pub async fn receive(
        &self,
        path: &mut Path,
        channel: Channel,
        bytes: u32,
        timeout: Option<Duration>,
    ) -> Result<Payload, ChannelError> {
        let what = move || format!("the process at target {} to write {bytes} bytes", self.target(channel));
        let (ended, _) = self.call(path, Request::Receive(channel, bytes), timeout, what).await?;
        Ok(ended.1?.payload)
    }

    /// Sends `bytes` bytes of host memory from `address` on. Returns when the process has received the bytes and the
    /// pages are unlocked.
    ///
    /// # Errors
    /// Those of [`Device::send`]. Also when the range is not in host memory, or DMA fails too often.
    pub async fn send_indirect(
        &self,
        path: &mut Path,
        channel: Channel,
        address: u64,
        bytes: u32,
        timeout: Option<Duration>,
    ) -> Result<(), ChannelError> {
        let what = move || format!("the process at target {} to read {bytes} bytes", self.target(channel));
        let request = Request::SendIndirect(channel, Buffer { address, bytes });
        let (ended, _) = self.call(path, request, timeout, what).await?;
        ended.1?;
        Ok(())
    }

    /// Receives exactly `bytes` bytes into host memory from `address` on. Returns when the bytes have arrived and the
    /// pages are unlocked.
    ///
    /// # Errors
    /// Those of [`Device::send_indirect`].
    pub async fn receive_indirect(
        &self,
        path: &mut Path,
        channel: Channel,
        address: u64,
        bytes: u32,
        timeout: Option<Duration>,
    ) -> Result<(), ChannelError> {
        let what = move || format!("the process at target {} to write {bytes} bytes", self.target(channel));
        let request = Request::ReceiveIndirect(channel, Buffer { address, bytes });
        let (ended, _) = self.call(path, request, timeout, what).await?;
        ended.1?;
        Ok(())
    }

    /// Receives from one of several channels, as soon as the process of a channel writes. If several processes have
    /// written, receives from the first of them in the order of the guards.
    ///
    /// # Errors
    /// When there are no guards, a guard is invalid, or no process writes before the timeout. An error of the receive
    /// itself is in [`Selected::result`].
    pub async fn select(
        &self,
        path: &mut Path,
        guards: &[Guard<Channel>],
        timeout: Option<Duration>,
    ) -> Result<Selected, ChannelError> {
        let numbers: Vec<_> = guards.iter().map(|guard| self.target(guard.from).to_string()).collect();
        let what = move || format!("a process at one of the targets {} to write", numbers.join(", "));
        let (ended, _) = self.call(path, Request::Select(guards.to_vec()), timeout, what).await?;
        match ended {
            (_, Err(failure @ nicety_channels::Failure::Timeout)) => Err(failure.into()),
            (guard, result) => {
                Ok(Selected { index: usize::from(guard), result: result.map_err(ChannelError::from) })
            }
        }
    }

    /// Returns a guard for [`Device::select`] that receives a direct message of `bytes` bytes.
    pub const fn direct(channel: Channel, bytes: u32) -> Guard<Channel> {
        Guard { from: channel, want: Want::Direct(bytes) }
    }

    /// Returns a guard for [`Device::select`] that receives an indirect message into host memory.
    pub const fn indirect(channel: Channel, address: u64, bytes: u32) -> Guard<Channel> {
        Guard { from: channel, want: Want::Indirect(Buffer { address, bytes }) }
    }

    /// Returns the target of a channel, or 0 if the card has no such channel.
    pub(super) fn target(&self, channel: Channel) -> u32 {
        self.card.targets.borrow().get(usize::from(channel.index())).copied().unwrap_or(0)
    }

    async fn call(
        &self,
        path: &mut Path,
        request: Request,
        timeout: Option<Duration>,
        what: impl Fn() -> String,
    ) -> Result<(Ended, Option<Channel>), ChannelError> {
        let caller = self.make(path, request, timeout).await?;
        describe(what, caller.thread.ended.wait_until(|| caller.is_done())).await;
        let outcome = caller.outcome().expect("a call that is done has an outcome");
        *path = outcome.path;
        self.card.noticed(outcome.received);
        Ok((outcome.result?, outcome.opened))
    }

    /// Makes a call in a free thread. If the caller drops this future, the call continues.
    pub(super) async fn make(
        &self,
        path: &mut Path,
        request: Request,
        timeout: Option<Duration>,
    ) -> Result<Caller, ChannelError> {
        let card = &self.card;
        let deadline = timeout.map(|timeout| (card.sim.now() + timeout).ps());
        let caller = loop {
            match card.take_thread() {
                Err(Error::NoSpace { .. }) if self.patient => card.thread_freed.wait().await,
                taken => break taken?,
            }
        };
        path.advance(Stage::SEND_QUEUED, card.sim.now());
        let call = card.clone().call(caller.thread.clone(), caller.id, request, deadline, path.clone());
        card.sim.spawn(call);
        Ok(caller)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({:?})", self.card)
    }
}
