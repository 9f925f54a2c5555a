//! A thread of a program. It is a coroutine, which the simulation resumes in the OS thread of the run.

use super::call::{Call, Reply, Request};
use super::running::{Running, Turn, is_failure};
use crate::errors::InputError;
use nicety::Error;
use nicety::commands::{Next, Outcome, Thread};
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::iterator::PySendResult;
use pyo3::types::{PyIterator, PyList};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The end of a thread: its value, or the index of its exception in the list of failures.
pub type End = Rc<RefCell<Option<Result<Py<PyAny>, u64>>>>;

/// A coroutine of a program.
pub struct Coroutine {
    running: Rc<Running>,
    coroutine: Py<PyAny>,
    /// The iterator of the coroutine. It is created when the coroutine begins.
    steps: Option<Py<PyIterator>>,
    number: u64,
    end: End,
    /// Whether the thread belongs to a `gather`, which waits for the thread. If not, the thread is the first thread of
    /// a program, and the run waits for it.
    further: bool,
    awaited: Option<Py<Call>>,
    /// The results of the threads for which this thread waits.
    gathered: Option<Vec<End>>,
}

const AWAITABLE: &str =
    "a host program may await only what its own host offers, such as host.recv(...) or host.compute(ns=...)";

impl Coroutine {
    /// Returns the first thread of a program.
    pub fn first(running: Rc<Running>, coroutine: Py<PyAny>, number: u64, end: End) -> Coroutine {
        Coroutine {
            running,
            coroutine,
            steps: None,
            number,
            end,
            further: false,
            awaited: None,
            gathered: None,
        }
    }

    fn further(&self, py: Python<'_>, coroutine: Py<PyAny>, end: &End) -> Coroutine {
        let number = self.running.run.begin(coroutine.clone_ref(py));
        Coroutine { further: true, ..Coroutine::first(self.running.clone(), coroutine, number, end.clone()) }
    }

    fn step(&mut self, py: Python<'_>, reply: Result<Outcome, Error>) -> Next {
        self.running.host.set_now(self.running.program.now().ps());
        if let Some(call) = self.awaited.take() {
            let reply = match self.gathered.take() {
                None => Reply::Outcome(reply),
                Some(ends) => Reply::Gathered(self.collect(py, &ends)),
            };
            call.bind(py).borrow_mut().answer(reply);
        }
        let turn = Turn::of(&self.running);
        let mut went = self.resume(py);
        loop {
            match went {
                Ok(PySendResult::Return(value)) => return self.returned(value),
                Ok(PySendResult::Next(awaited)) => match self.next(py, &awaited) {
                    Ok(next) => return next,
                    Err(wrong) => went = self.throw(py, &wrong),
                },
                Err(error) => {
                    drop(turn);
                    return self.failed(py, error);
                }
            }
        }
    }

