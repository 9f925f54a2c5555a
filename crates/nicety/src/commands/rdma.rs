//! Commands for RDMA of a host's processes, and for memory of a graphics processor.

use super::Part;
use super::calls::{calls, setups};
use nicety_nic_apenet::{Notify, Operation, Region};

setups! {
    /// The set-up functions of [`Rdma`](crate::Rdma), under the same names, and the allocation of graphics memory.
    enum RdmaSetup by set_up_rdma(program) host = &program.0.host;

    /// Allocates memory of the graphics processor.
    AllocGpu { bytes: u64 } => program.add_buffer(host.gpu()?.alloc(bytes)?);
    SetNotify { notify: Notify } => host.rdma()?.set_notify(notify);
    SetPhysical { physical: bool } => host.rdma()?.set_physical(physical);
    SetFlushed { flushed: bool } => host.rdma()?.set_flushed(flushed);
    Streaming { process: u32 } => host.rdma()?.process(process)?.streaming();
}

calls! {
    /// The calls of [`Rdma`](crate::Rdma), under the same names.
    enum RdmaCall by rdma(program, host, process: u32) rdma = host.rdma()?.process(process)?;

    Register { part: Part } => rdma.register(&program.part(part)?).await?;
    Deregister { region: u64 } => {
        rdma.deregister(Region { number: region, process, address: 0, bytes: 0 }).await?;
    };
    Put { part: Part, to: u32, address: u64, data: u64 } => {
        rdma.put(&program.part(part)?, to, address, data).await?.0
    };
    Send { part: Part, to: u32, data: u64 } => rdma.send(&program.part(part)?, to, data).await?.0;
    Get { part: Part, from: u32, address: u64 } => rdma.get(&program.part(part)?, from, address).await?.0;
    PostStreaming { part: Part } => rdma.post_streaming(&program.part(part)?).await?;
    Event => rdma.event().await?;
    Poll => rdma.poll().await?;
    Wait { operation: u64 } => rdma.wait(Operation(operation)).await?;
    Received => rdma.received().await?;
}
