//! An eBPF object in a request: its program, its maps, and its place in a host's driver.

use nicety_nic_ethernet::XdpMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The place of a program in the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Mode {
    /// Before the kernel's packet buffer.
    #[default]
    Native,
    /// Behind it.
    Generic,
}

impl From<Mode> for XdpMode {
    fn from(mode: Mode) -> XdpMode {
        match mode {
            Mode::Native => XdpMode::Native,
            Mode::Generic => XdpMode::Generic,
        }
    }
}

/// Entries of a map.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MapEntries")]
pub struct Entries {
    /// The map.
    pub map: String,
    /// Its entries as JSON, as bpftool prints them.
    pub json: String,
}

/// The program of an object for each card of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "XdpObject")]
pub struct XdpObject {
    /// The program, where the object has several.
    pub program: Option<String>,
    /// Entries of maps before each run.
    pub maps: Vec<Entries>,
    /// Maps with their entries in the report of a driver, after the run at the offered rate.
    pub dumps: Vec<String>,
}
