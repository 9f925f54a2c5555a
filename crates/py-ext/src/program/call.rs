//! [`Call`], the object that a program awaits.

use super::handle::Handle;
use super::outcome::python;
use crate::errors::{InputError, raised};
use nicety::Error;
use nicety::commands::{self, Outcome};
use pyo3::exceptions::PyStopIteration;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A call of a host. Virtual time passes while a program awaits the call. The call is its own iterator. The iterator's
/// first step yields the call itself to the program's thread. Its second step returns the result that the thread has
/// stored.
#[pyclass]
pub struct Call {
    host: Arc<Handle>,
    name: &'static str,
    state: State,
    /// A Python function that converts the outcome to the result.
    then: Option<Py<PyAny>>,
    place: Option<Place>,
}

/// The request of a call.
pub enum Request {
    Call(commands::Call),
    /// The coroutines of further threads.
    Gather(Vec<Py<PyAny>>),
}

/// The outcome of a call.
pub enum Reply {
    Outcome(Result<Outcome, Error>),
    /// The values of the gathered threads, or an exception.
    Gathered(PyResult<Py<PyAny>>),
}

enum State {
    Made(Request),
    Awaited(Request),
    Taken,
    Answered(Reply),
    Over,
}

/// A line in the source of a program.
struct Place {
    code: Py<PyAny>,
    instruction: i32,
}

impl Place {
    /// Returns the line of the program that called the running method of the Python package.
    fn caller(py: Python<'_>) -> Option<Place> {
        // SAFETY: Python's lock is held, and the result is null or a borrowed running frame.
        let method = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }?;
        let frame = method.getattr(intern!(py, "f_back")).ok()?;
        let instruction = frame.getattr(intern!(py, "f_lasti")).ok()?.extract().ok()?;
        Some(Place { code: frame.getattr(intern!(py, "f_code")).ok()?.unbind(), instruction })
    }

    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let code = self.code.bind(py);
        let mut line = None;
        for span in code.call_method0("co_lines")?.try_iter()? {
            let (start, end, number): (i32, i32, Option<u32>) = span?.extract()?;
            if (start..end).contains(&self.instruction) {
                line = number;
            }
        }
        let file: String = code.getattr("co_filename")?.extract()?;
        Ok(format!("{file}:{}", line.map_or("?".to_owned(), |line| line.to_string())))
    }
}

impl Call {
    pub fn new(
        py: Python<'_>,
        host: Arc<Handle>,
        name: &'static str,
        request: Request,
        then: Option<Py<PyAny>>,
    ) -> Call {
        Call { host, name, state: State::Made(request), then, place: Place::caller(py) }
    }

    /// The host of the call.
    pub fn host(&self) -> &Arc<Handle> {
        &self.host
    }

    /// Returns the request when the call is awaited for the first time, and `None` later.
    pub fn take(&mut self) -> Option<Request> {
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Awaited(request) => Some(request),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Stores the outcome, which the next step of the iterator returns.
    pub fn answer(&mut self, reply: Reply) {
        self.state = State::Answered(reply);
    }

    fn text(&self, py: Python<'_>) -> String {
        match self.place.as_ref().map(|place| place.text(py)) {
            Some(Ok(place)) => format!("{}(...) at {place}", self.name),
            _ => format!("{}(...)", self.name),
        }
    }
}

#[pymethods]
impl Call {
    fn __await__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let mut call = slf.borrow_mut();
        match std::mem::replace(&mut call.state, State::Over) {
            State::Made(request) => call.state = State::Awaited(request),
            other => {
                call.state = other;
                let text = call.text(slf.py());
                return Err(InputError::new_err(format!("{text} was awaited before; call it again")));
            }
        }
        drop(call);
        Ok(slf)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(slf: Bound<'_, Self>) -> PyResult<Option<Bound<'_, Self>>> {
        let py = slf.py();
        let mut call = slf.borrow_mut();
        let reply = match std::mem::replace(&mut call.state, State::Over) {
            State::Answered(reply) => reply,
            State::Awaited(request) => {
                call.state = State::Awaited(request);
                drop(call);
                return Ok(Some(slf));
            }
            other => {
                call.state = other;
                let text = call.text(py);
                return Err(InputError::new_err(format!("{text} is awaited outside of the program's run")));
            }
        };
        let (host, then) = (call.host.clone(), call.then.take());
        // The conversion may use this call, so it must not be borrowed.
        drop(call);
        let result = match reply {
            Reply::Gathered(result) => result?.into_bound(py),
            Reply::Outcome(Err(error)) => return Err(raised(&error)),
            Reply::Outcome(Ok(Outcome::Nothing)) => return Ok(None),
            Reply::Outcome(Ok(outcome)) => python(py, &host, outcome, then.as_ref())?,
        };
        // A tuple would become the arguments of the exception, so the tuple is wrapped in another tuple.
        Err(if result.is_instance_of::<PyTuple>() {
            PyStopIteration::new_err((result.unbind(),))
        } else {
            PyStopIteration::new_err(result.unbind())
        })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.text(py)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // A program may make a call in one line and await it in a later line, as with Python's own coroutines. So the
        // error is recorded only when the call is dropped.
        let State::Made(request) = std::mem::replace(&mut self.state, State::Over) else { return };
        Python::try_attach(|py| {
            // An exception such as Ctrl-C may be active in the program. It must be preserved.
            let on_its_way = PyErr::take(py);
            let text = self.text(py);
            let (rank, name) = (self.host.rank, self.name);
            self.host.forget(format!("rank {rank}: {text} was never awaited; write await {name}(...)"));
            if let Request::Gather(coroutines) = request {
                for coroutine in &coroutines {
                    self.host.give_back(coroutine);
                    super::running::close(py, coroutine);
                }
            }
            if let Some(error) = on_its_way {
                error.restore(py);
            }
        });
    }
}
