//! Commands for handlers on a host's card.

use super::arguments::{u32_of, u64_of};
use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use nicety::commands::{self, HandlerCall, HandlerSetup, Setup};
use nicety::{ApplicationConfig, ApplicationId, HandlerNames, HpuMemoryId};
use pyo3::prelude::*;
use std::sync::Arc;

/// The calls of a host for handlers. The names are those of the functions for programs. Numbers identify objects.
#[pyclass(frozen)]
pub struct HandlerCalls(Arc<Handle>);

impl HandlerCalls {
    fn number(&self, setup: HandlerSetup) -> PyResult<u64> {
        self.0.number(Setup::Handlers(setup))
    }
}

#[pymethods]
impl HandlerCalls {
    #[new]
    fn new(calls: &Calls) -> HandlerCalls {
        HandlerCalls(calls.0.clone())
    }

    fn load(
        &self,
        elf: Vec<u8>,
        header: Option<String>,
        payload: Option<String>,
        completion: Option<String>,
    ) -> PyResult<u64> {
        self.number(HandlerSetup::Load { elf, names: HandlerNames { header, payload, completion } })
    }

    fn application(
        &self,
        name: String,
        weight: &Bound<'_, PyAny>,
        memory: Option<u64>,
        run_cycles: Option<u64>,
        total_cycles: Option<u64>,
    ) -> PyResult<u64> {
        let weight = u32_of(weight, "weight")?;
        let config = ApplicationConfig { name, weight, memory, run_cycles, total_cycles };
        self.number(HandlerSetup::Application { config })
    }

    fn hpu_alloc(&self, application: u32, contents: &[u8]) -> PyResult<u64> {
        let application = ApplicationId(application);
        self.number(HandlerSetup::HpuAlloc { application, contents: contents.to_vec() })
    }

    fn hpu_free(&self, memory: u64) -> PyResult<()> {
        let memory = HpuMemoryId(memory);
        self.0.set_up(Setup::Handlers(HandlerSetup::HpuFree { memory })).map(drop)
    }

    fn hpu_variable(&self, handlers: &Bound<'_, PyAny>, name: String) -> PyResult<(u64, u64)> {
        let handlers = u32_of(handlers, "handlers")?;
        let word = self.number(HandlerSetup::HpuVariable { handlers, name })?;
        Ok((word >> 32, word & u64::from(u32::MAX)))
    }

    fn attach(
        &self,
        handlers: u64,
        state: &[u8],
        shared: Option<u64>,
        memory: Option<Bound<'_, PyAny>>,
        application: u32,
    ) -> PyResult<u64> {
        let memory = memory.map(|memory| self.0.part(&memory)).transpose()?;
        self.number(HandlerSetup::Attach {
            handlers,
            state: state.to_vec(),
            shared: shared.map(HpuMemoryId),
            memory,
            application: ApplicationId(application),
        })
    }

    fn detach(&self, handlers: &Bound<'_, PyAny>) -> PyResult<()> {
        let handlers = u32_of(handlers, "handlers")?;
        self.0.set_up(Setup::Handlers(HandlerSetup::Detach { handlers })).map(drop)
    }

    fn hpu_read(
        &self,
        memory: u64,
        offset: &Bound<'_, PyAny>,
        length_bytes: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let (offset, bytes) = (u64_of(offset, "offset_bytes")?, u32_of(length_bytes, "length_bytes")?);
        let call = HandlerCall::HpuRead { memory: HpuMemoryId(memory), offset, bytes: bytes.into() };
        Ok(self.0.call(length_bytes.py(), "host.portals.hpu_read", commands::Call::Handlers(call), None))
    }

    fn hpu_write(&self, memory: u64, offset: &Bound<'_, PyAny>, contents: &[u8]) -> PyResult<Call> {
        let (memory, py) = (HpuMemoryId(memory), offset.py());
        let offset = u32_of(offset, "offset_bytes")?.into();
        let call = HandlerCall::HpuWrite { memory, offset, contents: contents.to_vec() };
        Ok(self.0.call(py, "host.portals.hpu_write", commands::Call::Handlers(call), None))
    }
}
