//! Generates the Python code of Portals operations from the table of calls: `python/nicety/_generated/operations.py`.

use super::{CALLS, Call};
use std::fmt::Write;

const HEAD: &str = r#""""Portals operations of a host's program: puts, gets and atomics, posted at once or triggered by a counter.

Each returns when it has been posted. Names, options and semantics are those of the Portals 4 specification.

Made of `crates/nicety/src/commands/table.rs` by `crates/exec/tests/portals_calls`, and not to be changed by hand.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Literal

from nicety.shared.checks import item_operator, operand_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

    from nicety import _native

Ack = Literal["no_ack", "ack", "ct_ack", "oc_ack"]
"""Acknowledgement of a put: none, a full event and a count, a count, or a count of the requested bytes."""


class Operations:
    """The operations that a host can start."""

    _portals: _native.PortalsCalls
"#;

/// A parameter in Python: the argument's name in the table, the parameter's name, its type, and its default.
struct Parameter(&'static str, &'static str, &'static str, Option<&'static str>);

/// Parameters in the order of Python. Those after `length_bytes` are keyword-only.
const PARAMETERS: [Parameter; 19] = [
    Parameter("md", "md", "int", None),
    Parameter("length", "length_bytes", "int", None),
    Parameter("get_md", "get_md", "int", None),
    Parameter("target", "to", "int", None),
    Parameter("pt", "pt", "int", None),
    Parameter("trigger", "ct", "int", None),
    Parameter("threshold", "threshold", "int", None),
    Parameter("operation", "operator", "str", None),
    Parameter("datatype", "datatype", "npt.DTypeLike", None),
    Parameter("operand_low", "operand", "bytes | None", Some("None")),
    Parameter("operand_high", "", "", None),
    Parameter("operand_bytes", "", "", None),
    Parameter("match_bits", "match_bits", "int", Some("0")),
    Parameter("local_offset", "local_offset", "int", Some("0")),
    Parameter("local_get_offset", "local_get_offset", "int", Some("0")),
    Parameter("remote_offset", "remote_offset", "int", Some("0")),
    Parameter("hdr_data", "hdr_data", "int", Some("0")),
    Parameter("user_ptr", "user_ptr", "int", Some("0")),
    Parameter("ack", "ack", "bool | Ack", Some("False")),
];

/// The arguments that only triggered operations have.
const TRIGGER: [&str; 2] = ["trigger", "threshold"];

/// The operations, with their docstrings.
const OPERATIONS: [(&str, &str); 10] = [
    (
        "put",
        r#"Post a put of a memory descriptor's bytes (`PtlPut`).

Args:
    md: the memory descriptor.
    length_bytes: the number of bytes.
    to: the target rank.
    pt: the portal table entry there.
    match_bits: the bits for the match entry.
    local_offset: the offset of the bytes in the descriptor's memory.
    remote_offset: their offset in the match entry's memory; an entry with `manage_local` chooses it itself.
    hdr_data: a word for the target's event and handlers.
    user_ptr: a word that the local events return.
    ack: the acknowledgement: `True` or `ack` is a full event and a count, `ct_ack` and `oc_ack` a count.

Raises:
    InputError: there is no such rank.
    RunError: there is no such descriptor, or the bytes are not inside its memory."#,
    ),
    (
        "get",
        r#"Post a get into a memory descriptor's memory (`PtlGet`).

It ends with a `PTL_EVENT_REPLY`; a counter of the descriptor counts it with `event_ct_reply`. The match entry
there must have the option `op_get`. The arguments are those of `put`.

Raises:
    InputError: see `put`.
    RunError: as `put`."#,
    ),
    (
        "atomic",
        r#"Post an atomic operation of a descriptor's items on those of a match entry (`PtlAtomic`).

`operator` is one of `min`, `max`, `sum`, `prod`, `lor`, `land`, `bor`, `band`, `lxor` and `bxor`. `datatype` is
the type of an item: numpy's types, or the names of Portals, such as `uint64` or `float_complex`. The other
arguments are those of `put`.

Raises:
    InputError: see `put`; also if there is no such operator or type.
    RunError: see `put`; also if the operator does not support the type, or the length is no multiple of an
        item."#,
    ),
    (
        "fetch_atomic",
        r#"Post an atomic operation that fetches the previous value (`PtlFetchAtomic`).

`get_md` is the memory descriptor for the previous value, from `local_get_offset` on; it may be the same. The
other arguments are those of `atomic`. It ends with a `PTL_EVENT_REPLY` of `get_md`.

Raises:
    InputError: see `atomic`.
    RunError: as `atomic`."#,
    ),
    (
        "swap",
        r#"Post a swap: `fetch_atomic` with other operators (`PtlSwap`).

`operator` is `swap`; or, on one item, `cswap`, `cswap_ne`, `cswap_le`, `cswap_lt`, `cswap_ge` or `cswap_gt`, or
`mswap`. The `cswap` operators swap if the comparison of `operand` with the previous value holds; `mswap` swaps
the bits that are set in `operand`. `operand` has the bytes of an item, such as `np.uint64(7).tobytes()`. The
other arguments are those of `fetch_atomic`.

Raises:
    InputError: see `atomic`.
    RunError: see `atomic`; also if the operator needs an operand, or takes none."#,
    ),
    (
        "triggered_put",
        r#"Post a put that the card starts when a counter has reached a threshold (`PtlTriggeredPut`)."#,
    ),
    (
        "triggered_get",
        r#"Post a get that the card starts when a counter has reached a threshold (`PtlTriggeredGet`)."#,
    ),
    (
        "triggered_atomic",
        r#"Post an atomic that the card starts when a counter has reached a threshold (`PtlTriggeredAtomic`)."#,
    ),
    (
        "triggered_fetch_atomic",
        r#"Post a `fetch_atomic`, triggered when a counter has reached a threshold (`PtlTriggeredFetchAtomic`)."#,
    ),
    (
        "triggered_swap",
        r#"Post a swap that the card starts when a counter has reached a threshold (`PtlTriggeredSwap`)."#,
    ),
];

