//! Benchmarks of memory registration and of many processes. Requests and reports are JSON, as in `calls.rs`.

use crate::calls::report;
use crate::errors::guarded;
use nicety_bench::{fairness, registration};
use pyo3::prelude::*;

/// Runs the benchmark `registration`. Calls `progress(done, total)` during the run. Ctrl-C ends the run.
#[pyfunction]
pub fn registration_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| registration::Request::from_json(request))?;
    report(py, progress, move |environment| registration::run(&request, environment))
}

/// Runs the benchmark `fairness`. Calls `progress(done, total)` during the run. Ctrl-C ends the run.
#[pyfunction]
pub fn fairness_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| fairness::Request::from_json(request))?;
    report(py, progress, move |environment| fairness::run(&request, environment))
}
