//! Handlers for frames on a host's card.

use super::calls::Calls;
use super::handle::Handle;
use super::outcome::python;
use nicety::commands::{FrameSetup, Setup};
use pyo3::prelude::*;
use std::sync::Arc;

/// The calls of a host for frame handlers. The names are those of the functions for programs. Numbers identify objects.
#[pyclass(frozen)]
pub struct FrameCalls(Arc<Handle>);

#[pymethods]
impl FrameCalls {
    #[new]
    fn new(calls: &Calls) -> FrameCalls {
        FrameCalls(calls.0.clone())
    }

    fn load(&self, elf: Vec<u8>, name: Option<String>) -> PyResult<u64> {
        self.0.number(Setup::Frames(FrameSetup::Load { elf, name }))
    }

    fn install(&self, rule: String, handlers: u64, state: &[u8]) -> PyResult<u64> {
        self.0.number(Setup::Frames(FrameSetup::Install { rule, handlers, state: state.to_vec() }))
    }

    fn state<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.0, self.0.set_up(Setup::Frames(FrameSetup::State { number }))?, None)
    }

    fn data<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.0, self.0.set_up(Setup::Frames(FrameSetup::Data { number }))?, None)
    }

    fn for_xdp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.0, self.0.set_up(Setup::Frames(FrameSetup::ForXdp))?, None)
    }
}
