//! A host's side of a run, shared by its program's objects in any thread.

use super::arguments::u64_of;
use super::call::{Call, Request};
use super::memory::HostMemory;
use super::running;
use crate::errors::{InputError, guarded};
use nicety::commands::{self, Api, Outcome, Part, Setup};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A host for its program. Its locks are taken only with Python's lock held, so they never block.
pub struct Handle {
    pub rank: u32,
    pub ranks: u32,
    /// The error of a use before the run.
    beginning: String,
    begun: AtomicBool,
    now_ps: AtomicU64,
    /// Errors for calls that were never awaited.
    forgotten: Mutex<Vec<String>>,
    /// Whether `forgotten` has errors.
    forgets: AtomicBool,
    /// Coroutines of a `gather` that have not ended, by identity.
    gathered: Mutex<HashSet<usize>>,
}

impl Handle {
    /// Makes a call of this host, named `name` in errors. `then` converts its outcome to the result.
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

    /// As [`Handle::set_up`], for a numeric outcome.
    pub fn number(self: &Arc<Self>, setup: Setup) -> PyResult<u64> {
        match self.set_up(setup)? {
            Outcome::Word(word) => Ok(word),
            other => unreachable!("a number, not {other:?}"),
        }
    }

    /// As [`Handle::set_up`], for an outcome with memory.
    pub fn allocate(self: &Arc<Self>, setup: Setup) -> PyResult<HostMemory> {
        match self.set_up(setup)? {
            Outcome::Buffer { number, address, bytes } => self.memory(number, address, bytes),
            other => unreachable!("memory, not {other:?}"),
        }
    }

    /// Returns the memory of an outcome.
    pub fn memory(self: &Arc<Self>, number: u32, address: u64, length: u64) -> PyResult<HostMemory> {
        let running = running::current(self).ok_or_else(|| self.outside())?;
        let bytes = guarded(|| running.program.memory(number))?;
        let whole = Part { buffer: number, offset: 0, bytes: length };
        Ok(HostMemory::new(self.clone(), whole, address, bytes))
    }

    /// Returns a part of this host's memory, for a command.
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

    fn outside(&self) -> PyErr {
        InputError::new_err(if self.begun.load(Ordering::Relaxed) {
            format!(
                "<Host, rank {} of {}> is used outside its program, which does not run now",
                self.rank, self.ranks
            )
        } else {
            self.beginning.clone()
        })
    }

    /// Begins the run.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub fn set_now(&self, ps: u64) {
        self.now_ps.store(ps, Ordering::Relaxed);
    }

    /// Returns the current instant in nanoseconds, as Python prints it.
    pub fn now_ns(&self) -> String {
        format!("{:?}", self.now_ps.load(Ordering::Relaxed) as f64 / 1000.0)
    }

    /// Records a call that was dropped without an await.
    pub fn forget(&self, text: String) {
        lock(&self.forgotten).push(text);
        self.forgets.store(true, Ordering::Relaxed);
    }

    /// Takes the first recorded call.
    pub fn forgotten(&self) -> Option<String> {
        if !self.forgets.load(Ordering::Relaxed) {
            return None;
        }
        let mut forgotten = lock(&self.forgotten);
        let first = (!forgotten.is_empty()).then(|| forgotten.remove(0));
        self.forgets.store(!forgotten.is_empty(), Ordering::Relaxed);
        first
    }

    /// Marks a coroutine as part of a `gather`. Returns whether it was unmarked.
    fn take(&self, coroutine: &Bound<'_, PyAny>) -> bool {
        lock(&self.gathered).insert(coroutine.as_ptr() as usize)
    }

    /// Unmarks a coroutine that has ended.
    pub fn give_back(&self, coroutine: &Py<PyAny>) {
        lock(&self.gathered).remove(&(coroutine.as_ptr() as usize));
    }
}

/// Locks a mutex; no holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The features of a host with any card: `Calls(rank, ranks, beginning)`. `beginning` is the error of a use before the run.
#[pyclass(frozen)]
pub struct Calls(pub Arc<Handle>);

#[pymethods]
impl Calls {
    #[new]
    fn new(rank: u32, ranks: u32, beginning: String) -> Calls {
        Calls(Arc::new(Handle {
            rank,
            ranks,
            beginning,
            begun: AtomicBool::new(false),
            now_ps: AtomicU64::new(0),
            forgotten: Mutex::default(),
            forgets: AtomicBool::new(false),
            gathered: Mutex::default(),
        }))
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

    /// The instant of the program's last resumption, in picoseconds.
    #[getter]
    fn now_ps(&self) -> u64 {
        self.0.now_ps.load(Ordering::Relaxed)
    }

    /// The instruction set of programs for the card.
    fn isa(&self) -> PyResult<String> {
        let running = running::current(&self.0).ok_or_else(|| self.0.outside())?;
        running.run.isa(self.0.rank)
    }

    /// The interface of handlers for the card.
    fn interface(&self) -> PyResult<&'static str> {
        let running = running::current(&self.0).ok_or_else(|| self.0.outside())?;
        Ok(running.run.interface(self.0.rank))
    }

    /// Checks that the card has this interface of a host.
    fn has(&self, name: &str) -> PyResult<()> {
        let api = match name {
            "portals" => Api::Portals,
            "channels" => Api::Channels,
            "vni" => Api::Vni,
            "rdma" => Api::Rdma,
            "gpu" => Api::Gpu,
            "socket" => Api::Socket,
            "frames" => Api::Frames,
            _ => return Err(InputError::new_err(format!("a host has no {name}"))),
        };
        self.0.set_up(Setup::Has(api)).map(drop)
    }

    /// Allocates zeroed memory of the host.
    fn alloc(&self, length_bytes: &Bound<'_, PyAny>) -> PyResult<HostMemory> {
        self.0.allocate(Setup::Alloc { bytes: u64_of(length_bytes, "length_bytes")? })
    }

    /// Runs new coroutines as further threads of the program, and waits for all of them.
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
