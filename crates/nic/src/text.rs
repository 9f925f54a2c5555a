//! Text helpers for the notes of several designs.

/// Most items of a kind that are listed.
pub(crate) const LISTED: usize = 8;

/// What sends to a rank wait for that has no room for more messages of theirs; of which key of the spec, if one says how many.
pub(crate) fn held_up(to: u32, sends: u64, window: u64, key: Option<&str>) -> String {
    let (sends, verb) = (counted(sends, "send"), if sends == 1 { "waits" } else { "wait" });
    let key = key.map_or(String::new(), |key| format!(" ({key})"));
    format!(
        "{sends} to rank {to} {verb}: there are {window} messages from here, which is all that there is room for before receives take them{key}"
    )
}

/// A count with its noun.
pub(crate) fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
