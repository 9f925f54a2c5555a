//! Figures of a program after a run.

use crate::loaded::Counts;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The verdicts and maps of an XDP program on a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XdpFigures {
    /// The program.
    pub program: String,
    /// Instructions of eBPF, with those of its functions.
    pub ebpf_instructions: u64,
    /// Code and constants in the card's program memory, with the runtime.
    pub code_bytes: u64,
    /// Bytes of each map and data section in the card's memory. A section of constants takes none there.
    pub map_bytes: BTreeMap<String, u64>,
    /// Frames by verdict, in the first run.
    pub verdicts: BTreeMap<String, u64>,
    /// Frames with a result that is no verdict. Like those with `XDP_ABORTED`, the card drops them.
    pub invalid: u64,
    /// Frames with `XDP_REDIRECT` that had no destination.
    pub redirects_failed: u64,
    /// Frames that the program made longer than the card sends. The card drops them.
    pub too_long: u64,
    /// Updates that found a map full, by map. Maps without any are left out.
    pub updates_full: BTreeMap<String, u64>,
}

/// Frames by verdict, of the frames by destination and the counters of the runtime.
pub(crate) fn verdicts(returned: &BTreeMap<String, u64>, counts: &Counts) -> BTreeMap<String, u64> {
    let of = |name: &str| returned.get(name).copied().unwrap_or(0);
    let Counts { aborted, invalid, to_wire, to_queue, failed, too_long } = *counts;
    let [aborted, invalid, to_wire, to_queue, failed, too_long] =
        [aborted, invalid, to_wire, to_queue, failed, too_long].map(u64::from);
    let all = [
        ("XDP_ABORTED", aborted),
        ("XDP_DROP", of("DROP").saturating_sub(aborted + invalid + failed + too_long)),
        ("XDP_PASS", of("HOST")),
        ("XDP_TX", of("WIRE").saturating_sub(to_wire)),
        ("XDP_REDIRECT", to_wire + to_queue + failed),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_has_one_verdict() {
        let returned = [("DROP", 20), ("HOST", 5), ("WIRE", 7)].map(|(name, count)| (name.to_owned(), count));
        let counts = Counts { aborted: 1, invalid: 2, to_wire: 3, failed: 4, ..Counts::default() };
        let found = verdicts(&returned.into(), &counts);
        let expected =
            [("XDP_ABORTED", 1), ("XDP_DROP", 13), ("XDP_PASS", 5), ("XDP_REDIRECT", 7), ("XDP_TX", 4)];
        assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }
}
