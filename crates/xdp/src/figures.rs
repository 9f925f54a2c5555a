//! Figures of a program after a run.

use crate::loaded::Counts;
use nicety_ebpf::Aborted;
use nicety_ebpf::translate::Translation;
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
    /// Frames with `XDP_ABORTED`, by program and line.
    pub aborted_at: Vec<Aborted>,
    /// Frames with a result that is no verdict. Like those with `XDP_ABORTED`, the card drops them.
    pub invalid: u64,
    /// Frames with `XDP_REDIRECT` that had no destination.
    pub redirects_failed: u64,
    /// Frames that the program made longer than the card sends. The card drops them.
    pub too_long: u64,
    /// Updates that found a map full, by map. Maps without any are left out.
    pub updates_full: BTreeMap<String, u64>,
}

/// The frames with `XDP_ABORTED` at each place, of the counters of a translation and of all frames with that verdict.
pub(crate) fn aborted(translation: &Translation, counters: &[u32], all: u32) -> Vec<Aborted> {
    let rest = u64::from(all).saturating_sub(counters.iter().copied().map(u64::from).sum());
    let mut found = Vec::new();
    for (number, site) in translation.sites.iter().enumerate() {
        let own = counters.get(number).copied().unwrap_or_default();
        let without = if translation.rest == Some(number) { rest } else { 0 };
        let frames = u64::from(own) + without;
        if frames > 0 {
            Aborted::add(&mut found, site, frames);
        }
    }
    found.sort_by_key(|each| std::cmp::Reverse(each.frames));
    found
}

/// The result of handlers without destinations, those of PsPIN.
const NO_DESTINATION: &str = "SUCCESS";

/// Frames by verdict, of the frames by destination and the counters of the runtime.
pub(crate) fn verdicts(returned: &BTreeMap<String, u64>, counts: &Counts) -> BTreeMap<String, u64> {
    let of = |name: &str| returned.get(name).copied().unwrap_or(0);
    let Counts { aborted, invalid, to_wire, to_queue, failed, too_long, passed, sent } = *counts;
    let [aborted, invalid, to_wire, to_queue, failed, too_long, passed, sent] =
        [aborted, invalid, to_wire, to_queue, failed, too_long, passed, sent].map(u64::from);
    let (dropped, to_host, transmitted) = match returned.get(NO_DESTINATION) {
        // Commands have carried out the other verdicts.
        Some(&all) => (all.saturating_sub(passed + sent + to_wire + to_queue), passed, sent),
        None => (of("DROP"), of("HOST"), of("WIRE").saturating_sub(to_wire)),
    };
    let all = [
        ("XDP_ABORTED", aborted),
        ("XDP_DROP", dropped.saturating_sub(aborted + invalid + failed + too_long)),
        ("XDP_PASS", to_host),
        ("XDP_TX", transmitted),
        ("XDP_REDIRECT", to_wire + to_queue + failed),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_ebpf::Site;

    #[test]
    fn each_frame_has_one_verdict() {
        let returned = [("DROP", 20), ("HOST", 5), ("WIRE", 7)].map(|(name, count)| (name.to_owned(), count));
        let counts = Counts { aborted: 1, invalid: 2, to_wire: 3, failed: 4, ..Counts::default() };
        let found = verdicts(&returned.into(), &counts);
        let expected =
            [("XDP_ABORTED", 1), ("XDP_DROP", 13), ("XDP_PASS", 5), ("XDP_REDIRECT", 7), ("XDP_TX", 4)];
        assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }

    #[test]
    fn a_place_without_a_counter_has_the_other_frames() {
        let site = |place: &str| Site { program: "p".to_owned(), place: place.to_owned() };
        let translation = Translation {
            sites: vec![site("a.c:1"), site("a.c:2"), site("a.c:3")],
            rest: Some(2),
            ..Translation::default()
        };
        let found = aborted(&translation, &[1, 0, 0], 5);
        let rows: Vec<(&str, u64)> = found.iter().map(|each| (each.place.as_str(), each.frames)).collect();
        assert_eq!(rows, [("a.c:3", 4), ("a.c:1", 1)]);
        let counted = Translation { rest: None, ..translation };
        assert_eq!(aborted(&counted, &[0, 0, 2], 2).len(), 1);
        assert_eq!(aborted(&counted, &[], 0), []);
    }

    #[test]
    fn counters_tell_the_verdicts_of_handlers_without_destinations() {
        let counts = Counts {
            aborted: 1,
            invalid: 2,
            to_wire: 3,
            failed: 4,
            to_queue: 5,
            passed: 6,
            sent: 7,
            too_long: 0,
        };
        let found = verdicts(&[("SUCCESS".to_owned(), 30)].into(), &counts);
        let expected =
            [("XDP_ABORTED", 1), ("XDP_DROP", 2), ("XDP_PASS", 6), ("XDP_REDIRECT", 12), ("XDP_TX", 7)];
        assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }
}
