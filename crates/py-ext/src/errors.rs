//! Converts errors to Python exceptions.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::{PyErr, PyResult, create_exception};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

create_exception!(nicety, Error, PyException, "Anything that goes wrong in nicety.");
create_exception!(nicety, InputError, Error, "The user's input is wrong.");
create_exception!(nicety, RunError, Error, "A run failed.");
create_exception!(nicety, TimedOut, RunError, "The other end of a call did not take part in time.");
create_exception!(nicety, Deadlock, RunError, "Programs wait, and nothing can happen any more.");
create_exception!(nicety, HandlerTrap, RunError, "A handler trapped, or used up its cycles.");

/// Returns the exception for an error of nicety.
pub fn raised(error: &nicety::Error) -> PyErr {
    let text = error.to_string();
    match error {
        nicety::Error::Input(_) => InputError::new_err(text),
        nicety::Error::Program(_) | nicety::Error::Undelivered(_) => RunError::new_err(text),
        nicety::Error::System { name, .. } => of_system(name, text),
        nicety::Error::HandlerTrap(_) => HandlerTrap::new_err(text),
        nicety::Error::TimedOut(_) => TimedOut::new_err(text),
        nicety::Error::Deadlock(_) => Deadlock::new_err(text),
        nicety::Error::Interrupted => PyKeyboardInterrupt::new_err(()),
    }
}

/// Returns the exception for an error name of `errno.h`, with Python's exception class for this error.
fn of_system(name: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let number = py.import("errno").and_then(|errno| errno.getattr(name)?.extract::<i32>());
        number.map_or_else(|error| error, |number| PyOSError::new_err((number, text)))
    })
}

/// Calls `act`. An error or a panic becomes a Python exception.
pub fn guarded<R>(act: impl FnOnce() -> Result<R, nicety::Error>) -> PyResult<R> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => result.map_err(|error| raised(&error)),
        Err(panic) => Err(broken(&*panic)),
    }
}

/// Returns the exception for a panic. A panic is a bug in nicety.
pub fn broken(panic: &(dyn Any + Send)) -> PyErr {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    PyRuntimeError::new_err(format!("a mistake inside nicety, please report it: {what}"))
}
