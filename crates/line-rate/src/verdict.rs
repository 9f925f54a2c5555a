//! The verdict of a line-rate check, and the load of a part of the card.

use super::part::Part;
use schemars::JsonSchema;
use serde::Serialize;

/// The load from which on a card barely keeps up. Packets in bursts, or a value of the spec that is off by a tenth, may then
/// overload it.
pub(super) const BARELY: f64 = 0.9;

/// Whether a card sustains the line rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Verdict {
    /// Yes: no part of the card has a load of 90 % or more.
    Yes,
    /// Yes, but a part has a load between 90 and 100 %.
    Barely,
    /// Yes or barely, but handlers share words without a model of contention on the card.
    #[serde(rename = "not judged")]
    NotJudged,
    /// No.
    #[default]
    No,
}

/// A part of a card at the line rate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CardPart")]
pub struct PartRow {
    /// The part.
    pub part: Part,
    /// The name among several: a lock's word and the line that acquires it, a memory's bank, the level behind the caches, or a
    /// cluster. Also the key of the spec with the number of places, or a CPU of the host.
    pub name: Option<String>,
    /// Its load: the fraction of its capacity that packets at the line rate need.
    pub load: f64,
    /// Its free capacity, as a fraction; negative if capacity is missing.
    pub headroom: f64,
    /// The sustainable rate of the part, over the line rate; none if packets do not use it.
    pub capacity_fraction: Option<f64>,
}

impl PartRow {
    pub(super) fn new(part: Part, name: Option<String>, load: f64) -> PartRow {
        PartRow {
            part,
            name,
            load,
            headroom: 1.0 - load,
            capacity_fraction: (load > 0.0).then(|| 1.0 / load),
        }
    }
}
