//! Real programs on simulated hosts: JSON to JSON, as in `calls.rs`.

use crate::calls::report;
use crate::errors::guarded;
use nicety_exec::Request;
use pyo3::prelude::*;

/// Runs a program; Ctrl-C ends it, and all of its processes.
#[pyfunction]
pub fn exec_run(py: Python<'_>, request: &str) -> PyResult<String> {
    let request = guarded(|| Request::from_json(request))?;
    report(py, None, move |environment| nicety_exec::run(&request, environment))
}

/// Puts headers and library for programs with Portals into a folder: `include` and `lib`.
#[pyfunction]
pub fn exec_install(folder: std::path::PathBuf) -> PyResult<()> {
    guarded(|| nicety_exec::install_for_programs(&folder))
}
