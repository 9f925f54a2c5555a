//! The state of a run and its programs. All of it belongs to one OS thread.

use super::handle::Handle;
use crate::errors::InputError;
use nicety::Interrupt;
use nicety::commands::Program;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

thread_local! {
    /// The program that is running now in this OS thread. Set-up commands are executed by this program. If runs are
    /// nested, it belongs to the innermost run.
    static RUNNING: RefCell<Option<Rc<Running>>> = const { RefCell::new(None) };
}

/// A program of a run.
pub struct Running {
    pub host: Arc<Handle>,
    pub program: Program,
    pub run: Rc<Run>,
}

/// Returns the program of this host, if this program is running now.
pub fn current(host: &Arc<Handle>) -> Option<Rc<Running>> {
    RUNNING
        .with_borrow(|running| running.as_ref().filter(|running| Arc::ptr_eq(&running.host, host)).cloned())
}

/// Marks a program as running. The mark ends when this value is dropped.
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

/// The instruction set of programs on a card, or the error text for a card without such programs.
pub type Isa = Result<String, String>;

/// The state that all programs of a run share.
pub struct Run {
    pub watch: Arc<Watch>,
    /// The instruction sets of the cards, by rank. A single item applies to all cards.
    isas: Vec<Isa>,
    interfaces: Vec<&'static str>,
    /// Maps the number of each coroutine that has not ended to the coroutine. The numbers are in the order in which
    /// coroutines started.
    alive: RefCell<BTreeMap<u64, Py<PyAny>>>,
    begun: Cell<u64>,
    /// Maps an index to the exception of a gathered thread that no other thread has taken. The indices are in the order
    /// of the exceptions.
    failures: RefCell<BTreeMap<u64, PyErr>>,
    failed: Cell<u64>,
}

impl Run {
    pub fn new(watch: Arc<Watch>, isas: Vec<Isa>, interfaces: Vec<&'static str>) -> Run {
        Run {
            watch,
            isas,
            interfaces,
            alive: RefCell::default(),
            begun: Cell::default(),
            failures: RefCell::default(),
            failed: Cell::default(),
        }
    }

    /// The instruction set of programs for the card of a rank.
    pub fn isa(&self, rank: u32) -> PyResult<String> {
        let isa = if self.isas.len() == 1 { &self.isas[0] } else { &self.isas[rank as usize] };
        isa.clone().map_err(InputError::new_err)
    }

    /// The name of the interface of handlers for the card of a rank.
    pub fn interface(&self, rank: u32) -> &'static str {
        if self.interfaces.len() == 1 { self.interfaces[0] } else { self.interfaces[rank as usize] }
    }

    /// Registers a thread, and returns its number.
    pub fn begin(&self, coroutine: Py<PyAny>) -> u64 {
        let number = self.begun.get();
        self.begun.set(number + 1);
        self.alive.borrow_mut().insert(number, coroutine);
        number
    }

    /// Removes a thread that has ended.
    pub fn end(&self, number: u64) {
        let ended = self.alive.borrow_mut().remove(&number);
        drop(ended);
    }

    /// Stores the exception of a gathered thread, and returns the exception's index.
    pub fn fail(&self, error: PyErr) -> u64 {
        let number = self.failed.get();
        self.failed.set(number + 1);
        self.failures.borrow_mut().insert(number, error);
        number
    }

    /// Removes and returns the exception of a gathered thread.
    pub fn failure(&self, number: u64) -> Option<PyErr> {
        self.failures.borrow_mut().remove(&number)
    }

    /// Removes and returns the first exception that no thread has taken.
    pub fn first_failure(&self) -> Option<PyErr> {
        self.failures.borrow_mut().pop_first().map(|(_, error)| error)
    }

    /// Closes the coroutines that have not ended, so that their `finally` blocks run.
    pub fn close(&self, py: Python<'_>) {
        while let Some((_, coroutine)) = self.take_first() {
            close(py, &coroutine);
        }
    }

    fn take_first(&self) -> Option<(u64, Py<PyAny>)> {
        self.alive.borrow_mut().pop_first()
    }
}

/// Closes a coroutine. If that raises an exception, the exception is only reported, as in Python's own clean-up,
/// because the run has already failed for another reason.
pub fn close(py: Python<'_>, coroutine: &Py<PyAny>) {
    let coroutine = coroutine.bind(py);
    if let Err(error) = coroutine.call_method0("close") {
        error.write_unraisable(py, Some(coroutine));
    }
}

/// Real time between two points at which a run lets other Python threads run and checks for Ctrl-C.
const EVERY: Duration = Duration::from_millis(5);

/// Stops a run when Python raises an exception, such as for Ctrl-C.
pub struct Watch {
    raised: Mutex<Option<PyErr>>,
    looked: Mutex<Instant>,
}

impl Watch {
    pub fn new() -> Arc<Watch> {
        Arc::new(Watch { raised: Mutex::default(), looked: Mutex::new(Instant::now()) })
    }

    /// Returns the interrupt of the run. The run's OS thread checks it.
    pub fn interrupt(self: &Arc<Self>) -> Interrupt {
        let watch = self.clone();
        Interrupt::new(move || watch.is_set())
    }

    /// Returns the interrupt of a run that ends also when a flag is set.
    pub fn interrupt_or(self: &Arc<Self>, stop: Option<Arc<AtomicBool>>) -> Interrupt {
        let watch = self.clone();
        Interrupt::new(move || {
            stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) || watch.is_set()
        })
    }

    /// Stops the run. The run then raises `error`, unless another exception was raised before.
    pub fn stop(&self, error: PyErr) {
        lock(&self.raised).get_or_insert(error);
    }

    /// Returns the exception that stopped the run, if any.
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
            // This releases Python's lock, so a thread that waits for the lock gets it.
            py.detach(|| ());
            py.check_signals()
        });
        *lock(&self.looked) = Instant::now();
        looked.map_err(|error| self.stop(error)).is_err()
    }
}

/// Locks a mutex. It cannot be poisoned, because no holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Whether the exception is an ordinary failure, unlike for example Ctrl-C.
pub fn is_failure(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py)
}
