//! Channels between a host and the processes on its card.

use super::arguments::{timeout_of, u32_of};
use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use super::memory::HostMemory;
use nicety::commands::{self, ChannelCall, Wanted};
use pyo3::prelude::*;
use std::sync::Arc;

/// The calls of a host on channels. The names are those of the functions for programs. The number that `subscribe`
/// returns identifies a channel.
#[pyclass(frozen)]
pub struct ChannelCalls {
    handle: Arc<Handle>,
    /// The number of the card in the host.
    card: u32,
}

impl ChannelCalls {
    fn call(&self, py: Python<'_>, name: &'static str, call: ChannelCall, then: Option<Py<PyAny>>) -> Call {
        self.handle.call(py, name, commands::Call::Channels { card: self.card, call }, then)
    }

    /// Reads the message that a receive waits for. The argument is the length of a direct message, or the buffer of an indirect
    /// message.
    fn wanted(&self, channel: u64, message: &Bound<'_, PyAny>) -> PyResult<Wanted> {
        Ok(if message.is_instance_of::<HostMemory>() {
            Wanted::Indirect { channel, part: self.handle.part(message)? }
        } else {
            Wanted::Direct { channel, bytes: u32_of(message, "length_bytes")? }
        })
    }
}

#[pymethods]
impl ChannelCalls {
    #[new]
    fn new(calls: &Calls, card: u32) -> ChannelCalls {
        ChannelCalls { handle: calls.0.clone(), card }
    }

    /// Checks that a buffer belongs to this host.
    fn check(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        self.handle.part(buffer).map(drop)
    }

    fn subscribe(&self, target: &Bound<'_, PyAny>, channel: Py<PyAny>) -> PyResult<Call> {
        let call = ChannelCall::Subscribe { target: u32_of(target, "target")? };
        Ok(self.call(target.py(), "device.subscribe", call, Some(channel)))
    }

    fn close(&self, py: Python<'_>, channel: u64) -> Call {
        self.call(py, "channel.close", ChannelCall::Close { channel }, None)
    }

    fn send(&self, channel: u64, contents: &[u8], timeout_ns: &Bound<'_, PyAny>) -> PyResult<Call> {
        let timeout = timeout_of(timeout_ns, "send(timeout_ns=", ")")?;
        let call = ChannelCall::Send { channel, contents: contents.to_vec(), timeout };
        Ok(self.call(timeout_ns.py(), "channel.send", call, None))
    }

    fn receive(
        &self,
        channel: u64,
        length_bytes: &Bound<'_, PyAny>,
        timeout_ns: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let bytes = u32_of(length_bytes, "length_bytes")?;
        let timeout = timeout_of(timeout_ns, "receive(timeout_ns=", ")")?;
        Ok(self.call(
            timeout_ns.py(),
            "channel.receive",
            ChannelCall::Receive { channel, bytes, timeout },
            None,
        ))
    }

    fn send_ind(
        &self,
        channel: u64,
        buffer: &Bound<'_, PyAny>,
        timeout_ns: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let timeout = timeout_of(timeout_ns, "send_ind(timeout_ns=", ")")?;
        let call = ChannelCall::SendInd { channel, part: self.handle.part(buffer)?, timeout };
        Ok(self.call(buffer.py(), "channel.send_ind", call, None))
    }

    fn receive_ind(
        &self,
        channel: u64,
        buffer: &Bound<'_, PyAny>,
        timeout_ns: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let timeout = timeout_of(timeout_ns, "receive_ind(timeout_ns=", ")")?;
        let call = ChannelCall::ReceiveInd { channel, part: self.handle.part(buffer)?, timeout };
        Ok(self.call(buffer.py(), "channel.receive_ind", call, None))
    }

    /// Starts a send. `pending` converts the number of the pending call to the result.
    fn start_send(
        &self,
        channel: u64,
        contents: &[u8],
        timeout_ns: &Bound<'_, PyAny>,
        pending: Py<PyAny>,
    ) -> PyResult<Call> {
        let timeout = timeout_of(timeout_ns, "start_send(timeout_ns=", ")")?;
        let call = ChannelCall::StartSend { channel, contents: contents.to_vec(), timeout };
        Ok(self.call(timeout_ns.py(), "channel.start_send", call, Some(pending)))
    }

    /// Starts a receive. The message is direct if the argument is a length, and indirect if it is a buffer.
    fn start_receive(
        &self,
        channel: u64,
        message: &Bound<'_, PyAny>,
        timeout_ns: &Bound<'_, PyAny>,
        pending: Py<PyAny>,
    ) -> PyResult<Call> {
        let timeout = timeout_of(timeout_ns, "start_receive(timeout_ns=", ")")?;
        let call = ChannelCall::StartReceive { wanted: self.wanted(channel, message)?, timeout };
        Ok(self.call(message.py(), "channel.start_receive", call, Some(pending)))
    }

    fn start_send_ind(
        &self,
        channel: u64,
        buffer: &Bound<'_, PyAny>,
        timeout_ns: &Bound<'_, PyAny>,
        pending: Py<PyAny>,
    ) -> PyResult<Call> {
        let timeout = timeout_of(timeout_ns, "start_send_ind(timeout_ns=", ")")?;
        let call = ChannelCall::StartSendInd { channel, part: self.handle.part(buffer)?, timeout };
        Ok(self.call(buffer.py(), "channel.start_send_ind", call, Some(pending)))
    }

    /// Waits for the end of a call that has started.
    fn wait(&self, py: Python<'_>, pending: u64) -> Call {
        self.call(py, "pending message", ChannelCall::Wait { pending }, None)
    }

    /// Waits for a message on one of several channels. Each alternative has a channel, and the length of a direct message or the
    /// buffer of an indirect message.
    fn select(
        &self,
        alternatives: Vec<(u64, Bound<'_, PyAny>)>,
        timeout_ns: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let wanted = |(channel, message): (u64, Bound<'_, PyAny>)| self.wanted(channel, &message);
        let alternatives = alternatives.into_iter().map(wanted).collect::<PyResult<_>>()?;
        let timeout = timeout_of(timeout_ns, "select(timeout_ns=", ")")?;
        Ok(self.call(timeout_ns.py(), "device.select", ChannelCall::Select { alternatives, timeout }, None))
    }
}
