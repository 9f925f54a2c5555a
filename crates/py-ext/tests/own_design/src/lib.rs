//! An extension module with a card design that is not part of nicety. It replaces nicety's own extension module, and adds this
//! design.

use pyo3::prelude::*;

#[pymodule]
fn own_design(module: &Bound<'_, PyModule>) -> PyResult<()> {
    nicety::designs::register(nicety_nic_ring::DESIGN);
    native::stand_in(module.py())
}
