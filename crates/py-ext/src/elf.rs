//! Reads names and code of ELF files, for the compiler.

use nicety_hpu::{LoadError, Names, has_code};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeSet;

fn invalid(error: LoadError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns the global names of a RISC-V or eBPF file in three sets. They are its functions, all names that it defines, and
/// the names that it only uses.
#[pyfunction]
pub fn elf_names(file: &[u8]) -> PyResult<[BTreeSet<String>; 3]> {
    let Names { functions, defined, undefined } = Names::read(file).map_err(invalid)?;
    Ok([functions, defined, undefined])
}

/// Returns whether a linked RISC-V program has executable bytes.
#[pyfunction]
pub fn elf_has_code(file: &[u8]) -> PyResult<bool> {
    has_code(file).map_err(invalid)
}
