//! Words of texts that several designs' notes have.

/// Most things of a kind that are told one by one.
pub(crate) const LISTED: usize = 8;

/// So many of something.
pub(crate) fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
