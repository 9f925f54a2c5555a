//! The spec of a card.

use nicety_ebpf::lanes::{MOST_LANES, Switches};
use nicety_ebpf::{Helper, MapKind};
use nicety_nic_core::{NodeSpec, read_node};
use nicety_spec::{Reader, Section};
use nicety_types::Frequency;

/// Helpers that a card may have, with their keys in `[helpers]`.
pub const HELPERS: [(Helper, &str); 12] = [
    (Helper::MapLookup, "map_lookup_elem"),
    (Helper::MapUpdate, "map_update_elem"),
    (Helper::MapDelete, "map_delete_elem"),
    (Helper::KtimeGet, "ktime_get_ns"),
    (Helper::Random, "get_prandom_u32"),
    (Helper::Cpu, "get_smp_processor_id"),
    (Helper::Redirect, "redirect"),
    (Helper::CsumDiff, "csum_diff"),
    (Helper::AdjustHead, "xdp_adjust_head"),
    (Helper::RedirectMap, "redirect_map"),
    (Helper::AdjustTail, "xdp_adjust_tail"),
    (Helper::AdjustMeta, "xdp_adjust_meta"),
];

/// Types of maps that a card may have, with their keys in `[maps]`.
pub const MAPS: [(MapKind, &str); 8] = [
    (MapKind::Array, "array"),
    (MapKind::Hash, "hash"),
    (MapKind::PerCpuArray, "percpu_array"),
    (MapKind::PerCpuHash, "percpu_hash"),
    (MapKind::LruHash, "lru_hash"),
    (MapKind::Lpm, "lpm_trie"),
    (MapKind::Devices, "devmap"),
    (MapKind::DeviceHash, "devmap_hash"),
];

/// The core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSpec {
    /// The clock of all parts.
    pub clock: Frequency,
    /// The steps of the schedule, with the number of lanes.
    pub switches: Switches,
    /// Rows of the instruction memory.
    pub rows: u64,
    /// Cycles from the last row to the end of a program without an early exit.
    pub drain: u64,
    /// Cycles that a taken jump adds.
    pub taken: u64,
}

/// The transfer of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferSpec {
    /// Bytes a cycle.
    pub width: u64,
    /// Cycles with bytes before the core starts.
    pub start: u64,
    /// Cycles from the end of a frame until the next one goes into the buffer.
    pub handover: u64,
    /// Cycles of the emission beside those of its bytes.
    pub emission: u64,
}

/// The spec of a card.
#[derive(Clone, Debug)]
pub struct HxdpSpec {
    /// Host and network.
    pub node: NodeSpec,
    /// The core.
    pub core: CoreSpec,
    /// The transfer of frames.
    pub transfer: TransferSpec,
    /// Cycles of each helper beside its row, in the order of [`HELPERS`]; none where the card lacks it.
    pub helpers: [Option<u64>; HELPERS.len()],
    /// Whether the card has each type of map, in the order of [`MAPS`].
    pub maps: [bool; MAPS.len()],
    /// Bytes of a key that an access of a map takes at once. Further bytes take further cycles.
    pub key: u64,
    /// Bytes of all maps.
    pub memory: u64,
    /// The longest frame, without its check sequence.
    pub longest: u64,
}

impl HxdpSpec {
    /// Cycles of a helper beside its row; none where the card lacks it.
    pub fn helper(&self, number: u32) -> Option<u64> {
        let at = HELPERS.iter().position(|(helper, _)| *helper as u32 == number)?;
        self.helpers[at]
    }

    /// Whether the card has a type of map.
    pub fn has_map(&self, kind: u32) -> bool {
        MAPS.iter().position(|(known, _)| *known as u32 == kind).is_some_and(|at| self.maps[at])
    }
}

/// The most cycles of a part.
const MOST_CYCLES: u64 = 10_000;

pub(crate) fn read(reader: &Reader<'_>) -> HxdpSpec {
    let transfer = reader.section("transfer");
    let maps = reader.section("maps");
    let helpers = reader.section("helpers");
    let helper = |(_, key): (Helper, &str)| {
        let doc = "cycles in addition to its row; a card without this key lacks the helper";
        helpers.has(key).then(|| helpers.count(key, 0..=MOST_CYCLES, doc))
    };
    let map = |(_, key): (MapKind, &str)| maps.flag_or(key, false, "whether the card has maps of this type");
    HxdpSpec {
        node: read_node(reader),
        core: read_core(&reader.section("core"), &reader.section("compiler")),
        transfer: TransferSpec {
            width: transfer.size("width", 1..=4096, "bytes of a frame in a cycle"),
            start: transfer.count("start", 0..=MOST_CYCLES, "cycles with bytes before the core starts"),
            handover: transfer.count(
                "handover",
                0..=MOST_CYCLES,
                "cycles from the end of a frame until the next one goes into the buffer",
            ),
            emission: transfer.count(
                "emission",
                0..=MOST_CYCLES,
                "cycles of the emission of a frame in addition to those of its bytes",
            ),
        },
        helpers: HELPERS.map(helper),
        maps: MAPS.map(map),
        key: maps.size("key", 1..=4096, "bytes of a key that an access takes at once"),
        memory: maps.size("memory", 0..=1 << 40, "bytes of all maps"),
        longest: reader.section("frames").size(
            "longest",
            14..=65_536,
            "the longest frame, without its check sequence",
        ),
    }
}

fn read_core(core: &Section<'_>, compiler: &Section<'_>) -> CoreSpec {
    let lanes = core.count("lanes", 1..=u64::from(MOST_LANES), "operations of a row") as u8;
    let branches =
        core.choice("branches", &["any", "first"], "lanes for jumps: any, several in a row; or the first");
    let forwarding = core.choice(
        "forwarding",
        &["lane", "all"],
        "lanes that can use a result in the next row: only its own lane, or all",
    );
    CoreSpec {
        clock: core.frequency("clock", "clock of core, transfer and helpers"),
        switches: Switches {
            lanes,
            branches_in_any_lane: branches == "any",
            lane_forwarding: forwarding == "lane",
            remove_checks: compiler
                .flag("checks", "whether comparisons with data_end become checks of the core"),
            remove_zeroing: compiler.flag("zeroing", "whether zeroing of registers and stack is left out"),
            three_operands: compiler
                .flag("three_operands", "whether a move is merged with the arithmetic after it"),
            six_bytes: compiler
                .flag("six_bytes", "whether copies of six bytes become one load and one store"),
            exit_values: compiler.flag(
                "exit_values",
                "whether a constant result is merged with the exit, which then ends the program early",
            ),
            movement: compiler.flag("movement", "whether operations fill gaps of earlier blocks"),
        },
        rows: core.count("rows", 1..=1 << 20, "rows of the instruction memory"),
        drain: core.count("drain", 0..=MOST_CYCLES, "cycles after the last row without an early exit"),
        taken: core.count("taken", 0..=MOST_CYCLES, "cycles that a taken jump adds"),
    }
}
