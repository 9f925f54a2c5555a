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

/// The calls of a host for processes on its card. The names are those of the functions for programs. Numbers identify
/// objects.
#[pyclass(frozen)]
pub struct ProcessCalls {
    handle: Arc<Handle>,
    /// The number of the card in the host.
    card: u32,
}

/// A part of a card's memory: the name of the memory, its island, the offset of the first byte, and the length.
type Part = (String, u64, u32, u32);

fn part_of((memory, island, offset, bytes): Part) -> PyResult<CardMemory> {
    let kind = named(names::card_memory(&memory))?;
    // An island with a number above `usize::MAX` does not exist, so the largest number gives the same error.
    let island = usize::try_from(island).unwrap_or(usize::MAX);
    Ok(CardMemory { kind, island, offset, bytes })
}

impl ProcessCalls {
    fn set_up(&self, setup: ProcessSetup) -> PyResult<Outcome> {
        self.handle.set_up(Setup::Processes { card: self.card, setup })
    }

    fn number(&self, setup: ProcessSetup) -> PyResult<u64> {
        self.handle.number(Setup::Processes { card: self.card, setup })
    }
}

#[pymethods]
impl ProcessCalls {
    #[new]
    fn new(calls: &Calls, card: u32) -> ProcessCalls {
        ProcessCalls { handle: calls.0.clone(), card }
    }

    /// Checks that the host has the card.
    fn check_card(&self) -> PyResult<()> {
        self.set_up(ProcessSetup::Check).map(drop)
    }

    fn load(&self, elf: Vec<u8>) -> PyResult<u64> {
        self.number(ProcessSetup::Load { elf })
    }

    /// Starts a process. `place` has the microengine, the context, and the number of contexts for which the microengine
    /// is set up.
    fn start(
        &self,
        processes: u64,
        name: &Bound<'_, PyAny>,
        place: (u32, u32, Option<u32>),
        arguments: Vec<u32>,
    ) -> PyResult<u64> {
        let (name, (microengine, context, contexts)) = (text_of(name, "name", "worker")?, place);
        let start = ProcessSetup::Start { processes, name, microengine, context, contexts, arguments };
        self.number(start)
    }

    fn open_queue(&self, queue: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_up(ProcessSetup::OpenQueue { queue: u32_of(queue, "queue")? }).map(drop)
    }

    /// Returns the address of a part of the card's memory, as processes use it.
    fn card_memory(&self, part: Part) -> PyResult<u64> {
        self.number(ProcessSetup::CardMemory { part: part_of(part)? })
    }

    fn read_card<'py>(&self, py: Python<'py>, part: Part) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.handle, self.set_up(ProcessSetup::ReadCard { part: part_of(part)? })?, None)
    }

    fn write_card(&self, part: Part, contents: &[u8]) -> PyResult<()> {
        let contents = contents.to_vec();
        self.set_up(ProcessSetup::WriteCard { part: part_of(part)?, contents }).map(drop)
    }

    fn finished(&self, process: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = ProcessCall::Finished { process: u64_of(process, "process")? };
        let call = commands::Call::Processes { card: self.card, call };
        Ok(self.handle.call(process.py(), "process.finished", call, None))
    }
}
