//! Real programs on simulated hosts: JSON to JSON, as in `calls.rs`.

use crate::calls::{measure, text};
use crate::errors::guarded;
use crate::tables::Recording;
use nicety::Environment;
use nicety_exec::Request;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;

/// Runs a program; Ctrl-C ends it and all of its processes. With `record` it also returns the run's recording. Calls `said` with
/// the launcher's output about the end of processes, also after a failure.
#[pyfunction]
pub fn exec_run(
    py: Python<'_>,
    request: &str,
    record: bool,
    said: Py<PyAny>,
) -> PyResult<(String, Option<Recording>)> {
    let request = guarded(|| Request::from_json(request))?;
    let (tell, told) = channel();
    let run = move |environment: &Environment<'_>, recorded: Option<&dyn Fn(_)>| {
        // After an interrupt there may be no receiver.
        nicety_exec::run(&request, environment, recorded, &|words| drop(tell.send(words)))
    };
    let outcome = measure(py, BTreeMap::new(), None, record, Box::new(run));
    for words in told {
        said.call1(py, (words,))?;
    }
    outcome
}

/// Checks that a program's file is of this machine and whole, and can load a library or is in Go.
#[pyfunction]
pub fn exec_check(path: PathBuf) -> PyResult<()> {
    guarded(|| nicety_exec::check_executable(&path))
}

/// Returns the handlers to compile for `exec_run`; JSON to JSON.
#[pyfunction]
pub fn exec_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| nicety_exec::plan(&Request::from_json(request)?))?;
    Ok(text(&plan))
}

/// Returns the identity of this build's libraries.
#[pyfunction]
pub fn exec_build() -> String {
    nicety_exec::build()
}

/// Writes headers and library for programs with Portals to a folder: `include` and `lib`.
#[pyfunction]
pub fn exec_install(folder: std::path::PathBuf) -> PyResult<()> {
    guarded(|| nicety_exec::install_for_programs(&folder))
}
