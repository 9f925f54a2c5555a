//! What programs ask of processes with virtual network interfaces.

use super::{Command, Program, none};
use crate::{Buffer, Error};
use nicety_nic::qnix::{Completed, How, Operation};
use serde_json::{Value, json};

impl Program {
    /// Memory of a process, or a buffer that the host has.
    pub(super) fn memory_of(&self, command: &Command) -> Result<(Value, Buffer), Error> {
        let mut buffers = self.shared.buffers.borrow_mut();
        let (number, buffer) = match command {
            Command::Alloc { bytes } => {
                let buffer = self.host.alloc(*bytes)?;
                buffers.push(buffer.clone());
                (buffers.len() - 1, buffer)
            }
            Command::VniAlloc { process, bytes } => {
                let buffer = self.host.vni_process(*process)?.alloc(*bytes)?;
                buffers.push(buffer.clone());
                (buffers.len() - 1, buffer)
            }
            Command::BufferMemory { buffer } => {
                let unknown = || Error::Program(format!("there is no buffer {buffer} on this host"));
                (*buffer, buffers.get(*buffer).ok_or_else(unknown)?.clone())
            }
            _ => unreachable!("the caller has the others"),
        };
        Ok((json!({"buffer": number, "address": buffer.address(), "bytes": buffer.len()}), buffer))
    }

    pub(super) async fn about_interfaces(&self, command: Command) -> Result<Value, Error> {
        let host = &self.host;
        match command {
            Command::VniOpen { process } => Ok(json!(host.vni_process(process)?.open().await?)),
            Command::VniClose { process, vni } => none(host.vni_process(process)?.close(vni).await),
            Command::VniPool { process, vni, bytes } => {
                let pool = host.vni_process(process)?.register_pool(vni, bytes).await?;
                let mut buffers = self.shared.buffers.borrow_mut();
                buffers.push(pool);
                Ok(json!(buffers.len() - 1))
            }
            Command::VniSend { process, vni, part, peer, tag, how } => {
                let buffer = self.part(part)?;
                let process = host.vni_process(process)?;
                Ok(json!(process.send(vni, &buffer, peer, tag, how_of(&how)?).await?.number()))
            }
            Command::VniReceive { process, vni, part, peer, tag, how } => {
                let buffer = self.part(part)?;
                let process = host.vni_process(process)?;
                Ok(json!(process.receive(vni, &buffer, peer, tag, how_of(&how)?).await?.number()))
            }
            Command::VniTest { process, vni, operation } => {
                let done = host.vni_process(process)?.test(vni, Operation::numbered(operation)).await?;
                Ok(done.map_or(Value::Null, |completed| completed_json(&completed)))
            }
            Command::VniWait { process, vni, operation } => {
                let operation = Operation::numbered(operation);
                Ok(completed_json(&host.vni_process(process)?.wait(vni, operation).await?))
            }
            _ => unreachable!("the caller has the others"),
        }
    }
}

fn how_of(name: &str) -> Result<How, Error> {
    How::ALL.into_iter().find(|how| how.name() == name).ok_or_else(|| {
        let names = How::ALL.map(How::name).join(", ");
        Error::Input(format!("'{name}' is no way to move a message; there are {names}"))
    })
}

fn completed_json(completed: &Completed) -> Value {
    let Completed { peer, tag, bytes, truncated } = completed;
    json!({"rank": peer.node.0, "vni": peer.vni, "tag": tag, "length_bytes": bytes, "truncated": truncated})
}
