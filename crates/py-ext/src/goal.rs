//! Functions for schedules. Requests and reports are JSON, as in `calls.rs`.

use crate::calls::{measure, report, text};
use crate::errors::guarded;
use nicety::Environment;
use nicety_goal::requests::{self, CompareRequest, GenerateRequest, RunRequest, TraceRequest};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Returns the programs to compile for `goal_run`. Request and result are JSON.
#[pyfunction]
pub fn goal_run_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| requests::plan_run(&RunRequest::from_json(request)?))?;
    Ok(text(&plan))
}

/// Runs a schedule. Calls `progress(done, total)` during the run, in thousandths of the run. Ctrl-C ends the run.
#[pyfunction]
pub fn goal_run(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = guarded(|| RunRequest::from_json(request))?;
    let run =
        move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| requests::run(&request, environment);
    Ok(measure(py, elfs, progress, false, Box::new(run))?.0)
}

/// Returns the programs to compile for `goal_compare`. Request and result are JSON.
#[pyfunction]
pub fn goal_compare_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| requests::plan_compare(&CompareRequest::from_json(request)?))?;
    Ok(text(&plan))
}

/// Runs a schedule on several cards. Progress and Ctrl-C are as for `goal_run`.
#[pyfunction]
pub fn goal_compare(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = guarded(|| CompareRequest::from_json(request))?;
    let run =
        move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| requests::compare(&request, environment);
    Ok(measure(py, elfs, progress, false, Box::new(run))?.0)
}

/// Returns statistics of a schedule as JSON. Progress and Ctrl-C are as for `goal_run`.
#[pyfunction]
pub fn goal_info(py: Python<'_>, file: String, progress: Option<Py<PyAny>>) -> PyResult<String> {
    report(py, progress, move |environment| requests::info(&file, environment))
}

/// Writes a schedule in another format. Progress and Ctrl-C are as for `goal_run`.
#[pyfunction]
pub fn goal_convert(
    py: Python<'_>,
    source: String,
    target: String,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    report(py, progress, move |environment| requests::convert(&source, &target, environment))
}

/// Writes the schedule of a communication pattern. Progress and Ctrl-C are as for `goal_run`.
#[pyfunction]
pub fn goal_generate(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| GenerateRequest::from_json(request))?;
    report(py, progress, move |environment| requests::generate(&request, environment))
}

/// Writes a schedule that it makes from the traces of an MPI program. Progress and Ctrl-C are as for `goal_run`.
#[pyfunction]
pub fn goal_trace(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| TraceRequest::from_json(request))?;
    report(py, progress, move |environment| requests::trace(&request, environment))
}
