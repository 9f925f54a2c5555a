//! Channels to the processes on this host's card.

use super::{Buffer, Host};
use crate::Error;
use nicety_nic_nfp::{self as nfp, ChannelError, Guard};
use nicety_types::{Duration, Path};

/// A device file, through which a host's thread calls the processes on its card. A device belongs to the thread that opened it.
/// Each thread opens its own device.
#[derive(Clone)]
pub struct Device {
    pub(super) host: Host,
    pub(super) device: nfp::Device,
    /// The number of the card in the host.
    pub(super) card: usize,
}

/// A channel to the process that serves a target, on one of the host's cards. It carries messages in both directions, one
/// at a time in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    channel: nfp::Channel,
    target: u32,
    card: usize,
}

impl Channel {
    /// The target of this channel.
    pub fn target(&self) -> u32 {
        self.target
    }
}

/// A receive that [`Device::select`] may choose.
#[derive(Clone, Copy, Debug)]
pub enum Alternative<'b> {
    /// A direct message of this length in bytes.
    Direct(Channel, u32),
    /// An indirect message that fills a buffer.
    Indirect(Channel, &'b Buffer),
}

/// A send or receive for [`Device::start`].
#[derive(Clone, Copy, Debug)]
pub enum Job<'b> {
    /// A direct message to the process.
    Send(&'b [u8]),
    /// A direct message from the process, of this length in bytes.
    Receive(u32),
    /// An indirect message to the process.
    SendInd(&'b Buffer),
    /// An indirect message from the process, which fills a buffer.
    ReceiveInd(&'b Buffer),
}

/// A pending call on a channel. If it is dropped, the call still completes.
pub struct Pending {
    host: Host,
    pending: nfp::Pending,
    target: u32,
}

impl Pending {
    /// Whether the call has ended. This takes no virtual time.
    pub fn is_done(&self) -> bool {
        self.pending.is_done()
    }

    /// Waits until the call has ended. Returns the bytes of a received direct message. For any other call, the result is empty.
    ///
    /// # Errors
    /// Those of [`Device::send`], [`Device::receive`], [`Device::send_ind`] and [`Device::receive_ind`].
    pub async fn wait(self) -> Result<Vec<u8>, Error> {
        let Pending { host, pending, target } = self;
        let waited = host.timed("wait", async |path: &mut Path| pending.wait(path).await).await;
        let payload = waited.map_err(|error| about("wait for", target, error))?;
        Ok(payload.to_vec())
    }
}

impl Device {
    /// Opens a channel to the process that has registered this target.
    ///
    /// # Errors
    /// When no process has registered the target, or its process already has a channel.
    pub async fn subscribe(&self, target: u32) -> Result<Channel, Error> {
        let subscribe = async |path: &mut Path| self.device.subscribe(path, target).await;
        let opened = self.host.timed("subscribe", subscribe).await;
        let channel = opened.map_err(|error| about("subscribe to", target, error))?;
        Ok(Channel { channel, target, card: self.card })
    }

    /// Checks that a channel belongs to this device's card.
    fn own(&self, channel: Channel) -> Result<nfp::Channel, Error> {
        if channel.card == self.card {
            return Ok(channel.channel);
        }
        Err(Error::Input(format!(
            "the channel to target {} is on card {}, but the device is card {}; use the device that opened the channel",
            channel.target, channel.card, self.card
        )))
    }

    /// Closes a channel. If the process waits on the channel, its wait returns an error.
    ///
    /// # Errors
    /// When the channel is not open, or a thread is in a call on the channel.
    pub async fn close(&self, channel: Channel) -> Result<(), Error> {
        let number = self.own(channel)?;
        let close = async |path: &mut Path| self.device.close(path, number).await;
        let closed = self.host.timed("close", close).await;
        closed.map_err(|error| about("close", channel.target, error))
    }

    /// Sends a direct message of 1 to 56 bytes. Returns when the process has received it. `timeout` limits the wait for the
    /// process; without a timeout the wait is unlimited.
    ///
    /// # Errors
    /// [`Error::Input`] when the size is invalid, and [`Error::TimedOut`] after the timeout. Other errors when the process
    /// expects another size or kind of message, another thread is sending on this channel, or the channel is not open.
    pub async fn send(&self, channel: Channel, bytes: &[u8], timeout: Option<Duration>) -> Result<(), Error> {
        let number = self.own(channel)?;
        let send = async |path: &mut Path| self.device.send(path, number, bytes, timeout).await;
        let sent = self.host.timed("send", send).await;
        sent.map_err(|error| about("send to", channel.target, error))
    }

    /// Receives a direct message of exactly `bytes` bytes.
    ///
    /// # Errors
    /// Those of [`Device::send`].
    pub async fn receive(
        &self,
        channel: Channel,
        bytes: u32,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, Error> {
        let number = self.own(channel)?;
        let receive = async |path: &mut Path| self.device.receive(path, number, bytes, timeout).await;
        let received = self.host.timed("receive", receive).await;
        let payload = received.map_err(|error| about("receive from", channel.target, error))?;
        Ok(payload.to_vec())
    }

    /// Sends a buffer as an indirect message. Returns when the process has received it.
    ///
    /// # Errors
    /// Those of [`Device::send`]. Also when DMA transfers of the message fail too often.
    pub async fn send_ind(
        &self,
        channel: Channel,
        buffer: &Buffer,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        let (number, bytes) = (self.own(channel)?, length("send_ind", buffer)?);
        let send = async |path: &mut Path| {
            self.device.send_indirect(path, number, buffer.address(), bytes, timeout).await
        };
        let sent = self.host.timed("send_ind", send).await;
        sent.map_err(|error| about("send_ind to", channel.target, error))
    }

    /// Receives an indirect message that fills a buffer.
    ///
    /// # Errors
    /// Those of [`Device::send_ind`].
    pub async fn receive_ind(
        &self,
        channel: Channel,
        buffer: &Buffer,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        let (number, bytes) = (self.own(channel)?, length("receive_ind", buffer)?);
        let receive = async |path: &mut Path| {
            self.device.receive_indirect(path, number, buffer.address(), bytes, timeout).await
        };
        let received = self.host.timed("receive_ind", receive).await;
        received.map_err(|error| about("receive_ind from", channel.target, error))
    }

    /// Starts a send or a receive on a channel. Returns after the driver's first step: a direct message is on the card, or the
    /// pages of a buffer are locked. [`Pending::wait`] waits for the end of the call. Until then, the program must not use the
    /// buffer.
    ///
    /// # Errors
    /// Those of [`Device::send`] and [`Device::send_ind`], if they occur in this first step.
    pub async fn start(
        &self,
        channel: Channel,
        job: Job<'_>,
        timeout: Option<Duration>,
    ) -> Result<Pending, Error> {
        let job = match job {
            Job::Send(bytes) => nfp::Job::Send(bytes),
            Job::Receive(bytes) => nfp::Job::Receive(bytes),
            Job::SendInd(buffer) => nfp::Job::SendIndirect(buffer.address(), length("start", buffer)?),
            Job::ReceiveInd(buffer) => nfp::Job::ReceiveIndirect(buffer.address(), length("start", buffer)?),
        };
        let number = self.own(channel)?;
        let start = async |path: &mut Path| self.device.start(path, number, job, timeout).await;
        let started = self.host.timed("start", start).await;
        let pending = started.map_err(|error| about("start on", channel.target, error))?;
        Ok(Pending { host: self.host.clone(), pending, target: channel.target })
    }

    /// Waits until one of several channels has a message, and receives it. If several channels have a message, the first in the
    /// list of alternatives is received. Returns the index of that alternative, and the bytes of a direct message. The bytes of
    /// an indirect message are in its buffer.
    ///
    /// # Errors
    /// Those of [`Device::receive`] and [`Device::receive_ind`], for the received alternative. [`Error::Input`] when
    /// the list is empty, or two alternatives have the same channel.
    pub async fn select(
        &self,
        alternatives: &[Alternative<'_>],
        timeout: Option<Duration>,
    ) -> Result<(usize, Vec<u8>), Error> {
        let mut guards = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            guards.push(match *alternative {
                Alternative::Direct(channel, bytes) => nfp::Device::direct(self.own(channel)?, bytes),
                Alternative::Indirect(channel, buffer) => {
                    let bytes = length("select", buffer)?;
                    nfp::Device::indirect(self.own(channel)?, buffer.address(), bytes)
                }
            });
        }
        self.select_guards(alternatives, &guards, timeout).await
    }

    async fn select_guards(
        &self,
        alternatives: &[Alternative<'_>],
        guards: &[Guard<nfp::Channel>],
        timeout: Option<Duration>,
    ) -> Result<(usize, Vec<u8>), Error> {
        let select = async |path: &mut Path| self.device.select(path, guards, timeout).await;
        let selected = self.host.timed("select", select).await;
        let selected = selected.map_err(|error| Error::from_channel("select", error))?;
        let (Alternative::Direct(channel, _) | Alternative::Indirect(channel, _)) =
            alternatives[selected.index];
        let completion = selected.result.map_err(|error| about("select from", channel.target, error))?;
        Ok((selected.index, completion.payload.to_vec()))
    }
}

fn about(what: &str, target: u32, error: ChannelError) -> Error {
    Error::from_channel(&format!("{what} target {target}"), error)
}

/// Returns the length of a buffer as the size of a message. `what` names the call in the error.
fn length(what: &str, buffer: &Buffer) -> Result<u32, Error> {
    u32::try_from(buffer.len()).map_err(|_| {
        Error::Input(format!(
            "{what}: a message of {} bytes is too long for any card; send it in parts",
            buffer.len()
        ))
    })
}
