//! The extension module of a design outside nicety. It replaces nicety's own module, and adds one design.

use pyo3::prelude::*;

#[pymodule]
fn own_design(module: &Bound<'_, PyModule>) -> PyResult<()> {
    nicety::designs::register(nicety_nic_ring::DESIGN);
    native::stand_in(module.py())
}
