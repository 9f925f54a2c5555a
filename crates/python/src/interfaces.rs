//! The benchmarks of registering memory and of many processes: JSON to JSON, as in `calls.rs`.

use crate::calls::measure;
use crate::errors::guarded;
use nicety::Environment;
use nicety_bench::{fairness, registration};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Runs the benchmark of copying and translating. Calls `progress(done, total)` as it goes on; Ctrl-C ends it.
#[pyfunction]
pub fn registration_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| registration::Request::from_json(request))?;
    let run =
        move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| registration::run(&request, environment);
    Ok(measure(py, BTreeMap::new(), progress, false, Box::new(run))?.0)
}

/// Runs the benchmark of fairness. Calls `progress(done, total)` as it goes on; Ctrl-C ends it.
#[pyfunction]
pub fn fairness_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| fairness::Request::from_json(request))?;
    let run =
        move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| fairness::run(&request, environment);
    Ok(measure(py, BTreeMap::new(), progress, false, Box::new(run))?.0)
}
