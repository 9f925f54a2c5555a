//! Commands for processes that use virtual network interfaces.

use super::Part;
use super::calls::{calls, setups};
use nicety_nic_qnix::{Operation, TransferMethod};

setups! {
    /// Commands of a process that take no virtual time.
    enum InterfaceSetup by set_up_interfaces(program) vni = program.0.host.vni()?;

    /// Allocates memory of a process.
    Alloc { process: u32, bytes: u64 } => program.add_buffer(vni.process(process).alloc(bytes)?);
}

calls! {
    /// The calls of [`crate::VniProcess`], under the same names.
    enum InterfaceCall by interfaces(program, host, process: u32) owner = host.vni()?.process(process);

    Open => owner.open().await?;
    Close { vni: u32 } => owner.close(vni).await?;
    Pool { vni: u32, bytes: u64 } => program.add_buffer(owner.register_pool(vni, bytes).await?);
    Send {
        vni: u32,
        part: Part,
        /// The destination: a rank, and an interface of its card.
        to: (u32, u32),
        tag: u64,
        how: TransferMethod,
    } => owner.send(vni, &program.part(part)?, to, tag, how).await?.number();
    Receive { vni: u32, part: Part, from: Option<(u32, u32)>, tag: Option<u64>, how: TransferMethod } => {
        owner.receive(vni, &program.part(part)?, from, tag, how).await?.number()
    };
    Test { vni: u32, operation: u64 } => owner.test(vni, Operation::numbered(operation)).await?;
    Wait { vni: u32, operation: u64 } => owner.wait(vni, Operation::numbered(operation)).await?;
}
