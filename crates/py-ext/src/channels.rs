//! The benchmarks of channels. Requests and reports are JSON, as in `calls.rs`.

use crate::calls::{measure, text};
use crate::errors::guarded;
use crate::tables::Recording;
use nicety::Environment;
use nicety_bench::channels;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Returns the programs to compile for `channel_bench`. Request and result are JSON.
#[pyfunction]
pub fn channel_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| channels::plan(&channels::Request::from_json(request)?))?;
    Ok(text(&plan))
}

/// Runs a benchmark of channels. Calls `progress(done, total)` during the run. Ctrl-C ends the run. If `record` is
/// true, also returns the recording of the first run.
#[pyfunction]
#[pyo3(signature = (request, elfs, progress, record=false))]
pub fn channel_bench(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
    record: bool,
) -> PyResult<(String, Option<Recording>)> {
    let request = guarded(|| channels::Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, recorded: Option<&dyn Fn(_)>| {
        channels::run(&request, environment, recorded)
    };
    measure(py, elfs, progress, record, Box::new(run))
}
