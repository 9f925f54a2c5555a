//! RDMA of a host's processes, and the memory of its graphics processor.

use super::arguments::{u32_of, u64_of};
use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use super::memory::HostMemory;
use crate::errors::InputError;
use nicety::apenet::Notify;
use nicety::commands::{self, RdmaCall, RdmaSetup, Setup};
use pyo3::prelude::*;
use std::sync::Arc;

/// The calls of a host for RDMA and its graphics processor. The names are those of the functions for programs. Each
/// RDMA call names a process of the host.
#[pyclass(frozen)]
pub struct RdmaCalls(Arc<Handle>);

impl RdmaCalls {
    fn call(
        &self,
        py: Python<'_>,
        name: &'static str,
        process: u32,
        call: RdmaCall,
        then: Option<Py<PyAny>>,
    ) -> Call {
        self.0.call(py, name, commands::Call::Rdma { process, call }, then)
    }
}

#[pymethods]
impl RdmaCalls {
    #[new]
    fn new(calls: &Calls) -> RdmaCalls {
        RdmaCalls(calls.0.clone())
    }

    fn alloc_gpu(&self, length_bytes: &Bound<'_, PyAny>) -> PyResult<HostMemory> {
        let bytes = u64_of(length_bytes, "length_bytes")?;
        self.0.allocate(Setup::Rdma(RdmaSetup::AllocGpu { bytes }))
    }

    fn set_notify(&self, notify: &str) -> PyResult<()> {
        let notify = match notify {
            "poll" => Notify::Poll,
            "interrupt" => Notify::Interrupt,
            _ => return Err(InputError::new_err(format!("notify is 'poll' or 'interrupt', not '{notify}'"))),
        };
        self.0.set_up(Setup::Rdma(RdmaSetup::SetNotify { notify })).map(drop)
    }

    fn set_physical(&self, physical: bool) -> PyResult<()> {
        self.0.set_up(Setup::Rdma(RdmaSetup::SetPhysical { physical })).map(drop)
    }

    fn set_flushed(&self, flushed: bool) -> PyResult<()> {
        self.0.set_up(Setup::Rdma(RdmaSetup::SetFlushed { flushed })).map(drop)
    }

    fn streaming(&self, process: u32) -> PyResult<u64> {
        self.0.number(Setup::Rdma(RdmaSetup::Streaming { process }))
    }

    fn register(&self, process: u32, buffer: &Bound<'_, PyAny>, region: Py<PyAny>) -> PyResult<Call> {
        let call = RdmaCall::Register { part: self.0.part(buffer)? };
        Ok(self.call(buffer.py(), "rdma.register", process, call, Some(region)))
    }

    fn deregister(&self, py: Python<'_>, process: u32, region: u64) -> Call {
        self.call(py, "rdma.deregister", process, RdmaCall::Deregister { region }, None)
    }

    fn put(
        &self,
        process: u32,
        buffer: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        address: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        operation: Py<PyAny>,
    ) -> PyResult<Call> {
        let (part, to) = (self.0.part(buffer)?, u32_of(to, "to")?);
        let (address, data) = (u64_of(address, "address")?, u64_of(data, "data")?);
        let call = RdmaCall::Put { part, to, address, data };
        Ok(self.call(buffer.py(), "rdma.put", process, call, Some(operation)))
    }

    fn send(
        &self,
        process: u32,
        buffer: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        operation: Py<PyAny>,
    ) -> PyResult<Call> {
        let call =
            RdmaCall::Send { part: self.0.part(buffer)?, to: u32_of(to, "to")?, data: u64_of(data, "data")? };
        Ok(self.call(buffer.py(), "rdma.send", process, call, Some(operation)))
    }

    fn get(
        &self,
        process: u32,
        buffer: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        address: &Bound<'_, PyAny>,
        operation: Py<PyAny>,
    ) -> PyResult<Call> {
        let (part, from) = (self.0.part(buffer)?, u32_of(source, "source")?);
        let call = RdmaCall::Get { part, from, address: u64_of(address, "address")? };
        Ok(self.call(buffer.py(), "rdma.get", process, call, Some(operation)))
    }

    fn post_streaming(&self, process: u32, buffer: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = RdmaCall::PostStreaming { part: self.0.part(buffer)? };
        Ok(self.call(buffer.py(), "rdma.post_streaming", process, call, None))
    }

    fn event(&self, py: Python<'_>, process: u32, event: Py<PyAny>) -> Call {
        self.call(py, "rdma.event", process, RdmaCall::Event, Some(event))
    }

    fn poll(&self, py: Python<'_>, process: u32, event: Py<PyAny>) -> Call {
        self.call(py, "rdma.poll", process, RdmaCall::Poll, Some(event))
    }

    fn wait(&self, py: Python<'_>, process: u32, operation: u64, event: Py<PyAny>) -> Call {
        self.call(py, "rdma.wait", process, RdmaCall::Wait { operation }, Some(event))
    }

    fn received(&self, py: Python<'_>, process: u32, event: Py<PyAny>) -> Call {
        self.call(py, "rdma.received", process, RdmaCall::Received, Some(event))
    }
}
