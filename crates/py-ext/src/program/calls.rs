//! The calls of a host that work with any card.

use super::arguments::u64_of;
use super::call::{Call, Request};
use super::handle::Handle;
use super::memory::HostMemory;
use super::running;
use crate::errors::{InputError, guarded};
use nicety::commands::{self, Api, Outcome, Part, Setup};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

impl Handle {
    /// Makes a call of this host. `name` names the call in errors, and `then` converts the outcome to the result.
    pub fn call(
        self: &Arc<Self>,
        py: Python<'_>,
        name: &'static str,
        call: commands::Call,
        then: Option<Py<PyAny>>,
    ) -> Call {
        Call::new(py, self.clone(), name, Request::Call(call), then)
    }

    /// Executes a command that takes no virtual time.
    pub fn set_up(self: &Arc<Self>, setup: Setup) -> PyResult<Outcome> {
        let running = running::current(self).ok_or_else(|| self.outside())?;
        guarded(|| running.program.set_up(setup))
    }

    /// Does the same as [`Handle::set_up`], for a command with a number as its outcome.
    pub fn number(self: &Arc<Self>, setup: Setup) -> PyResult<u64> {
        match self.set_up(setup)? {
            Outcome::Word(word) => Ok(word),
            other => unreachable!("a number, not {other:?}"),
        }
    }

    /// Does the same as [`Handle::set_up`], for a command with memory as its outcome.
    pub fn allocate(self: &Arc<Self>, setup: Setup) -> PyResult<HostMemory> {
        match self.set_up(setup)? {
            Outcome::Buffer { number, address, bytes } => self.memory(number, address, bytes),
            other => unreachable!("memory, not {other:?}"),
        }
    }

    /// Returns the Python object for allocated memory.
    pub fn memory(self: &Arc<Self>, number: u32, address: u64, length: u64) -> PyResult<HostMemory> {
        let running = running::current(self).ok_or_else(|| self.outside())?;
        let bytes = guarded(|| running.program.memory(number))?;
        let whole = Part { buffer: number, offset: 0, bytes: length };
        Ok(HostMemory::new(self.clone(), whole, address, bytes))
    }

    /// Returns the part of this host's memory that a Python buffer refers to.
    pub fn part(self: &Arc<Self>, buffer: &Bound<'_, PyAny>) -> PyResult<Part> {
        let Ok(memory) = buffer.cast::<HostMemory>() else {
            let what = buffer.get_type().name()?;
            return Err(InputError::new_err(format!("expected a buffer made by host.alloc, not {what}")));
        };
        match memory.get().part_of(self) {
            Some(part) => Ok(part),
            None => Err(InputError::new_err(format!(
                "{} is not memory of rank {}: hosts share none",
                buffer.repr()?,
                self.rank
            ))),
        }
    }
}

/// The functions of a host with any card. Python constructs this object by `Calls(rank, ranks, beginning)`. `beginning`
/// is the error text for a use before the run.
#[pyclass(frozen)]
pub struct Calls(pub Arc<Handle>);

#[pymethods]
impl Calls {
    #[new]
    fn new(rank: u32, ranks: u32, beginning: String) -> Calls {
        Calls(Arc::new(Handle::new(rank, ranks, beginning)))
    }

    /// The host's rank.
    #[getter]
    fn rank(&self) -> u32 {
        self.0.rank
    }

    /// The number of hosts.
    #[getter]
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    /// The virtual time at which the program was last resumed, in picoseconds.
    #[getter]
    fn now_ps(&self) -> u64 {
        self.0.now_ps()
    }

    /// The instruction set of programs that run on the card.
    fn isa(&self) -> PyResult<String> {
        let running = running::current(&self.0).ok_or_else(|| self.0.outside())?;
        running.run.isa(self.0.rank)
    }

    /// The name of the interface of handlers that run on the card.
    fn interface(&self) -> PyResult<&'static str> {
        let running = running::current(&self.0).ok_or_else(|| self.0.outside())?;
        Ok(running.run.interface(self.0.rank))
    }

    /// Checks that the card has the interface with this name.
    fn has(&self, name: &str) -> PyResult<()> {
        let api = match name {
            "portals" => Api::Portals,
            "channels" => Api::Channels,
            "vni" => Api::Vni,
            "rdma" => Api::Rdma,
            "gpu" => Api::Gpu,
            "socket" => Api::Socket,
            "frames" => Api::Frames,
            "xdp" => Api::Xdp,
            _ => return Err(InputError::new_err(format!("a host has no {name}"))),
        };
        self.0.set_up(Setup::Has(api)).map(drop)
    }

    /// Allocates memory of the host. All bytes are zero.
    fn alloc(&self, length_bytes: &Bound<'_, PyAny>) -> PyResult<HostMemory> {
        self.0.allocate(Setup::Alloc { bytes: u64_of(length_bytes, "length_bytes")? })
    }

    /// Runs coroutines as new threads of the program, and waits until all of them have ended.
    fn gather(&self, coroutines: &Bound<'_, PyList>) -> PyResult<Call> {
        if running::current(&self.0).is_none() {
            return Err(self.0.outside());
        }
        let mut taken: Vec<Py<PyAny>> = Vec::new();
        for coroutine in coroutines {
            if !self.0.take(&coroutine) {
                taken.iter().for_each(|coroutine| self.0.give_back(coroutine));
                return Err(InputError::new_err(format!(
                    "gather: {} was given before, or awaited; call its function again",
                    coroutine.repr()?
                )));
            }
            taken.push(coroutine.unbind());
        }
        Ok(Call::new(coroutines.py(), self.0.clone(), "host.gather", Request::Gather(taken), None))
    }
}
