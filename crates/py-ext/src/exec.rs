//! Real programs on simulated hosts. Requests and reports are JSON, as in `calls.rs`.

use crate::calls::{measure, text};
use crate::errors::guarded;
use crate::tables::Recording;
use nicety::Environment;
use nicety_exec::Request;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;

/// Runs a program. Ctrl-C ends the program and all its processes. If `record` is true, also returns the recording of
/// the run. Calls `said` with the launcher's output about the end of processes, even after a failure.
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
        // After an interrupt there may be no receiver for the output.
        nicety_exec::run(&request, environment, recorded, &|words| drop(tell.send(words)))
    };
    let outcome = measure(py, BTreeMap::new(), None, record, Box::new(run));
    for words in told {
        said.call1(py, (words,))?;
    }
    outcome
}

/// Checks the file of a program. The file must be complete and for this machine. It must be linked dynamically, or be a Go
/// program.
#[pyfunction]
pub fn exec_check(path: PathBuf) -> PyResult<()> {
    guarded(|| nicety_exec::check_executable(&path))
}

/// Returns the handlers to compile for `exec_run`. Request and result are JSON.
#[pyfunction]
pub fn exec_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| nicety_exec::plan(&Request::from_json(request)?))?;
    Ok(text(&plan))
}

/// Returns the hash of the libraries that this build loads into processes.
#[pyfunction]
pub fn exec_build() -> String {
    nicety_exec::build()
}

/// Installs the headers (`include`) and the library (`lib`) for programs with Portals in a folder.
#[pyfunction]
pub fn exec_install(folder: std::path::PathBuf) -> PyResult<()> {
    guarded(|| nicety_exec::install_for_programs(&folder))
}
