//! Converts outcomes of commands to Python objects.

use super::handle::Handle;
use nicety::apenet::Refusal;
use nicety::commands::Outcome;
use nicety::portals::{Atomic, Event, Limits, List};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::sync::Arc;

/// Returns the result of a call. If the result has a Python class, `then` constructs it from the parts of the outcome.
pub fn python<'py>(
    py: Python<'py>,
    host: &Arc<Handle>,
    outcome: Outcome,
    then: Option<&Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let none = || Ok(py.None().into_bound(py));
    match outcome {
        Outcome::Nothing => none(),
        Outcome::Word(word) => match then {
            None => Ok(word.into_pyobject(py)?.into_any()),
            Some(then) => then.bind(py).call1((word,)),
        },
        Outcome::Bytes(bytes) => match then {
            None => Ok(PyBytes::new(py, &bytes).into_any()),
            Some(then) => then.bind(py).call1((PyBytes::new(py, &bytes),)),
        },
        Outcome::Buffer { number, address, bytes } => {
            made(py, then, PyTuple::new(py, [Bound::new(py, host.memory(number, address, bytes)?)?])?)
        }
        Outcome::Received(received) => {
            made(py, then, (received.source, received.tag, received.length).into_pyobject(py)?)
        }
        Outcome::Count(count) => made(py, then, (count.success, count.failure).into_pyobject(py)?),
        Outcome::Reached(None)
        | Outcome::Event(None)
        | Outcome::Polled(None)
        | Outcome::Completed(None)
        | Outcome::RdmaEvent(None) => none(),
        Outcome::Reached(Some((ct, count))) => {
            let count = made(py, then, (count.success, count.failure).into_pyobject(py)?)?;
            Ok((ct.to_bits(), count).into_pyobject(py)?.into_any())
        }
        Outcome::Event(Some(event)) => made(py, then, fields(py, &event)?),
        Outcome::Polled(Some((eq, event))) => {
            Ok((eq.to_bits(), made(py, then, fields(py, &event)?)?).into_pyobject(py)?.into_any())
        }
        Outcome::Selected(index, bytes) => {
            Ok((index, PyBytes::new(py, &bytes)).into_pyobject(py)?.into_any())
        }
        Outcome::Completed(Some(done)) => {
            let parts = (done.peer.node.0, done.peer.vni, done.tag, done.bytes, done.truncated);
            made(py, then, parts.into_pyobject(py)?)
        }
        Outcome::Region(region) => {
            made(py, then, (region.number, region.address, region.bytes).into_pyobject(py)?)
        }
        Outcome::RdmaEvent(Some(event)) => {
            let parts = (
                event.kind.name(),
                event.peer.node.0,
                event.address,
                event.bytes,
                event.data,
                event.streaming,
                event.operation().map(|operation| operation.0),
                event.kind.refusal().map(Refusal::name),
                event.refused_by.map(|node| node.0),
            );
            made(py, then, parts.into_pyobject(py)?)
        }
        Outcome::Datagram(bytes, from) => {
            let from = (from.ip().to_string(), from.port());
            Ok((PyBytes::new(py, &bytes), from).into_pyobject(py)?.into_any())
        }
        Outcome::Ends(..) => unreachable!("of a set-up, and its caller reads it"),
        Outcome::Limits(limits) => Ok(limits_of(py, &limits)?.into_any()),
    }
}

fn made<'py>(
    py: Python<'py>,
    then: Option<&Py<PyAny>>,
    parts: Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    match then {
        None => Ok(parts.into_any()),
        Some(then) => then.bind(py).call1(parts),
    }
}

/// Returns the fields of a full event, in the order of `nicety.Event`.
fn fields<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyTuple>> {
    let list = match event.list {
        List::Priority => "priority",
        List::Overflow => "overflow",
    };
    let atomic = |name: fn(Atomic) -> &'static str| event.atomic.map(name);
    let name = |text: &str| text.into_pyobject(py).map(Bound::into_any);
    let word = |word: u64| word.into_pyobject(py).map(Bound::into_any);
    PyTuple::new(
        py,
        [
            name(event.kind.name())?,
            name(event.fail.name())?,
            word(event.initiator.0.into())?,
            word(event.pt.into())?,
            name(list)?,
            word(event.match_bits)?,
            word(event.hdr_data)?,
            word(event.rlength)?,
            word(event.mlength)?,
            word(event.remote_offset)?,
            word(event.start)?,
            word(event.user_ptr)?,
            word(event.uid.into())?,
            atomic(|atomic| atomic.op().name()).into_pyobject(py)?,
            atomic(|atomic| atomic.datatype().name()).into_pyobject(py)?,
        ],
    )
}

/// Returns the limits as a dictionary. The keys are the names of `ptl_ni_limits_t`, and each feature has its own key.
fn limits_of<'py>(py: Python<'py>, limits: &Limits) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    let counts = [
        ("max_entries", limits.entries),
        ("max_unexpected_headers", limits.unexpected_headers),
        ("max_mds", limits.descriptors),
        ("max_cts", limits.counters),
        ("max_eqs", limits.event_queues),
        ("max_eq_depth", limits.event_queue_depth),
        ("max_pt_index", limits.portal_table - 1),
        ("max_list_size", limits.list_length),
        ("max_triggered_ops", limits.triggered),
        ("max_operations", limits.operations),
    ];
    for (name, count) in counts {
        named.set_item(name, count)?;
    }
    let sizes = [
        ("max_msg_size", limits.message_bytes),
        ("max_atomic_size", limits.atomic_bytes),
        ("max_fetch_atomic_size", limits.fetch_atomic_bytes),
    ];
    for (name, size) in sizes {
        named.set_item(name, size)?;
    }
    let features = limits.features.iter_names().map(|(name, _)| name.to_lowercase());
    named.set_item("features", PyList::new(py, features.collect::<Vec<_>>())?)?;
    Ok(named)
}
