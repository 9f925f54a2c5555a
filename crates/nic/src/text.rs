//! Text helpers for the notes of several designs.

/// Most items of a kind that are listed.
pub(crate) const LISTED: usize = 8;

/// A count with its noun.
pub(crate) fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
