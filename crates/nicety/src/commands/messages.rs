//! Commands for messages between hosts, and for work on a host's own CPUs.

use super::calls::calls;
use super::{Part, Program};
use crate::Error;
use nicety_host::Work;
use nicety_nic_core::Tags;
use nicety_types::Duration;
use std::ops::Range;

calls! {
    /// The calls of [`Host`](crate::Host) that work with any card, under the same names.
    enum MessageCall by message(program, host) host = host;

    Send { part: Part, to: u32, tag: u64 } => host.send(&program.part(part)?, to, tag).await?;
    Recv { part: Part, source: Option<u32>, tags: Tags } => {
        host.recv_matching(&program.part(part)?, source, tags).await?
    };
    PostRecv { part: Part, source: Option<u32>, tags: Tags } => {
        let pending = host.post_recv_matching(&program.part(part)?, source, tags).await?;
        let mut receives = program.0.receives.borrow_mut();
        receives.posted += 1;
        let number = receives.posted;
        receives.waiting.insert(number, pending);
        number
    };
    /// Waits for a posted receive. `posted` is its number, from the outcome of `PostRecv`.
    Received { posted: u64 } => {
        let unknown = || Error::Program(format!("receive {posted} of this host is not pending"));
        let pending = program.0.receives.borrow_mut().waiting.remove(&posted);
        host.received(pending.ok_or_else(unknown)?).await?
    };
    Compute { duration: Duration } => host.compute(host.duration(duration, 0)?).await;
    Work { duration: Duration, cycles: u64, reads: Vec<Extent>, writes: Vec<Extent> } => {
        let compute = host.duration(duration, cycles)?;
        host.work(&Work { compute, reads: program.addresses(reads)?, writes: program.addresses(writes)? }).await?;
    };
    Copy { part: Part, into: Part } => host.copy(&program.part(part)?, &program.part(into)?).await?;
    Barrier => host.barrier().await;
}

/// Memory that a program reads or writes: a part of a buffer, or blocks in that part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The part of the buffer.
    pub part: Part,
    /// The offset of each block in the part, and its length in bytes. `None` means the whole part.
    pub blocks: Option<Vec<(u64, u64)>>,
}

impl Program {
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
