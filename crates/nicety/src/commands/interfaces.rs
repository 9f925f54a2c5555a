//! Commands of processes with virtual network interfaces.

use super::{Carried, Outcome, Part, Program, nothing};
use crate::{Error, Host};
use nicety_nic_qnix::{Operation, TransferMethod};

/// Commands that take no virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceSetup {
    /// Allocates memory of a process.
    Alloc {
        /// The process.
        process: u32,
        /// Bytes.
        bytes: u64,
    },
}

/// The calls of [`crate::VniProcess`], under the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the calls and arguments of `VniProcess`, under the same names")]
pub enum InterfaceCall {
    Open {
        process: u32,
    },
    Close {
        process: u32,
        vni: u32,
    },
    Pool {
        process: u32,
        vni: u32,
        bytes: u64,
    },
    Send {
        process: u32,
        vni: u32,
        part: Part,
        /// A rank and an interface of its card.
        to: (u32, u32),
        tag: u64,
        how: TransferMethod,
    },
    Receive {
        process: u32,
        vni: u32,
        part: Part,
        from: Option<(u32, u32)>,
        tag: Option<u64>,
        how: TransferMethod,
    },
    Test {
        process: u32,
        vni: u32,
        operation: u64,
    },
    Wait {
        process: u32,
        vni: u32,
        operation: u64,
    },
}

impl Program {
    pub(super) fn set_up_interfaces(&self, setup: InterfaceSetup) -> Result<Outcome, Error> {
        let InterfaceSetup::Alloc { process, bytes } = setup;
        Ok(self.add_buffer(self.0.host.vni()?.process(process).alloc(bytes)?))
    }

    pub(super) fn interfaces<'c>(&'c self, host: &'c Host, call: InterfaceCall) -> Carried<'c> {
        match call {
            InterfaceCall::Open { process } => {
                Box::pin(async move { Ok(Outcome::Word(host.vni()?.process(process).open().await?.into())) })
            }
            InterfaceCall::Close { process, vni } => {
                Box::pin(async move { host.vni()?.process(process).close(vni).await.map(nothing) })
            }
            InterfaceCall::Pool { process, vni, bytes } => Box::pin(async move {
                let pool = host.vni()?.process(process).register_pool(vni, bytes).await?;
                Ok(self.add_buffer(pool))
            }),
            InterfaceCall::Send { process, vni, part, to, tag, how } => Box::pin(async move {
                let buffer = self.part(part)?;
                let operation = host.vni()?.process(process).send(vni, &buffer, to, tag, how).await?;
                Ok(Outcome::Word(operation.number()))
            }),
            InterfaceCall::Receive { process, vni, part, from, tag, how } => Box::pin(async move {
                let buffer = self.part(part)?;
                let operation = host.vni()?.process(process).receive(vni, &buffer, from, tag, how).await?;
                Ok(Outcome::Word(operation.number()))
            }),
            InterfaceCall::Test { process, vni, operation } => Box::pin(async move {
                let done = host.vni()?.process(process).test(vni, Operation::numbered(operation)).await?;
                Ok(Outcome::Completed(done))
            }),
            InterfaceCall::Wait { process, vni, operation } => Box::pin(async move {
                let done = host.vni()?.process(process).wait(vni, Operation::numbered(operation)).await?;
                Ok(Outcome::Completed(Some(done)))
            }),
        }
    }
}
