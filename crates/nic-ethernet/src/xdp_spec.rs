//! The spec of XDP in the host's driver: the CPU's work for a frame and for a program.

use crate::driver_spec::instructions;
use nicety_ebpf::Calls;
use nicety_spec::{Ratio, Section};

/// The largest number of host instructions for one of eBPF.
const MOST_RATIO: Ratio = Ratio::whole(1000);

/// The work of XDP, in instructions of the host unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub struct XdpSpec {
    /// A frame that ends in the driver: its descriptor, its buffer, and the buffer's return.
    pub frame: u64,
    /// The start of a program and the look at its verdict.
    pub run: u64,
    /// An instruction of eBPF.
    pub instruction: Ratio,
    /// A call of a helper.
    pub helper: u64,
    /// A helper that the kernel writes into the program.
    pub inlined: u64,
    /// An entry of a map that a helper finds, adds or removes, in addition to its call.
    pub map_lookup: u64,
    /// A frame to send, by `XDP_TX` or to a port.
    pub transmit: u64,
    /// A redirected frame, before it is sent or queued.
    pub redirect: u64,
    /// A frame to a socket of AF_XDP, besides a copy.
    pub socket: u64,
    /// Whether receive rings can have buffers of such sockets.
    pub zero_copy: bool,
}

impl XdpSpec {
    /// The work of a program that has run.
    pub(super) fn program(&self, instructions: u64, calls: Calls) -> u64 {
        let own = u128::from(instructions) * u128::from(self.instruction.numerator());
        let own = own.div_ceil(u128::from(self.instruction.denominator()));
        let helpers = calls.plain * self.helper + calls.inlined * self.inlined + calls.maps * self.map_lookup;
        self.run + helpers + u64::try_from(own).unwrap_or(u64::MAX / 2)
    }
}

/// Reads the spec, if the section has it.
pub(super) fn read_xdp(s: &Section<'_>) -> Option<XdpSpec> {
    s.has("frame").then(|| XdpSpec {
        frame: instructions(
            s,
            "frame",
            "a frame that ends in the driver: descriptor, buffer, and its return",
        ),
        run: instructions(s, "run", "starting a program, and acting on its verdict"),
        instruction: s.ratio(
            "instruction",
            Ratio::ZERO..=MOST_RATIO,
            "instructions of the host that take as long as one of eBPF",
        ),
        helper: instructions(s, "helper", "a call of a helper"),
        inlined: instructions(
            s,
            "inlined",
            "a helper that the kernel writes into the program, as lookups in arrays",
        ),
        map_lookup: instructions(
            s,
            "map_lookup",
            "an entry of a map that a helper finds, adds or removes, in addition to its call",
        ),
        transmit: instructions(s, "transmit", "a frame to send by XDP_TX or to a port"),
        redirect: instructions(s, "redirect", "a redirected frame, before it is sent or queued"),
        socket: instructions(
            s,
            "socket",
            "a frame to an AF_XDP socket, in place of redirect; a copy counts in addition",
        ),
        zero_copy: s.flag("zero_copy", "whether receive rings can have buffers of AF_XDP sockets"),
    })
}
