//! Commands of processes with RDMA on their card, and of hosts with a graphics processor.

use super::{Carried, Outcome, Part, Program, nothing};
use crate::{Error, Host, Rdma};
use nicety_nic_apenet::{Notify, Operation, Region};

/// Commands that take no virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmaSetup {
    /// Allocates memory of the graphics processor.
    AllocGpu {
        /// Bytes.
        bytes: u64,
    },
    /// [`Rdma::set_notify`].
    SetNotify(Notify),
    /// [`Rdma::set_physical`].
    SetPhysical(bool),
    /// [`Rdma::set_flushed`].
    SetFlushed(bool),
    /// [`Rdma::streaming`].
    Streaming {
        /// The process.
        process: u32,
    },
}

/// The calls of [`Rdma`], under the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the calls and arguments of `Rdma`, under the same names")]
pub enum RdmaCall {
    Register { part: Part },
    Deregister { region: u64 },
    Put { part: Part, to: u32, address: u64, data: u64 },
    Send { part: Part, to: u32, data: u64 },
    Get { part: Part, from: u32, address: u64 },
    PostStreaming { part: Part },
    Event,
    Poll,
    Wait { operation: u64 },
    Received,
}

impl Program {
    pub(super) fn set_up_rdma(&self, setup: RdmaSetup) -> Result<Outcome, Error> {
        let host = &self.0.host;
        match setup {
            RdmaSetup::AllocGpu { bytes } => return Ok(self.add_buffer(host.gpu()?.alloc(bytes)?)),
            RdmaSetup::SetNotify(notify) => host.rdma()?.set_notify(notify),
            RdmaSetup::SetPhysical(physical) => host.rdma()?.set_physical(physical),
            RdmaSetup::SetFlushed(flushed) => host.rdma()?.set_flushed(flushed),
            RdmaSetup::Streaming { process } => {
                return Ok(Outcome::Word(host.rdma()?.process(process)?.streaming()));
            }
        }
        Ok(Outcome::Nothing)
    }

    pub(super) fn rdma<'c>(&'c self, host: &'c Host, process: u32, call: RdmaCall) -> Carried<'c> {
        let rdma = move || -> Result<Rdma, Error> { host.rdma()?.process(process) };
        let posted = |operation: Operation| Outcome::Word(operation.0);
        match call {
            RdmaCall::Register { part } => {
                Box::pin(async move { rdma()?.register(&self.part(part)?).await.map(Outcome::Region) })
            }
            RdmaCall::Deregister { region } => Box::pin(async move {
                let region = Region { number: region, process, address: 0, bytes: 0 };
                rdma()?.deregister(region).await.map(nothing)
            }),
            RdmaCall::Put { part, to, address, data } => {
                Box::pin(async move { rdma()?.put(&self.part(part)?, to, address, data).await.map(posted) })
            }
            RdmaCall::Send { part, to, data } => {
                Box::pin(async move { rdma()?.send(&self.part(part)?, to, data).await.map(posted) })
            }
            RdmaCall::Get { part, from, address } => {
                Box::pin(async move { rdma()?.get(&self.part(part)?, from, address).await.map(posted) })
            }
            RdmaCall::PostStreaming { part } => {
                Box::pin(async move { rdma()?.post_streaming(&self.part(part)?).await.map(nothing) })
            }
            RdmaCall::Event => {
                Box::pin(async move { rdma()?.event().await.map(|event| Outcome::RdmaEvent(Some(event))) })
            }
            RdmaCall::Poll => Box::pin(async move { rdma()?.poll().await.map(Outcome::RdmaEvent) }),
            RdmaCall::Wait { operation } => Box::pin(async move {
                let event = rdma()?.wait(Operation(operation)).await?;
                Ok(Outcome::RdmaEvent(Some(event)))
            }),
            RdmaCall::Received => {
                Box::pin(async move { rdma()?.received().await.map(|event| Outcome::RdmaEvent(Some(event))) })
            }
        }
    }
}
