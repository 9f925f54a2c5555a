//! The captures of a thread, and the packets of a capture's file.

use crate::errors::InputError;
use nicety_traffic::capture::{Capture as Reader, open};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::RefCell;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Mutex;

thread_local! {
    /// The active captures of this thread. Runs write to the last one.
    static BEGUN: RefCell<Vec<nicety::Capture>> = const { RefCell::new(Vec::new()) };
}

/// A file for the packets of links. All runs in this thread between `begin` and `end` write their packets to it.
#[pyclass(frozen)]
pub struct Capture(nicety::Capture);

#[pymethods]
impl Capture {
    #[new]
    #[pyo3(signature = (path, memory=None))]
    fn new(path: PathBuf, memory: Option<u64>) -> Self {
        let capture = nicety::Capture::to(path);
        Capture(match memory {
            Some(memory) => capture.within(memory),
            None => capture,
        })
    }

    /// Starts to capture the runs of this thread.
    fn begin(&self) {
        BEGUN.with_borrow_mut(|begun| begun.push(self.0.clone()));
    }

    /// Stops this capture. An earlier capture that is still active continues.
    fn end(&self) {
        BEGUN.with_borrow_mut(Vec::pop);
    }

    /// The number of packets that did not fit into the memory.
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    /// The number of packets in all runs.
    fn packets(&self) -> u64 {
        self.0.packets()
    }
}

/// Returns the active capture of this thread, if any.
pub fn current() -> Option<nicety::Capture> {
    BEGUN.with_borrow(|begun| begun.last().cloned())
}

/// The packets of a capture's file, one after the other: link type, time in picoseconds since 1970, length, captured bytes.
#[pyclass(frozen)]
pub struct CapturedPackets(Mutex<Reader<Box<dyn Read + Send>>>);

type Row<'py> = (u32, Option<i128>, u64, Bound<'py, PyBytes>);

#[pymethods]
impl CapturedPackets {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let file = open(&path).map_err(|error| InputError::new_err(error.to_string()))?;
        let reader = Reader::new(file).map_err(|damage| InputError::new_err(damage.what))?;
        Ok(CapturedPackets(Mutex::new(reader)))
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Row<'py>>> {
        let mut reader = self.0.lock().expect("no reader panics");
        let Some(packet) = reader.next_packet() else { return Ok(None) };
        let packet = packet.map_err(|damage| InputError::new_err(damage.to_string()))?;
        Ok(Some((packet.link, packet.time, packet.length, PyBytes::new(py, packet.bytes))))
    }
}
