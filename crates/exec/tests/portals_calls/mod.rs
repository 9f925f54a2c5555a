//! Files generated from the table of Portals calls: C for processes, and Python.
//!
//! `NICETY_WRITE=1 cargo test -p nicety-exec --test all -- portals_calls` rewrites them.

mod c;
mod python;

use std::path::Path;

struct Outcome {
    name: &'static str,
    words: &'static [&'static str],
}

struct Call {
    name: &'static str,
    fields: &'static [Field],
    outcome: &'static str,
    functions: &'static [Function],
}

struct Field {
    name: &'static str,
    kind: &'static str,
}

/// A function of `portals4.h` that only makes a call.
struct Function {
    name: &'static str,
    /// The check of the interface: `ni`, `open`, or none.
    first: &'static str,
    /// The name and type of the result, if the function has one.
    result: Option<(&'static str, &'static str)>,
    /// The arguments with constant values.
    own: &'static [(&'static str, &'static str)],
}

macro_rules! table {
    (
        outcomes: { $($outcome:ident { $($word:ident),* })* }
        calls: { $($call:ident $_name:ident { $($field:ident: $kind:ident),* } -> $told:ident [$(
            $function:ident($($first:ident)?) $(-> $result:ident: $type:ident)? $({ $($own:ident: $value:tt),* })?
        ),*];)* }
    ) => {
        const OUTCOMES: &[Outcome] =
            &[$(Outcome { name: stringify!($outcome), words: &[$(stringify!($word)),*] }),*];
        const CALLS: &[Call] = &[$(Call {
            name: stringify!($call),
            fields: &[$(Field { name: stringify!($field), kind: stringify!($kind) }),*],
            outcome: stringify!($told),
            functions: &[$(Function {
                name: stringify!($function),
                first: concat!($(stringify!($first))?),
                result: [$((stringify!($result), stringify!($type)))?].first().copied(),
                own: &[$($((stringify!($own), stringify!($value))),*)?],
            }),*],
        }),*];
    };
}

nicety::portals_calls!(table);

#[test]
fn files_are_those_of_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, made) in [
        ("shim/generated/portals_calls.h", c::header()),
        ("shim/generated/portals_calls.c", c::functions()),
        ("python/nicety/_generated/operations.py", python::operations()),
    ] {
        let path = root.join(name);
        if std::env::var_os("NICETY_WRITE").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).unwrap_or_default() == made,
            "{name} is not current; write it by NICETY_WRITE=1 cargo test -p nicety-exec --test all -- portals_calls"
        );
    }
}
