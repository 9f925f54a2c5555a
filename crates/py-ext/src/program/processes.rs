//! Commands for processes on the card.

use super::arguments::{named, text_of, u32_of, u64_of};
use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use super::outcome::python;
use nicety::CardMemory;
use nicety::commands::{self, Outcome, ProcessCall, ProcessSetup, Setup, names};
use pyo3::prelude::*;
use std::sync::Arc;

/// The calls of a host for processes on its card. Programs use the same names. Numbers identify objects.
#[pyclass(frozen)]
pub struct ProcessCalls(Arc<Handle>);

/// A part of a card's memory: the name of the memory, its island, the offset of the first byte, and the length.
type Part = (String, u64, u32, u32);

fn part_of((memory, island, offset, bytes): Part) -> PyResult<CardMemory> {
    let kind = named(names::card_memory(&memory))?;
    // An island number that does not fit `usize` does not exist either.
    let island = usize::try_from(island).unwrap_or(usize::MAX);
    Ok(CardMemory { kind, island, offset, bytes })
}

impl ProcessCalls {
    fn set_up(&self, setup: ProcessSetup) -> PyResult<Outcome> {
        self.0.set_up(Setup::Processes(setup))
    }
}

#[pymethods]
impl ProcessCalls {
    #[new]
    fn new(calls: &Calls) -> ProcessCalls {
        ProcessCalls(calls.0.clone())
    }

    fn load(&self, elf: Vec<u8>) -> PyResult<u64> {
        self.0.number(Setup::Processes(ProcessSetup::Load { elf }))
    }

    /// Starts a process. `place` has a microengine, a context, and the number of contexts with which the microengine is set up.
    fn start(
        &self,
        processes: u64,
        name: &Bound<'_, PyAny>,
        place: (u32, u32, Option<u32>),
        arguments: Vec<u32>,
    ) -> PyResult<u64> {
        let (name, (microengine, context, contexts)) = (text_of(name, "name", "worker")?, place);
        let start = ProcessSetup::Start { processes, name, microengine, context, contexts, arguments };
        self.0.number(Setup::Processes(start))
    }

    fn open_queue(&self, queue: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_up(ProcessSetup::OpenQueue { queue: u32_of(queue, "queue")? }).map(drop)
    }

    /// Returns the address of a part of the card's memory, as processes use it.
    fn card_memory(&self, part: Part) -> PyResult<u64> {
        self.0.number(Setup::Processes(ProcessSetup::CardMemory { part: part_of(part)? }))
    }

    fn read_card<'py>(&self, py: Python<'py>, part: Part) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.0, self.set_up(ProcessSetup::ReadCard { part: part_of(part)? })?, None)
    }

    fn write_card(&self, part: Part, contents: &[u8]) -> PyResult<()> {
        let contents = contents.to_vec();
        self.set_up(ProcessSetup::WriteCard { part: part_of(part)?, contents }).map(drop)
    }

    fn finished(&self, process: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = ProcessCall::Finished { process: u64_of(process, "process")? };
        Ok(self.0.call(process.py(), "process.finished", commands::Call::Processes(call), None))
    }
}
