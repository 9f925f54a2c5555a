//! Memory of hosts, as Python objects.

use super::handle::Handle;
use nicety::HostBytes;
use nicety::commands::Part;
use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// A part of a host's memory. numpy and other packages access it through the buffer protocol. The memory never moves or
/// shrinks.
#[pyclass(frozen, subclass)]
#[derive(Clone)]
pub struct HostMemory {
    host: Arc<Handle>,
    part: Part,
    /// The address of the whole buffer that contains this part.
    start: u64,
    /// The bytes of the whole buffer. `None` if the buffer is phantom.
    bytes: Option<Arc<HostBytes>>,
}

impl HostMemory {
    /// Returns a part of a host's memory. `whole` is the part, and `start` the address of its buffer.
    pub fn new(host: Arc<Handle>, whole: Part, start: u64, bytes: Option<Arc<HostBytes>>) -> HostMemory {
        HostMemory { host, part: whole, start, bytes }
    }

    /// Returns the part for commands of this host. `None` if the memory belongs to another host.
    pub fn part_of(&self, host: &Arc<Handle>) -> Option<Part> {
        Arc::ptr_eq(&self.host, host).then_some(self.part)
    }
}

#[pymethods]
impl HostMemory {
    /// Returns an object with the same memory. The constructor of a Python subclass calls this function.
    #[new]
    fn py_new(memory: &HostMemory) -> HostMemory {
        memory.clone()
    }

    fn __len__(&self) -> usize {
        self.part.bytes as usize
    }

    /// The rank of the host with this memory.
    #[getter]
    fn rank(&self) -> u32 {
        self.host.rank
    }

    /// The address of this part in the host's memory.
    #[getter]
    fn address(&self) -> u64 {
        self.start + self.part.offset
    }

    /// Returns a part of this part.
    fn _part(&self, offset: u64, length_bytes: u64) -> PyResult<HostMemory> {
        if offset.checked_add(length_bytes).is_none_or(|end| end > self.part.bytes) {
            return Err(PyIndexError::new_err("the part reaches over the end"));
        }
        let part = Part { offset: self.part.offset + offset, bytes: length_bytes, ..self.part };
        Ok(HostMemory { part, ..self.clone() })
    }

    /// # Safety
    /// Python passes `view`, which must be valid for writing.
    unsafe fn __getbuffer__(slf: PyRef<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let length = isize::try_from(slf.part.bytes).map_err(|_| PyBufferError::new_err("too long"))?;
        let start = match &slf.bytes {
            None => std::ptr::NonNull::<u8>::dangling().as_ptr(),
            // SAFETY: a part lies within its buffer.
            Some(bytes) => unsafe { bytes.as_ptr().add(slf.part.offset as usize) },
        };
        // SAFETY: `view` comes from Python; `start` is valid for `length` bytes as long as `slf` lives, which
        // the view keeps alive, and the memory never moves.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast::<c_void>(), length, 0, flags) }
        {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
