//! Text helpers for the notes of several designs.

/// Maximum number of items in a list of one kind.
pub const LISTED: usize = 8;

/// Sends that wait because the receiving rank has no room for more messages of this sender.
pub struct BlockedSends {
    /// The receiving rank.
    pub to: u32,
    /// The pair of processes, if hosts have several.
    pub pair: Option<u32>,
    /// Number of sends that wait.
    pub sends: u64,
    /// Size of the window in messages.
    pub window: u64,
}

impl BlockedSends {
    /// Describes the wait in a sentence. `key` is the spec key of the window, if there is such a key.
    pub fn text(&self, key: Option<&str>) -> String {
        let BlockedSends { to, pair, sends, window } = self;
        let (sends, verb) = (counted(*sends, "send"), if *sends == 1 { "waits" } else { "wait" });
        let pair = pair.map_or(String::new(), |pair| format!(", pair {pair},"));
        let key = key.map_or(String::new(), |key| format!(" ({key})"));
        format!(
            "{sends} to rank {to}{pair} {verb}: that rank holds {window} messages from this rank without a receive, and has no room for more{key}"
        )
    }
}

/// Returns notes on a deadlock, one for each fact at its rank. Each note begins with a line break.
pub fn at_ranks(facts: &[(u32, String)]) -> String {
    let line = |(rank, text): &(u32, String)| format!("\n  note: at rank {rank}, {text}");
    let mut text: String = facts.iter().take(LISTED).map(line).collect();
    if let more @ 1.. = facts.len().saturating_sub(LISTED) {
        text += &format!("\n  note: and {more} more notes of this kind");
    }
    text
}

/// Returns a count with its noun.
pub fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
