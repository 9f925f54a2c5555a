//! Reads arguments of Portals calls from a tuple. The order of arguments is that in the table of calls.

macro_rules! orders {
    (
        outcomes: { $($_outcomes:tt)* }
        calls: { $($op:ident $_call:ident { $($field:ident: $_kind:ident),* } -> $_told:ident [$($_functions:tt)*];)* }
    ) => {
        $(
            #[allow(dead_code, reason = "Python passes several arguments of few calls together")]
            pub const $op: &[&str] = &[$(stringify!($field)),*];
        )*
    };
}

nicety::portals_calls!(orders);

/// Returns the index of an argument in the tuple.
pub const fn place(order: &[&str], name: &str) -> usize {
    let mut at = 0;
    while !is_same(order[at].as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Reads an argument from the tuple of a call.
macro_rules! argument {
    ($asked:ident, $CALL:ident.$field:ident, $read:expr) => {
        argument!($asked, $CALL.$field, $read, stringify!($field))
    };
    ($asked:ident, $CALL:ident.$field:ident, $read:expr, $name:expr) => {
        $read(&*$asked.get_borrowed_item(const { order::place(order::$CALL, stringify!($field)) })?, $name)?
    };
}
pub(super) use argument;
