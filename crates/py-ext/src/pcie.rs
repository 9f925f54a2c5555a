//! The tests of pcie-bench, and published measurements of cards. Requests and reports are JSON, as in `calls.rs`.

use crate::calls::report;
use crate::errors::guarded;
use nicety_bench::pcie;
use pyo3::prelude::*;

/// The published rows of cards, by the name of the study.
const ROWS: [(&str, &str); 2] = [
    ("nfp-6000", include_str!("../../../studies/nfp-6000/rows.csv")),
    ("bluefield3-dpa", include_str!("../../../studies/bluefield3-dpa/rows.csv")),
];

/// Runs the benchmark `pcie`. Calls `progress(done, total)` during the run. Ctrl-C ends the run.
#[pyfunction]
pub fn pcie_bench(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let request = guarded(|| pcie::Request::from_json(request))?;
    report(py, progress, move |environment| pcie::run(&request, environment))
}

/// Returns the published rows of cards as pairs of a name and a table in CSV.
#[pyfunction]
pub fn score_rows() -> Vec<(&'static str, &'static str)> {
    ROWS.to_vec()
}
