//! Parses quantities in texts from Python, with the parser of card specifications.

use nicety_spec::units;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Parses a quantity, and returns it in whole base units. `quantity` is the kind: `size` (in bytes, with a unit),
/// `bytes` (a size that may lack its unit), `count`, or `time` (in picoseconds).
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

/// Converts a text to its base unit, if it is a quantity. Any other text stays unchanged.
#[pyfunction]
pub fn in_base_unit(text: &str) -> String {
    units::in_base_unit(text)
}
