//! What programs ask of channels to processes.

use super::processes::{from_hexadecimal, hexadecimal};
use super::{Command, Program, Wanted, none};
use crate::{Alternative, Buffer, Channel, Error};
use nicety_types::Duration;
use serde_json::{Value, json};

impl Program {
    pub(super) async fn about_channels(&self, command: Command) -> Result<Value, Error> {
        let device = self.host.open()?;
        let timeout = |ps: Option<u64>| ps.map(Duration::from_ps);
        match command {
            Command::Subscribe { target } => {
                let channel = device.subscribe(target).await?;
                let mut channels = self.shared.channels.borrow_mut();
                channels.push(channel);
                Ok(json!(channels.len() - 1))
            }
            Command::ChannelClose { channel } => none(device.close(self.channel(channel)?).await),
            Command::ChannelSend { channel, contents, timeout_ps } => {
                let (channel, contents) = (self.channel(channel)?, from_hexadecimal(&contents)?);
                none(device.send(channel, &contents, timeout(timeout_ps)).await)
            }
            Command::ChannelReceive { channel, bytes, timeout_ps } => {
                let received = device.receive(self.channel(channel)?, bytes, timeout(timeout_ps)).await?;
                Ok(json!(hexadecimal(&received)))
            }
            Command::ChannelSendInd { channel, part, timeout_ps } => {
                let (channel, buffer) = (self.channel(channel)?, self.part(part)?);
                none(device.send_ind(channel, &buffer, timeout(timeout_ps)).await)
            }
            Command::ChannelReceiveInd { channel, part, timeout_ps } => {
                let (channel, buffer) = (self.channel(channel)?, self.part(part)?);
                none(device.receive_ind(channel, &buffer, timeout(timeout_ps)).await)
            }
            Command::ChannelSelect { alternatives, timeout_ps } => {
                let wanted = alternatives.iter().map(|wanted| self.wanted(wanted));
                let wanted = wanted.collect::<Result<Vec<_>, Error>>()?;
                let alternatives: Vec<_> = wanted
                    .iter()
                    .map(|(channel, bytes, buffer)| match buffer {
                        None => Alternative::Direct(*channel, *bytes),
                        Some(buffer) => Alternative::Indirect(*channel, buffer),
                    })
                    .collect();
                let (index, bytes) = device.select(&alternatives, timeout(timeout_ps)).await?;
                Ok(json!([index, hexadecimal(&bytes)]))
            }
            _ => unreachable!("the caller has the others"),
        }
    }

    fn wanted(&self, wanted: &Wanted) -> Result<(Channel, u32, Option<Buffer>), Error> {
        let buffer = wanted.part.map(|part| self.part(part)).transpose()?;
        Ok((self.channel(wanted.channel)?, wanted.bytes, buffer))
    }

    fn channel(&self, number: usize) -> Result<Channel, Error> {
        let unknown = || Error::Program(format!("this host has subscribed to no channel {number}"));
        self.shared.channels.borrow().get(number).copied().ok_or_else(unknown)
    }
}
