//! Applications of a network flow processor. Requests and reports are JSON, as in `calls.rs`.

use crate::calls::{measure, text};
use crate::errors::guarded;
use nicety::Environment;
use nicety_apps::{cardinality, tsp};
use nicety_bench::pcsa;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Returns the programs to compile for `pcsa_bench`. Request and result are JSON.
#[pyfunction]
pub fn pcsa_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| pcsa::plan(&pcsa::Request::from_json(request)?))?;
    Ok(text(&plan))
}

/// Runs the benchmark of cardinality estimation. Calls `progress(done, total)` during the run. Ctrl-C ends the run.
#[pyfunction]
pub fn pcsa_bench(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = guarded(|| pcsa::Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| pcsa::run(&request, environment);
    Ok(measure(py, elfs, progress, false, Box::new(run))?.0)
}

/// Returns the programs to compile for `pcsa_count`. Request and result are JSON.
#[pyfunction]
pub fn pcsa_count_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| cardinality::plan(&cardinality::Request::from_json(request)?))?;
    Ok(text(&plan))
}

/// Counts the distinct source addresses of a capture. Calls `progress(done, total)` during the run, in kilobytes of the
/// file. Ctrl-C ends the run.
#[pyfunction]
pub fn pcsa_count(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = guarded(|| cardinality::Request::from_json(request))?;
    let run =
        move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| cardinality::run(&request, environment);
    Ok(measure(py, elfs, progress, false, Box::new(run))?.0)
}

/// Returns the program to compile for `tsp_run`, and the distances of the cities. Request and result are JSON.
#[pyfunction]
pub fn tsp_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| tsp::plan(&tsp::Request::from_json(request)?))?;
    Ok(text(&plan))
}

/// Computes the tour lengths of all climbs on the CPUs of this machine. Request and result are JSON. Ctrl-C ends the
/// run.
#[pyfunction]
pub fn tsp_lengths(py: Python<'_>, request: &str) -> PyResult<String> {
    let request = guarded(|| tsp::Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| tsp::lengths(&request, environment);
    Ok(measure(py, BTreeMap::new(), None, false, Box::new(run))?.0)
}

/// Runs the climbs of a request, to find a short tour. Calls `progress(done, total)` during the run, in climbs. Ctrl-C
/// ends the run.
#[pyfunction]
pub fn tsp_run(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = guarded(|| tsp::Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| tsp::run(&request, environment);
    Ok(measure(py, elfs, progress, false, Box::new(run))?.0)
}
