//! XDP programs in the driver of a host's card.

use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use super::outcome::python;
use nicety::commands::{self, Setup, XdpCall, XdpSetup};
use pyo3::prelude::*;
use std::sync::Arc;

/// The calls of a host for XDP programs. The names are those of the functions for programs. Numbers identify loaded
/// programs, and entries of maps are JSON.
#[pyclass(frozen)]
pub struct XdpCalls(Arc<Handle>);

impl XdpCalls {
    fn call(&self, py: Python<'_>, name: &'static str, call: XdpCall, then: Option<Py<PyAny>>) -> Call {
        self.0.call(py, name, commands::Call::Xdp(call), then)
    }
}

#[pymethods]
impl XdpCalls {
    #[new]
    fn new(calls: &Calls) -> XdpCalls {
        XdpCalls(calls.0.clone())
    }

    fn load(
        &self,
        content: Vec<u8>,
        name: Option<String>,
        maps: Vec<(String, String)>,
        generic: bool,
    ) -> PyResult<u64> {
        self.0.number(Setup::Xdp(XdpSetup::Load { object: content, name, maps, generic }))
    }

    /// `at` is the key and the queue, and `memory` the number of buffers and whether the card writes to them.
    fn bind(&self, number: u64, of: String, at: (u32, u64), memory: (u64, bool)) -> PyResult<()> {
        let ((key, queue), (buffers, zero_copy)) = (at, memory);
        self.0.set_up(Setup::Xdp(XdpSetup::Bind { number, map: of, key, queue, buffers, zero_copy }))?;
        Ok(())
    }

    fn frames(&self, py: Python<'_>, number: u64, of: String, key: u32, most: u64, then: Py<PyAny>) -> Call {
        self.call(py, "xdp.maps.frames", XdpCall::Frames { number, map: of, key, most }, Some(then))
    }

    fn names<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.0, self.0.set_up(Setup::Xdp(XdpSetup::Names { number }))?, None)
    }

    fn attach(&self, py: Python<'_>, number: u64) -> Call {
        self.call(py, "xdp.attach", XdpCall::Attach { number }, None)
    }

    fn detach(&self, py: Python<'_>, then: Py<PyAny>) -> Call {
        self.call(py, "xdp.detach", XdpCall::Detach, Some(then))
    }

    fn get(&self, py: Python<'_>, number: u64, of: String, key: String, then: Py<PyAny>) -> Call {
        self.call(py, "xdp.maps.get", XdpCall::Get { number, map: of, key }, Some(then))
    }

    fn set(&self, py: Python<'_>, number: u64, of: String, entry: String) -> Call {
        self.call(py, "xdp.maps.set", XdpCall::Set { number, map: of, entry }, None)
    }

    fn delete(&self, py: Python<'_>, number: u64, of: String, key: String, then: Py<PyAny>) -> Call {
        self.call(py, "xdp.maps.delete", XdpCall::Delete { number, map: of, key }, Some(then))
    }

    fn records(&self, py: Python<'_>, number: u64, of: String, then: Py<PyAny>) -> Call {
        self.call(py, "xdp.maps.records", XdpCall::Records { number, map: of }, Some(then))
    }

    fn items(&self, py: Python<'_>, number: u64, of: String, then: Py<PyAny>) -> Call {
        self.call(py, "xdp.maps.items", XdpCall::Items { number, map: of }, Some(then))
    }
}
