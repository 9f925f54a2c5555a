//! Commands for messages between hosts, and for work on a host's own CPUs.

use super::{Carried, Outcome, Part, Program, nothing};
use crate::{Error, Host};
use nicety_host::Work;
use nicety_nic_core::Tags;
use nicety_types::Duration;
use std::ops::Range;

/// [`Host`]'s calls on any card, under the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the calls and arguments of `Host`, under the same names")]
pub enum MessageCall {
    Send {
        part: Part,
        to: u32,
        tag: u64,
    },
    Recv {
        part: Part,
        source: Option<u32>,
        tags: Tags,
    },
    PostRecv {
        part: Part,
        source: Option<u32>,
        tags: Tags,
    },
    /// Waits for a receive, by the number in the outcome of `PostRecv`.
    Received {
        posted: u64,
    },
    Compute {
        duration: Duration,
    },
    Work {
        duration: Duration,
        cycles: u64,
        reads: Vec<Extent>,
        writes: Vec<Extent>,
    },
    Copy {
        part: Part,
        into: Part,
    },
    Barrier,
}

/// Memory that a program touches: a part of a buffer, or blocks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The part.
    pub part: Part,
    /// Offsets in the part and lengths; all of the part if none.
    pub blocks: Option<Vec<(u64, u64)>>,
}

impl Program {
    pub(super) fn message<'c>(&'c self, host: &'c Host, call: MessageCall) -> Carried<'c> {
        match call {
            MessageCall::Send { part, to, tag } => {
                Box::pin(async move { host.send(&self.part(part)?, to, tag).await.map(nothing) })
            }
            MessageCall::Recv { part, source, tags } => Box::pin(async move {
                host.recv_matching(&self.part(part)?, source, tags).await.map(Outcome::Received)
            }),
            MessageCall::PostRecv { part, source, tags } => Box::pin(async move {
                let pending = host.post_recv_matching(&self.part(part)?, source, tags).await?;
                let mut receives = self.0.receives.borrow_mut();
                receives.posted += 1;
                let number = receives.posted;
                receives.waiting.insert(number, pending);
                Ok(Outcome::Word(number))
            }),
            MessageCall::Received { posted } => Box::pin(async move {
                let unknown = || Error::Program(format!("no receive {posted} of this host waits"));
                let pending = self.0.receives.borrow_mut().waiting.remove(&posted);
                host.received(pending.ok_or_else(unknown)?).await.map(Outcome::Received)
            }),
            MessageCall::Compute { duration } => Box::pin(async move {
                host.compute(host.duration(duration, 0)?).await;
                Ok(Outcome::Nothing)
            }),
            MessageCall::Work { duration, cycles, reads, writes } => Box::pin(async move {
                let compute = host.duration(duration, cycles)?;
                let work = Work { compute, reads: self.addresses(reads)?, writes: self.addresses(writes)? };
                host.work(&work).await.map(nothing)
            }),
            MessageCall::Copy { part, into } => {
                Box::pin(async move { host.copy(&self.part(part)?, &self.part(into)?).await.map(nothing) })
            }
            MessageCall::Barrier => Box::pin(async move {
                host.barrier().await;
                Ok(Outcome::Nothing)
            }),
        }
    }

    fn addresses(&self, extents: Vec<Extent>) -> Result<Vec<Range<u64>>, Error> {
        let mut found = Vec::new();
        for Extent { part, blocks } in extents {
            let buffer = self.part(part)?;
            match blocks {
                None => found.push(buffer.addresses()),
                Some(blocks) => {
                    for (offset, bytes) in blocks {
                        found.push(buffer.slice(offset, bytes)?.addresses());
                    }
                }
            }
        }
        Ok(found)
    }
}
