//! The request for a program on a card.

use nicety_ebpf::card::CardValues;
use nicety_ebpf::translate::Offload;
use serde::Deserialize;

/// A program of an object, its card, and the contents of its maps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The program's name, where the object has several.
    pub program: Option<String>,
    /// The instruction set of the card's cores.
    pub isa: String,
    /// Whether the cores make misaligned accesses.
    pub misaligned: bool,
    /// Cores of a cluster, where `mhartid` has the cluster above five bits of the core.
    #[serde(default)]
    pub cluster: Option<u32>,
    /// Cores.
    pub cpus: u32,
    /// Bytes of headroom before a frame.
    pub headroom: u32,
    /// Bytes of the longest frame that the card sends.
    pub longest: u32,
    /// Receive channels of the host.
    pub queues: u32,
    /// Picoseconds of a cycle.
    pub cycle_ps: u32,
    /// Bytes of memory for maps and data.
    pub memory: u64,
    /// Whether handlers of the card get frames and return their destinations.
    #[serde(default)]
    pub frames: bool,
    /// The limits of the firmware of a network flow processor; none on other cards.
    #[serde(default)]
    pub offload: Option<Offload>,
    /// Whether the program is checked while it runs, since Linux's verifier would refuse it.
    #[serde(default)]
    pub unverified: bool,
    /// Whether a program passes that the verifier refuses for certain, without checks: another tool looks for its errors.
    #[serde(default)]
    pub lenient: bool,
    /// Names of maps, and their entries as JSON.
    pub maps: Vec<(String, String)>,
}

impl Request {
    pub(crate) fn card(&self) -> CardValues {
        let Request { cpus, headroom, longest, queues, cycle_ps, memory, unverified, .. } = *self;
        let table = self.offload.is_some();
        CardValues { cpus, headroom, longest, queues, cycle_ps, memory, unverified, table }
    }
}
