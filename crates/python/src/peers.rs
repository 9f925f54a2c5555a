//! The processes of a command.

use nicety::{Error, Exchange};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::cell::RefCell;

thread_local! {
    /// The processes that runs of this thread are spread over.
    static BEGUN: RefCell<Option<nicety::Peers>> = const { RefCell::new(None) };
}

/// This process among those of a command. `exchange` is given a list of bytes, one for each process, and gives a list of those
/// that each has given to this one.
#[pyclass(frozen)]
pub struct Peers(nicety::Peers);

/// A Python function that exchanges bytes.
struct Called(Py<PyAny>);

impl Exchange for Called {
    fn exchange(&self, bytes: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        Python::attach(|py| {
            let given = PyList::new(py, bytes.iter().map(|bytes| PyBytes::new(py, bytes)))?;
            let taken = self.0.call1(py, (given,))?;
            let taken: Vec<Bound<'_, PyBytes>> = taken.extract(py)?;
            Ok(taken.iter().map(|bytes| bytes.as_bytes().to_vec()).collect())
        })
        .map_err(|error: PyErr| {
            match Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                true => Error::Interrupted,
                false => Error::Program(format!("the other processes are out of reach: {error}")),
            }
        })
    }
}

#[pymethods]
impl Peers {
    #[new]
    fn new(number: usize, count: usize, exchange: Py<PyAny>) -> Self {
        Peers(nicety::Peers::new(number, count, Box::new(Called(exchange))))
    }

    /// Runs of this thread are spread over the processes from now on.
    fn begin(&self) {
        BEGUN.set(Some(self.0.clone()));
    }

    /// No longer, and with this status. The statuses of those who left first, by process, with None for those who were still at
    /// work.
    fn leave(&self, status: u8) -> PyResult<nicety::Statuses> {
        BEGUN.set(None);
        crate::errors::guarded(|| self.0.leave(status))
    }
}

/// The processes that runs of this thread are spread over, if they are.
pub fn current() -> Option<nicety::Peers> {
    BEGUN.with_borrow(Clone::clone)
}
