//! What a run knows of its programs while it runs, all of it in one thread.

use super::handle::Handle;
use crate::errors::InputError;
use nicety::Interrupt;
use nicety::commands::Program;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

thread_local! {
    /// The program that runs now in this thread: what it asks without waiting is answered here. Of runs inside runs, the
    /// innermost.
    static RUNNING: RefCell<Option<Rc<Running>>> = const { RefCell::new(None) };
}

/// A program of a run.
pub struct Running {
    pub host: Arc<Handle>,
    pub program: Program,
    pub run: Rc<Run>,
}

/// The program of this host, where it runs now.
pub fn current(host: &Arc<Handle>) -> Option<Rc<Running>> {
    RUNNING
        .with_borrow(|running| running.as_ref().filter(|running| Arc::ptr_eq(&running.host, host)).cloned())
}

/// A program runs until this is dropped.
pub struct Turn(Option<Rc<Running>>);

impl Turn {
    pub fn of(running: &Rc<Running>) -> Turn {
        Turn(RUNNING.replace(Some(running.clone())))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        RUNNING.set(self.0.take());
    }
}

/// An instruction set, or what is wrong with asking for it.
pub type Isa = Result<String, String>;

/// What the programs of a run share.
pub struct Run {
    pub watch: Arc<Watch>,
    /// The instruction set that the cards have, by rank; or of all, where there is one alone.
    isas: Vec<Isa>,
    /// The coroutines that have not ended, in the order in which they began.
    alive: RefCell<BTreeMap<u64, Py<PyAny>>>,
    begun: Cell<u64>,
    /// What further threads raised and nobody was told yet, in the order in which they did.
    failures: RefCell<BTreeMap<u64, PyErr>>,
    failed: Cell<u64>,
}

impl Run {
    pub fn new(watch: Arc<Watch>, isas: Vec<Isa>) -> Run {
        Run {
            watch,
            isas,
            alive: RefCell::default(),
            begun: Cell::default(),
            failures: RefCell::default(),
            failed: Cell::default(),
        }
    }

    /// The instruction set that programs for a rank's card are compiled for.
    pub fn isa(&self, rank: u32) -> PyResult<String> {
        let isa = if self.isas.len() == 1 { &self.isas[0] } else { &self.isas[rank as usize] };
        isa.clone().map_err(InputError::new_err)
    }

    /// A thread begins; gives its number.
    pub fn begin(&self, coroutine: Py<PyAny>) -> u64 {
        let number = self.begun.get();
        self.begun.set(number + 1);
        self.alive.borrow_mut().insert(number, coroutine);
        number
    }

    /// A thread has ended.
    pub fn end(&self, number: u64) {
        let ended = self.alive.borrow_mut().remove(&number);
        drop(ended);
    }

    /// A further thread raised something; gives its place among all that did.
    pub fn fail(&self, error: PyErr) -> u64 {
        let number = self.failed.get();
        self.failed.set(number + 1);
        self.failures.borrow_mut().insert(number, error);
        number
    }

    /// What a further thread raised, to be told.
    pub fn failure(&self, number: u64) -> Option<PyErr> {
        self.failures.borrow_mut().remove(&number)
    }

    /// The first that nobody was told.
    pub fn first_failure(&self) -> Option<PyErr> {
        self.failures.borrow_mut().pop_first().map(|(_, error)| error)
    }

    /// Ends what has not: `finally` blocks run.
    pub fn close(&self, py: Python<'_>) {
        while let Some((_, coroutine)) = self.take_first() {
            close(py, &coroutine);
        }
    }

    fn take_first(&self) -> Option<(u64, Py<PyAny>)> {
        self.alive.borrow_mut().pop_first()
    }
}

/// Ends a coroutine. What it raises at that is told as what Python's own clean-up raises: something else failed before.
pub fn close(py: Python<'_>, coroutine: &Py<PyAny>) {
    let coroutine = coroutine.bind(py);
    if let Err(error) = coroutine.call_method0("close") {
        error.write_unraisable(py, Some(coroutine));
    }
}

/// How often a run lets other threads of Python move on, and looks whether Ctrl-C was pressed.
const EVERY: Duration = Duration::from_millis(5);

/// Stops a run where Python asks for it.
pub struct Watch {
    raised: Mutex<Option<PyErr>>,
    looked: Mutex<Instant>,
}

impl Watch {
    pub fn new() -> Arc<Watch> {
        Arc::new(Watch { raised: Mutex::default(), looked: Mutex::new(Instant::now()) })
    }

    /// The interrupt of the run, which is asked in its thread.
    pub fn interrupt(self: &Arc<Self>) -> Interrupt {
        let watch = self.clone();
        Interrupt::new(move || watch.is_set())
    }

    /// Stops the run; it raises this, unless something was raised before.
    pub fn stop(&self, error: PyErr) {
        lock(&self.raised).get_or_insert(error);
    }

    /// What the run was stopped with.
    pub fn raised(&self) -> Option<PyErr> {
        lock(&self.raised).take()
    }

    fn is_set(&self) -> bool {
        if lock(&self.raised).is_some() {
            return true;
        }
        if lock(&self.looked).elapsed() < EVERY {
            return false;
        }
        let looked = Python::attach(|py| {
            // Whoever waits for Python's lock has it now.
            py.detach(|| ());
            py.check_signals()
        });
        *lock(&self.looked) = Instant::now();
        looked.map_err(|error| self.stop(error)).is_err()
    }
}

/// Nobody panics with one of these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Whether Python code means to handle an exception, and not to leave at once as on Ctrl-C.
pub fn is_failure(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py)
}
