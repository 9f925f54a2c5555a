//! Processes of a host that use virtual network interfaces.

use super::arguments::{named, optional, text_of, u64_of};
use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use super::memory::HostMemory;
use nicety::commands::{self, InterfaceCall, InterfaceSetup, Setup, names};
use pyo3::prelude::*;
use std::sync::Arc;

/// The calls of a host for virtual network interfaces. The names are those of the functions for programs. The process
/// and the number `vni` identify an interface. The number that `send` or `receive` returns identifies an operation.
#[pyclass(frozen)]
pub struct InterfaceCalls(Arc<Handle>);

/// A process and the number of an interface.
type Vni = (u32, u32);

impl InterfaceCalls {
    fn call(
        &self,
        py: Python<'_>,
        name: &'static str,
        process: u32,
        call: InterfaceCall,
        then: Option<Py<PyAny>>,
    ) -> Call {
        self.0.call(py, name, commands::Call::Interfaces { process, call }, then)
    }
}

#[pymethods]
impl InterfaceCalls {
    #[new]
    fn new(calls: &Calls) -> InterfaceCalls {
        InterfaceCalls(calls.0.clone())
    }

    fn alloc(&self, process: u32, length_bytes: &Bound<'_, PyAny>) -> PyResult<HostMemory> {
        let bytes = u64_of(length_bytes, "length_bytes")?;
        self.0.allocate(Setup::Interfaces(InterfaceSetup::Alloc { process, bytes }))
    }

    fn open(&self, py: Python<'_>, process: u32, interface: Py<PyAny>) -> Call {
        self.call(py, "process.open", process, InterfaceCall::Open, Some(interface))
    }

    fn close(&self, py: Python<'_>, vni: Vni) -> Call {
        self.call(py, "interface.close", vni.0, InterfaceCall::Close { vni: vni.1 }, None)
    }

    fn register_pool(&self, vni: Vni, length_bytes: &Bound<'_, PyAny>, buffer: Py<PyAny>) -> PyResult<Call> {
        let call = InterfaceCall::Pool { vni: vni.1, bytes: u64_of(length_bytes, "length_bytes")? };
        Ok(self.call(length_bytes.py(), "interface.register_pool", vni.0, call, Some(buffer)))
    }

    fn send(
        &self,
        vni: Vni,
        buffer: &Bound<'_, PyAny>,
        to: (u32, u32),
        tag: &Bound<'_, PyAny>,
        how: &Bound<'_, PyAny>,
        operation: Py<PyAny>,
    ) -> PyResult<Call> {
        let (part, tag) = (self.0.part(buffer)?, u64_of(tag, "tag")?);
        let how = named(names::how(&text_of(how, "how", "auto")?))?;
        let call = InterfaceCall::Send { vni: vni.1, part, to, tag, how };
        Ok(self.call(buffer.py(), "interface.send", vni.0, call, Some(operation)))
    }

    fn receive(
        &self,
        vni: Vni,
        buffer: &Bound<'_, PyAny>,
        source: Option<(u32, u32)>,
        tag: &Bound<'_, PyAny>,
        how: &Bound<'_, PyAny>,
        operation: Py<PyAny>,
    ) -> PyResult<Call> {
        let (part, tag) = (self.0.part(buffer)?, optional(tag, "tag", u64_of)?);
        let how = named(names::how(&text_of(how, "how", "auto")?))?;
        let call = InterfaceCall::Receive { vni: vni.1, part, from: source, tag, how };
        Ok(self.call(buffer.py(), "interface.receive", vni.0, call, Some(operation)))
    }

    fn test(&self, py: Python<'_>, vni: Vni, operation: u64, completed: Py<PyAny>) -> Call {
        self.call(py, "interface.test", vni.0, InterfaceCall::Test { vni: vni.1, operation }, Some(completed))
    }

    fn wait(&self, py: Python<'_>, vni: Vni, operation: u64, completed: Py<PyAny>) -> Call {
        self.call(py, "interface.wait", vni.0, InterfaceCall::Wait { vni: vni.1, operation }, Some(completed))
    }
}
