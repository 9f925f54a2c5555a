//! Quantities of Python's texts, read by the parser of specs.

use nicety_spec::units;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns a quantity in whole base units: a `size` with its unit, or `bytes`, a size that may lack it; a `count`; a
/// `time` in picoseconds.
#[pyfunction]
pub fn parse_quantity(quantity: &str, text: &str) -> PyResult<u64> {
    match quantity {
        "size" => units::parse_size(text),
        "bytes" => units::parse_bytes(text),
        "count" => units::parse_count(text),
        "time" => units::parse_time(text).map(|time| time.ps()),
        _ => return Err(PyValueError::new_err(format!("there is no quantity {quantity}"))),
    }
    .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns a text in its base unit if it is a quantity.
#[pyfunction]
pub fn in_base_unit(text: &str) -> String {
    units::in_base_unit(text)
}
