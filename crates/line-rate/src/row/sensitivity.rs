//! The sensitive values of a card's spec in a row.

use crate::part::Part;
use crate::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

/// The assumed values of a card's spec to which a verdict is most sensitive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Sensitivity")]
pub struct SensitivityRow {
    /// The most sensitive first, at most three: those that change the verdict, and then by the change of the sustainable rate.
    /// Empty if none matters.
    pub values: Vec<SensitiveRow>,
    /// Assumed values that were changed.
    pub varied: u64,
    /// Values of `varied` that could be changed in one direction only, or with which the handlers ran in at most one direction.
    pub varied_one_way: u64,
    /// Assumed values that were not changed, by their keys: they are zero, or not numbers.
    pub not_varied: Vec<String>,
    /// Values with which the handlers do not run, or the card is impossible.
    pub stopped: Vec<StoppedRow>,
}

/// An assumed value to which a verdict is sensitive.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SensitiveValue")]
pub struct SensitiveRow {
    /// Its key in the spec.
    pub key: String,
    /// The value.
    pub value: String,
    /// The reason for the assumption, from the spec.
    pub source: String,
    /// The result with half the value; none if that is impossible, or the handlers do not run.
    pub halved: Option<VariedRow>,
    /// The result with twice the value; none if that is impossible, or the handlers do not run.
    pub doubled: Option<VariedRow>,
}

/// A check with one changed value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "VariedValue")]
pub struct VariedRow {
    /// The value set.
    pub value: String,
    /// The verdict with it.
    pub verdict: Verdict,
    /// The limiting part with it.
    pub bottleneck: Part,
    /// The sustainable rate over the line rate.
    pub capacity_fraction: f64,
    /// The sustainable rate in packets per second, since the line rate may have changed.
    pub capacity_packets_per_s: f64,
}

/// A value with which handlers do not run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "StoppedValue")]
pub struct StoppedRow {
    /// Its key in the spec.
    pub key: String,
    /// The value set.
    pub value: String,
    /// The error.
    pub error: String,
}