/// The arguments of appends and searches that describe an entry: the name in the table, and the name in Python.
const ENTRY: [(&str, &str); 4] =
    [("start", "buffer"), ("length", ""), ("match_id", "source"), ("op", "delete")];

pub fn operations() -> String {
    let mut text = HEAD.to_owned();
    for (name, doc) in OPERATIONS {
        text += &operation(name, doc);
    }
    for name in ["me_append", "me_search"] {
        text += &entry(name);
    }
    text
}

fn call(name: &str) -> &'static Call {
    CALLS.iter().find(|call| call.name.eq_ignore_ascii_case(name)).expect("a call of the table")
}

/// Returns the Python method of an operation.
fn operation(name: &str, doc: &str) -> String {
    let native = name.trim_start_matches("triggered_");
    let has = |field: &str| native != name || !TRIGGER.contains(&field);
    let call = call(native);
    let mut text = format!("\n    def {name}(\n        self,\n");
    for Parameter(field, named, kind, default) in PARAMETERS {
        if named.is_empty() || !has(field) || call.fields.iter().all(|own| own.name != field) {
            continue;
        }
        let default = default.map_or(String::new(), |default| format!(" = {default}"));
        writeln!(text, "        {named}: {kind}{default},").unwrap();
        if named == "length_bytes" {
            text += "        *,\n";
        }
    }
    let doc = doc.replace('\n', "\n        ").replace("\n        \n", "\n\n");
    let end = if doc.contains('\n') { "\n        " } else { "" };
    write!(text, "    ) -> Awaitable[None]:\n        \"\"\"{doc}{end}\"\"\"\n").unwrap();
    if call.fields.iter().any(|field| field.name == "operation") {
        text += "        operator, datatype = item_operator(operator, datatype)\n";
    }
    text += "        asked = (\n";
    // The words of the trigger are the last ones, so an operation without a trigger leaves them out.
    for field in call.fields.iter().filter(|field| has(field.name)) {
        let Parameter(_, named, ..) =
            PARAMETERS.iter().find(|known| known.0 == field.name).expect("a parameter");
        let value = match *named {
            "operand" => "operand_bytes(operand)",
            "" => "None",
            named => named,
        };
        writeln!(text, "            {value},").unwrap();
    }
    write!(text, "        )\n        return self._portals.{native}(asked)\n").unwrap();
    text
}

/// Returns a function that takes the arguments of an entry, in the order of the table.
fn entry(name: &str) -> String {
    let call = call(name);
    let named =
        |field: &'static str| ENTRY.iter().find(|(own, _)| *own == field).map_or(field, |(_, named)| *named);
    let mut text = format!("\n\ndef {name}(\n    *,\n");
    for field in call.fields.iter().map(|field| named(field.name)).filter(|field| !field.is_empty()) {
        let lint = if field == "list" { "  # noqa: A002, the name in the specification" } else { "" };
        let default = DEFAULTS.iter().find(|(own, _)| *own == field).map_or("", |(_, default)| default);
        writeln!(text, "    {field}: Any{default},{lint}").unwrap();
    }
    write!(text, "):\n    \"\"\"The arguments of `{name}`, in their order.\"\"\"\n    return (\n").unwrap();
    text = text.replace("\n):\n", "\n) -> tuple[Any, ...]:\n");
    for field in call.fields {
        let value = named(field.name);
        writeln!(text, "        {},", if value.is_empty() { "None" } else { value }).unwrap();
    }
    text + "    )\n"
}

/// Defaults of arguments of an entry. List entries and searches do not have these arguments.
const DEFAULTS: [(&str, &str); 6] = [
    ("buffer", " = None"),
    ("match_bits", " = 0"),
    ("ignore_bits", " = 0"),
    ("min_free", " = 0"),
    ("source", " = None"),
    ("handlers", " = None"),
];
