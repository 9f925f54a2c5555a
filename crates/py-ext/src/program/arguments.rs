//! Reads the arguments of calls from Python. Arguments of the expected type are read directly. For any other type, a
//! check of the Python package raises an error or converts the value.

use crate::errors::{InputError, raised};
use nicety::{Duration, Error, LARGEST_TAG};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

/// Reads a whole number from 0 to 2^64 - 1.
pub fn u64_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    whole(value, name, u64::MAX)
}

/// Reads the tag of a message, or the bits of a tag.
pub fn tag_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    whole(value, name, LARGEST_TAG)
}

/// Reads a whole number from 0 to 2^32 - 1.
pub fn u32_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    Ok(whole(value, name, u32::MAX.into())? as u32)
}

/// Reads a value; None stays None.
pub fn optional<T>(
    value: &Bound<'_, PyAny>,
    name: &str,
    read: fn(&Bound<'_, PyAny>, &str) -> PyResult<T>,
) -> PyResult<Option<T>> {
    if value.is_none() { Ok(None) } else { read(value, name).map(Some) }
}

fn whole(value: &Bound<'_, PyAny>, name: &str, most: u64) -> PyResult<u64> {
    static CHECK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if value.is_exact_instance_of::<PyInt>()
        && let Ok(number) = value.extract::<u64>()
        && number <= most
    {
        return Ok(number);
    }
    CHECK.import(value.py(), "nicety.shared.checks", "whole")?.call1((value, name, most))?.extract()
}

/// Reads a text. `example` is an example for the error.
pub fn text_of(value: &Bound<'_, PyAny>, name: &str, example: &str) -> PyResult<String> {
    static CHECK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    CHECK.import(value.py(), "nicety.shared.checks", "text")?.call1((value, name, example))?.extract()
}

/// Returns the value of a name, or the exception for an unknown name.
pub fn named<T>(meaning: Result<T, Error>) -> PyResult<T> {
    meaning.map_err(|error| raised(&error))
}

/// Reads the kind of acknowledgement: True, False, or a name.
pub fn ack_of(value: &Bound<'_, PyAny>) -> PyResult<nicety::portals::AckRequest> {
    use nicety::portals::AckRequest;
    if let Ok(whether) = value.cast_exact::<PyBool>() {
        return Ok(if whether.is_true() { AckRequest::Full } else { AckRequest::None });
    }
    let name = text_of(value, "ack", "ct_ack")?;
    nicety::commands::names::ack(&name)
        .map_err(|error| InputError::new_err(format!("{error}, True and False")))
}

/// Reads a time in nanoseconds, rounded up to whole picoseconds. The text of an error consists of `before`, the time and `after`.
pub fn duration_of(value: &Bound<'_, PyAny>, before: &str, after: &str) -> PyResult<Duration> {
    static CHECK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let quick = if value.is_exact_instance_of::<PyInt>() {
        value.extract::<u64>().ok().and_then(|ns| ns.checked_mul(1000))
    } else if let Ok(ns) = value.cast::<PyFloat>() {
        picoseconds(ns.value())
    } else {
        None
    };
    if let Some(ps) = quick {
        return Ok(Duration::from_ps(ps));
    }
    let name = format!("{before}{}{after}", value.str()?);
    let ps = CHECK.import(value.py(), "nicety.shared.checks", "picoseconds")?.call1((value, name))?;
    Ok(Duration::from_ps(ps.extract()?))
}

/// Converts nanoseconds to picoseconds, rounded up. It converts the shortest decimal form of the number, so 0.1 ns is
/// 100 ps. The binary fraction would give 101 ps. Returns `None` for a number that is too large, negative or not a
/// number.
fn picoseconds(ns: f64) -> Option<u64> {
    if !(0.0..=1.8e16).contains(&ns) {
        return None;
    }
    let digits = ns.to_string();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole: u64 = whole.parse().ok()?;
    let (kept, rest) = fraction.split_at(fraction.len().min(3));
    let thousandths: u64 = format!("{kept:0<3}").parse().ok()?;
    let up = u64::from(rest.bytes().any(|digit| digit != b'0'));
    whole.checked_mul(1000)?.checked_add(thousandths + up)
}

/// Reads a time limit in nanoseconds. None means unlimited.
pub fn timeout_of(value: &Bound<'_, PyAny>, before: &str, after: &str) -> PyResult<Option<Duration>> {
    if value.is_none() { Ok(None) } else { duration_of(value, before, after).map(Some) }
}