    fn resume<'py>(&mut self, py: Python<'py>) -> PyResult<PySendResult<'py>> {
        let steps = match &self.steps {
            Some(steps) => steps.bind(py),
            None => {
                let steps = self.coroutine.bind(py).call_method0("__await__")?.cast_into::<PyIterator>()?;
                self.steps.insert(steps.unbind()).bind(py)
            }
        };
        steps.send(py.None().bind(py))
    }

    fn throw<'py>(&self, py: Python<'py>, error: &PyErr) -> PyResult<PySendResult<'py>> {
        match self.coroutine.bind(py).call_method1("throw", (error.value(py),)) {
            Ok(awaited) => Ok(PySendResult::Next(awaited)),
            Err(end) if end.is_instance_of::<PyStopIteration>(py) => {
                Ok(PySendResult::Return(end.value(py).getattr("value")?))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the request of an awaited object. Returns an error if the object is not a call of this host, or was awaited
    /// before.
    fn next(&mut self, py: Python<'_>, awaited: &Bound<'_, PyAny>) -> Result<Next, PyErr> {
        let host = &self.running.host;
        if let Some(text) = host.forgotten() {
            return Err(InputError::new_err(text));
        }
        let Ok(call) = awaited.cast::<Call>() else { return Err(self.foreign(awaited)) };
        let request = {
            let mut call = call.borrow_mut();
            if !Arc::ptr_eq(call.host(), host) {
                let (rank, whose) = (host.rank, call.host().rank);
                let whose = if rank == whose { "another run" } else { &format!("rank {whose}'s host") };
                return Err(InputError::new_err(format!(
                    "rank {rank} awaits a call of {whose}; {AWAITABLE}"
                )));
            }
            call.take()
        };
        let Some(request) = request else { return Err(self.foreign(awaited)) };
        self.awaited = Some(call.clone().unbind());
        Ok(match request {
            Request::Call(call) => Next::Call(call),
            Request::Gather(coroutines) => {
                let mut begun: Vec<Box<dyn Thread>> = Vec::new();
                let mut ends = Vec::new();
                for coroutine in coroutines {
                    let end = End::default();
                    begun.push(Box::new(self.further(py, coroutine, &end)));
                    ends.push(end);
                }
                self.gathered = Some(ends);
                Next::Gather(begun)
            }
        })
    }

    fn foreign(&self, awaited: &Bound<'_, PyAny>) -> PyErr {
        let kind = awaited.get_type();
        match (kind.module(), kind.name()) {
            (Ok(module), Ok(name)) => InputError::new_err(format!(
                "rank {} awaits something foreign ({module}.{name}); {AWAITABLE}",
                self.running.host.rank
            )),
            (Err(error), _) | (_, Err(error)) => error,
        }
    }

    /// Returns the values of the threads for which this thread waited, or the first exception of these threads.
    fn collect(&self, py: Python<'_>, ends: &[End]) -> PyResult<Py<PyAny>> {
        let (mut results, mut failed) = (Vec::new(), Vec::new());
        for end in ends {
            match end.take() {
                Some(Ok(result)) => results.push(result),
                Some(Err(number)) => failed.push(number),
                None => results.push(py.None()),
            }
        }
        failed.sort_unstable();
        let mut failures = failed.into_iter().filter_map(|number| self.running.run.failure(number));
        match failures.next() {
            Some(first) => {
                // Only the first exception is raised, and the others are dropped.
                failures.for_each(drop);
                Err(first)
            }
            None => Ok(PyList::new(py, results)?.into_any().unbind()),
        }
    }

    fn returned(&self, value: Bound<'_, PyAny>) -> Next {
        if let Some(text) = self.running.host.forgotten() {
            return self.stop(InputError::new_err(text));
        }
        self.ended(Ok(value.unbind()))
    }

    fn failed(&self, py: Python<'_>, error: PyErr) -> Next {
        if !is_failure(py, &error) {
            return self.stop(error);
        }
        let failure = self.explained(py, error);
        if self.further { self.ended(Err(self.running.run.fail(failure))) } else { self.stop(failure) }
    }

    fn ended(&self, end: Result<Py<PyAny>, u64>) -> Next {
        self.end.replace(Some(end));
        self.running.run.end(self.number);
        if self.further {
            self.running.host.give_back(&self.coroutine);
        }
        Next::Finished
    }

    fn stop(&self, error: PyErr) -> Next {
        self.running.run.watch.stop(error);
        Next::Stop
    }

    /// Returns an exception of a program, with a note about its place and virtual time.
    fn explained(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let host = &self.running.host;
        let value = error.value(py);
        if value.is_instance_of::<PyRuntimeError>() && error.to_string().contains("no running event loop") {
            let told = InputError::new_err(format!("rank {} awaits asyncio; {AWAITABLE}", host.rank));
            told.set_cause(py, Some(error));
            return told;
        }
        let place = "in the program of rank";
        let noted = || -> PyResult<bool> {
            let Some(notes) = value.getattr_opt("__notes__")? else { return Ok(false) };
            Ok(notes.extract::<Vec<String>>()?.iter().any(|note| note.starts_with(place)))
        };
        if matches!(noted(), Ok(false)) {
            let note = format!("{place} {}, at {} ns of virtual time", host.rank, host.now_ns());
            // Some exceptions accept no notes.
            drop(value.call_method1("add_note", (note,)));
        }
        error
    }
}

impl Thread for Coroutine {
    fn resume(&mut self, reply: Result<Outcome, Error>) -> Next {
        Python::attach(|py| self.step(py, reply))
    }
}
