//! Benchmarks of programs on a grid of ranks, and of a torus under random traffic. Requests and reports are JSON, as in
//! `calls.rs`.

use crate::calls::report;
use crate::errors::guarded;
use nicety_bench::{grid, torus};
use pyo3::prelude::*;

/// Runs a halo exchange or an all-reduce. Calls `progress(done, total)` during the run. Ctrl-C ends the run.
#[pyfunction]
pub fn grid_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| grid::Request::from_json(request))?;
    report(py, progress, move |environment| grid::run(&request, environment))
}

/// Runs random traffic on a torus. Calls `progress(done, total)` during the run, in hundredths of rows. Ctrl-C ends the
/// run.
#[pyfunction]
pub fn torus_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| torus::Request::from_json(request))?;
    report(py, progress, move |environment| torus::run(&request, environment))
}
