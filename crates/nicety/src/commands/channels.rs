//! Commands on channels to processes.

use super::{Outcome, Part, Program, nothing, numbered};
use crate::{Alternative, Buffer, Channel, Error, Host, Job, PendingMessage};
use nicety_types::Duration;
use std::collections::HashMap;

/// Calls on channels that have begun, by their numbers.
#[derive(Default)]
pub(super) struct PendingMessages {
    waiting: HashMap<u64, PendingMessage>,
    started: u64,
}

/// The calls of [`crate::Device`], under the same names. A channel has the number in the outcome of `Subscribe`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the calls and arguments of `Device`, under the same names")]
pub enum ChannelCall {
    Subscribe { target: u32 },
    Close { channel: u64 },
    Send { channel: u64, contents: Vec<u8>, timeout: Option<Duration> },
    Receive { channel: u64, bytes: u32, timeout: Option<Duration> },
    SendInd { channel: u64, part: Part, timeout: Option<Duration> },
    ReceiveInd { channel: u64, part: Part, timeout: Option<Duration> },
    Select { alternatives: Vec<Wanted>, timeout: Option<Duration> },
    StartSend { channel: u64, contents: Vec<u8>, timeout: Option<Duration> },
    StartReceive { wanted: Wanted, timeout: Option<Duration> },
    StartSendInd { channel: u64, part: Part, timeout: Option<Duration> },
    Wait { pending: u64 },
}

/// A message that a selection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A direct message.
    Direct {
        /// Its channel.
        channel: u64,
        /// Its length.
        bytes: u32,
    },
    /// An indirect message.
    Indirect {
        /// Its channel.
        channel: u64,
        /// Its destination.
        part: Part,
    },
}

impl Program {
    pub(super) async fn channels(&self, host: &Host, call: ChannelCall) -> Result<Outcome, Error> {
        let device = host.channels()?.open();
        match call {
            ChannelCall::Subscribe { target } => {
                let channel = device.subscribe(target).await?;
                Ok(numbered(&self.0.channels, channel))
            }
            ChannelCall::Close { channel } => device.close(self.channel(channel)?).await.map(nothing),
            ChannelCall::Send { channel, contents, timeout } => {
                device.send(self.channel(channel)?, &contents, timeout).await.map(nothing)
            }
            ChannelCall::Receive { channel, bytes, timeout } => {
                let received = device.receive(self.channel(channel)?, bytes, timeout).await?;
                Ok(Outcome::Bytes(received.to_vec()))
            }
            ChannelCall::SendInd { channel, part, timeout } => {
                let (channel, buffer) = (self.channel(channel)?, self.part(part)?);
                device.send_ind(channel, &buffer, timeout).await.map(nothing)
            }
            ChannelCall::ReceiveInd { channel, part, timeout } => {
                let (channel, buffer) = (self.channel(channel)?, self.part(part)?);
                device.receive_ind(channel, &buffer, timeout).await.map(nothing)
            }
            ChannelCall::StartSend { channel, contents, timeout } => {
                let channel = self.channel(channel)?;
                self.started(device.start(channel, Job::Send(&contents), timeout).await?)
            }
            ChannelCall::StartReceive { wanted, timeout } => match self.wanted(wanted)? {
                Found::Direct(channel, bytes) => {
                    self.started(device.start(channel, Job::Receive(bytes), timeout).await?)
                }
                Found::Indirect(channel, buffer) => {
                    self.started(device.start(channel, Job::ReceiveInd(&buffer), timeout).await?)
                }
            },
            ChannelCall::StartSendInd { channel, part, timeout } => {
                let (channel, buffer) = (self.channel(channel)?, self.part(part)?);
                self.started(device.start(channel, Job::SendInd(&buffer), timeout).await?)
            }
            ChannelCall::Wait { pending } => {
                let taken = self.0.pending.borrow_mut().waiting.remove(&pending);
                let waited_for =
                    || Error::Program("wait: another call has waited for this message".to_owned());
                Ok(Outcome::Bytes(taken.ok_or_else(waited_for)?.wait().await?))
            }
            ChannelCall::Select { alternatives, timeout } => {
                let wanted = alternatives.iter().map(|wanted| self.wanted(*wanted));
                let wanted = wanted.collect::<Result<Vec<_>, Error>>()?;
                let alternatives: Vec<_> = wanted.iter().map(Found::alternative).collect();
                let (index, bytes) = device.select(&alternatives, timeout).await?;
                Ok(Outcome::Selected(index as u32, bytes.to_vec()))
            }
        }
    }

    /// Keeps a call that has begun, and returns its number as an outcome.
    fn started(&self, pending: PendingMessage) -> Result<Outcome, Error> {
        let mut all = self.0.pending.borrow_mut();
        all.started += 1;
        let number = all.started;
        all.waiting.insert(number, pending);
        Ok(Outcome::Word(number))
    }

    fn wanted(&self, wanted: Wanted) -> Result<Found, Error> {
        Ok(match wanted {
            Wanted::Direct { channel, bytes } => Found::Direct(self.channel(channel)?, bytes),
            Wanted::Indirect { channel, part } => Found::Indirect(self.channel(channel)?, self.part(part)?),
        })
    }

    fn channel(&self, number: u64) -> Result<Channel, Error> {
        let unknown = || Error::Program(format!("this host has subscribed to no channel {number}"));
        self.0.channels.borrow().get(number as usize).copied().ok_or_else(unknown)
    }
}

/// The channel and destination of a [`Wanted`].
enum Found {
    Direct(Channel, u32),
    Indirect(Channel, Buffer),
}

impl Found {
    fn alternative(&self) -> Alternative<'_> {
        match self {
            Found::Direct(channel, bytes) => Alternative::Direct(*channel, *bytes),
            Found::Indirect(channel, buffer) => Alternative::Indirect(*channel, buffer),
        }
    }
}
