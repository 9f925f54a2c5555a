//! The extension module of a design outside nicety. It replaces nicety's own module, and adds one design.

#[path = "../../../../bench/tests/own_design/card.rs"]
mod card;

use pyo3::prelude::*;

#[pymodule]
fn own_design(module: &Bound<'_, PyModule>) -> PyResult<()> {
    nicety::designs::register(&card::Rings);
    native::stand_in(module.py())
}
