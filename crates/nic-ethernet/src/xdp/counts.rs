//! Counters of XDP in a host's driver.

use super::attached::{Ran, Verdict};
use nicety_ebpf::{Aborted, Calls};
use schemars::JsonSchema;
use serde::Serialize;

/// Counters of XDP programs in a host's driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "XdpReport")]
pub struct XdpReport {
    /// Frames on which a program ran.
    pub frames: u64,
    /// `XDP_PASS`: frames to the protocols.
    pub passed: u64,
    /// `XDP_DROP`.
    pub dropped: u64,
    /// `XDP_TX`: frames out of the port that they came from.
    pub transmitted: u64,
    /// `XDP_REDIRECT`.
    pub redirected: u64,
    /// `XDP_ABORTED`, and numbers that are no verdict.
    pub aborted: u64,
    /// Of those, numbers that are no verdict.
    pub invalid: u64,
    /// Frames with `XDP_ABORTED`, by program and line.
    pub aborted_at: Vec<Aborted>,
    /// Programs that trapped.
    pub trapped: u64,
    /// Frames to send that found the transmit ring full, and were dropped.
    pub transmit_full: u64,
    /// Redirected frames with a destination that does not exist, which were dropped.
    pub unreachable: u64,
    /// Redirected frames that found the queue of a CPU or of a socket full, and were dropped.
    pub queue_full: u64,
    /// Runs of programs of device maps and CPU maps.
    pub second: u64,
    /// Frames that these programs dropped: any verdict but `XDP_PASS`, and on a CPU `XDP_REDIRECT`.
    pub second_dropped: u64,
    /// Instructions of eBPF.
    pub instructions: u64,
    /// Calls of helpers.
    pub helper_calls: u64,
    /// Of those, calls that find, add or remove an entry of a map.
    pub map_calls: u64,
    /// Helpers that the kernel writes into the program.
    pub inlined_calls: u64,
}

/// The counters while they grow.
pub(crate) type Counts = XdpReport;

impl Counts {
    /// Counts a run.
    pub(super) fn add(&mut self, ran: &Ran) {
        self.frames += 1;
        match &ran.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Drop => self.dropped += 1,
            Verdict::Transmit => self.transmitted += 1,
            Verdict::Redirect(_) => self.redirected += 1,
            Verdict::Aborted { at } => {
                self.aborted += 1;
                match at {
                    Some(site) => Aborted::add(&mut self.aborted_at, site, 1),
                    None => self.invalid += 1,
                }
            }
            Verdict::Trapped(_) => self.trapped += 1,
        }
        self.add_work(ran.instructions, ran.calls);
    }

    /// Counts a run behind a redirect. The frame already has its verdict.
    pub(super) fn add_second(&mut self, verdict: &Verdict, (instructions, calls): (u64, Calls)) {
        self.second += 1;
        match verdict {
            Verdict::Aborted { at: Some(site) } => Aborted::add(&mut self.aborted_at, site, 1),
            Verdict::Trapped(_) => self.trapped += 1,
            _ => {}
        }
        self.add_work(instructions, calls);
    }

    fn add_work(&mut self, instructions: u64, calls: Calls) {
        self.instructions += instructions;
        self.helper_calls += calls.plain;
        self.map_calls += calls.maps;
        self.inlined_calls += calls.inlined;
    }
}
