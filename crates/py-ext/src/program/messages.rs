//! Messages between hosts, and work on the CPUs of a host.

use super::arguments::{duration_of, optional, tag_of, u32_of, u64_of};
use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use super::memory::HostMemory;
use crate::errors::InputError;
use nicety::Tags;
use nicety::commands::{self, Extent, MessageCall};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// The calls of a host that work with any card. The names are those of the functions for programs.
#[pyclass(frozen)]
pub struct MessageCalls(Arc<Handle>);

impl MessageCalls {
    fn call(&self, py: Python<'_>, name: &'static str, call: MessageCall, then: Option<Py<PyAny>>) -> Call {
        self.0.call(py, name, commands::Call::Messages(call), then)
    }
}

#[pymethods]
impl MessageCalls {
    #[new]
    fn new(calls: &Calls) -> MessageCalls {
        MessageCalls(calls.0.clone())
    }

    fn send(
        &self,
        buffer: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        tag: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let (to, tag) = (u32_of(to, "to")?, tag_of(tag, "tag")?);
        let call = MessageCall::Send { part: self.0.part(buffer)?, to, tag };
        Ok(self.call(buffer.py(), "host.send", call, None))
    }

    fn recv(
        &self,
        buffer: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        tag: &Bound<'_, PyAny>,
        ignore: &Bound<'_, PyAny>,
        received: Py<PyAny>,
    ) -> PyResult<Call> {
        let (source, tags) = (any_or(source, "source", u32_of)?, tags_of(tag, ignore)?);
        let call = MessageCall::Recv { part: self.0.part(buffer)?, source, tags };
        Ok(self.call(buffer.py(), "host.recv", call, Some(received)))
    }

    fn post_recv(
        &self,
        buffer: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        tag: &Bound<'_, PyAny>,
        ignore: &Bound<'_, PyAny>,
        pending: Py<PyAny>,
    ) -> PyResult<Call> {
        let (source, tags) = (any_or(source, "source", u32_of)?, tags_of(tag, ignore)?);
        let call = MessageCall::PostRecv { part: self.0.part(buffer)?, source, tags };
        Ok(self.call(buffer.py(), "host.post_recv", call, Some(pending)))
    }

    fn received(&self, py: Python<'_>, posted: u64, received: Py<PyAny>) -> Call {
        self.call(py, "host.received", MessageCall::Received { posted }, Some(received))
    }

    fn compute(
        &self,
        ns: &Bound<'_, PyAny>,
        cycles: &Bound<'_, PyAny>,
        reads: &Bound<'_, PyAny>,
        writes: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let duration = duration_of(ns, "compute(ns=", ")")?;
        let cycles = u64_of(cycles, "cycles")?;
        let (reads, writes) = (self.extents(reads, "reads")?, self.extents(writes, "writes")?);
        let call = if cycles == 0 && reads.is_empty() && writes.is_empty() {
            MessageCall::Compute { duration }
        } else {
            MessageCall::Work { duration, cycles, reads, writes }
        };
        Ok(self.call(ns.py(), "host.compute", call, None))
    }

    fn copy(&self, source: &Bound<'_, PyAny>, into: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = MessageCall::Copy { part: self.0.part(source)?, into: self.0.part(into)? };
        Ok(self.call(source.py(), "host.copy", call, None))
    }

    fn barrier(&self, py: Python<'_>) -> Call {
        self.call(py, "host.barrier", MessageCall::Barrier, None)
    }
}

/// Reads a rank or a tag. None means any.
fn any_or<T>(
    value: &Bound<'_, PyAny>,
    name: &str,
    read: fn(&Bound<'_, PyAny>, &str) -> PyResult<T>,
) -> PyResult<Option<T>> {
    optional(value, name, read).map_err(|error| {
        if error.is_instance_of::<InputError>(value.py()) {
            InputError::new_err(format!("{}; leave it out for any", error.value(value.py())))
        } else {
            error
        }
    })
}

/// Reads the tags that a receive accepts. `tag` is one tag, or None for any tag. `ignore` has the bits that are not compared.
fn tags_of(tag: &Bound<'_, PyAny>, ignore: &Bound<'_, PyAny>) -> PyResult<Tags> {
    match (any_or(tag, "tag", tag_of)?, tag_of(ignore, "ignore")?) {
        (Some(bits), ignore) => Ok(Tags { bits, ignore }),
        (None, 0) => Ok(Tags::ANY),
        (None, _) => Err(InputError::new_err(
            "ignore is bits of a tag that are not compared, and there is no tag; give one, as in tag=0x500, ignore=0xff",
        )),
    }
}

impl MessageCalls {
    /// Reads the memory that a computation reads or writes. Each item is a buffer, or a buffer with blocks in it.
    fn extents(&self, given: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<Extent>> {
        if let Ok(several) = given.cast_exact::<PyTuple>()
            && several.is_empty()
        {
            return Ok(Vec::new());
        }
        let Ok(each) = given.try_iter() else {
            return Err(InputError::new_err(format!(
                "{name} are several buffers, as in [out], or several buffers with their blocks"
            )));
        };
        each.map(|extent| self.extent(&extent?)).collect()
    }

    fn extent(&self, extent: &Bound<'_, PyAny>) -> PyResult<Extent> {
        if extent.is_instance_of::<HostMemory>() {
            return Ok(Extent { part: self.0.part(extent)?, blocks: None });
        }
        let wrong = |_| {
            InputError::new_err(
                "what is read or written is a buffer, or a buffer and blocks of it, as in (buffer, [(0, 64)])",
            )
        };
        let pair = |of: &Bound<'_, PyAny>| -> PyResult<[Py<PyAny>; 2]> {
            let items = of.try_iter()?.map(|item| item.map(Bound::unbind)).collect::<PyResult<Vec<_>>>()?;
            items.try_into().map_err(|_| InputError::new_err("two of them"))
        };
        let py = extent.py();
        let [buffer, blocks] = pair(extent).map_err(wrong)?;
        let mut found = Vec::new();
        for block in blocks.bind(py).try_iter().map_err(wrong)? {
            let [offset, length] = pair(&block.map_err(wrong)?).map_err(wrong)?;
            found.push((u64_of(offset.bind(py), "an offset")?, u64_of(length.bind(py), "a length")?));
        }
        Ok(Extent { part: self.0.part(buffer.bind(py))?, blocks: Some(found) })
    }
}
