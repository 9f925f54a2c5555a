//! The extension module of a design that nicety does not know: it stands in for nicety's own, with one design more.

#[path = "../../../../bench/tests/own_design/card.rs"]
mod card;

use pyo3::prelude::*;

#[pymodule]
fn own_design(module: &Bound<'_, PyModule>) -> PyResult<()> {
    nicety_nic::register(&card::Rings);
    native::stand_in(module.py())
}
