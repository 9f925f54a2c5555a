//! Text helpers for the notes of several designs.

/// Most items of a kind that are listed.
pub(crate) const LISTED: usize = 8;

/// Sends to a rank that has no room for more messages of theirs.
pub(crate) struct HeldUp {
    pub(crate) to: u32,
    /// The pair of processes, where hosts have several.
    pub(crate) pair: Option<u32>,
    pub(crate) sends: u64,
    /// The messages for which there is room.
    pub(crate) window: u64,
}

impl HeldUp {
    /// What they wait for; by which key of the spec, if one says how many.
    pub(crate) fn text(&self, key: Option<&str>) -> String {
        let HeldUp { to, pair, sends, window } = self;
        let (sends, verb) = (counted(*sends, "send"), if *sends == 1 { "waits" } else { "wait" });
        let pair = pair.map_or(String::new(), |pair| format!(", pair {pair},"));
        let key = key.map_or(String::new(), |key| format!(" ({key})"));
        format!(
            "{sends} to rank {to}{pair} {verb}: there are {window} messages from here, which is all that there is room for before receives take them{key}"
        )
    }
}

/// A count with its noun.
pub(crate) fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
