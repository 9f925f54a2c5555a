//! Commands for channels to processes.

use super::calls::calls;
use super::{Outcome, Part, Program, numbered};
use crate::{Alternative, Buffer, Channel, Error, Job, PendingMessage};
use nicety_types::Duration;
use std::collections::HashMap;

/// Pending calls on channels, by their numbers.
#[derive(Default)]
pub(super) struct PendingMessages {
    waiting: HashMap<u64, PendingMessage>,
    started: u64,
}

calls! {
    /// The calls of [`crate::Device`] of a card, under the same names. The outcome of `Subscribe` is the number of a
    /// channel.
    enum ChannelCall by channels(program, host, card: u32) device = host.channels()?.card(card)?.open();

    Subscribe { target: u32 } => numbered(&program.0.channels, device.subscribe(target).await?);
    Close { channel: u64 } => device.close(program.channel(channel)?).await?;
    Send { channel: u64, contents: Vec<u8>, timeout: Option<Duration> } => {
        device.send(program.channel(channel)?, &contents, timeout).await?;
    };
    Receive { channel: u64, bytes: u32, timeout: Option<Duration> } => {
        device.receive(program.channel(channel)?, bytes, timeout).await?.to_vec()
    };
    SendInd { channel: u64, part: Part, timeout: Option<Duration> } => {
        device.send_ind(program.channel(channel)?, &program.part(part)?, timeout).await?;
    };
    ReceiveInd { channel: u64, part: Part, timeout: Option<Duration> } => {
        device.receive_ind(program.channel(channel)?, &program.part(part)?, timeout).await?;
    };
    StartSend { channel: u64, contents: Vec<u8>, timeout: Option<Duration> } => {
        program.started(device.start(program.channel(channel)?, Job::Send(&contents), timeout).await?)
    };
    StartReceive { wanted: Wanted, timeout: Option<Duration> } => {
        match program.wanted(wanted)? {
            Found::Direct(channel, bytes) => {
                program.started(device.start(channel, Job::Receive(bytes), timeout).await?)
            }
            Found::Indirect(channel, buffer) => {
                program.started(device.start(channel, Job::ReceiveInd(&buffer), timeout).await?)
            }
        }
    };
    StartSendInd { channel: u64, part: Part, timeout: Option<Duration> } => {
        let (channel, buffer) = (program.channel(channel)?, program.part(part)?);
        program.started(device.start(channel, Job::SendInd(&buffer), timeout).await?)
    };
    Wait { pending: u64 } => {
        // A pending call no longer needs the device.
        drop(device);
        let taken = program.0.pending.borrow_mut().waiting.remove(&pending);
        let waited_for = || Error::Program("wait: another call has waited for this message".to_owned());
        taken.ok_or_else(waited_for)?.wait().await?
    };
    Select { alternatives: Vec<Wanted>, timeout: Option<Duration> } => {
        let wanted = alternatives.iter().map(|wanted| program.wanted(*wanted));
        let wanted = wanted.collect::<Result<Vec<_>, Error>>()?;
        let alternatives: Vec<_> = wanted.iter().map(Found::alternative).collect();
        let (index, bytes) = device.select(&alternatives, timeout).await?;
        Outcome::Selected(index as u32, bytes.to_vec())
    };
}

/// A message that `select` may receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A direct message.
    Direct {
        /// The channel.
        channel: u64,
        /// The length of the message in bytes.
        bytes: u32,
    },
    /// An indirect message.
    Indirect {
        /// The channel.
        channel: u64,
        /// The destination of the message.
        part: Part,
    },
}

impl Program {
    /// Stores a pending call, and returns its number as an outcome.
    fn started(&self, pending: PendingMessage) -> Outcome {
        let mut all = self.0.pending.borrow_mut();
        all.started += 1;
        let number = all.started;
        all.waiting.insert(number, pending);
        Outcome::Word(number)
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

/// The received alternative: a direct message's channel, or an indirect message's channel and buffer.
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
