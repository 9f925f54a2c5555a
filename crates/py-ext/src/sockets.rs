//! Benchmarks of sockets. Requests and reports are JSON, as in `calls.rs`.

use crate::calls::report;
use crate::errors::guarded;
use nicety_bench::sockets;
use pyo3::prelude::*;

/// Runs the benchmark of streams. Calls `progress(done, total)` during the run. Ctrl-C ends the run.
#[pyfunction]
pub fn stream_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| sockets::StreamRequest::from_json(request))?;
    report(py, progress, move |environment| sockets::run_streams(&request, environment))
}

/// Runs the benchmark of requests and replies. Progress and Ctrl-C are as for `stream_bench`.
#[pyfunction]
pub fn exchange_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| sockets::ExchangeRequest::from_json(request))?;
    report(py, progress, move |environment| sockets::run_exchanges(&request, environment))
}
