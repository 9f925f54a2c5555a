//! The memory of a switch without credits. It admits packets, and decides when to pause senders.
//!
//! Without pauses, a packet occupies the memory of its output. Each output has its own memory or a share of a common
//! memory. The share is at most a multiple of the free memory. So a single busy output gets much of the common memory,
//! and some memory always stays free for other outputs.
//!
//! With pauses, a packet occupies the memory of its input, because a pause stops the sender of an input. Each input has
//! its own memory or a share of a common memory. It also has headroom for packets that arrive after the pause was sent.

use super::{Pausing, Per, Plan};

/// The reason to refuse a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The output's queue or the shared memory is full.
    Full,
    /// The input's headroom is used up.
    NoHeadroom,
}

/// The memory of a switch.
pub(super) struct Memory {
    plan: Plan,
    /// Size in bytes of the memory that all ports share.
    shared: u64,
    used: u64,
    /// By output: occupancy by packets that wait for the output.
    outputs: Vec<Use>,
    /// By input: occupancy by packets that arrived at the input.
    inputs: Vec<Use>,
}

/// Occupancy by a port.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    bytes: u64,
    peak: u64,
    /// Number of these bytes that are in the headroom, with shared memory.
    beyond: u64,
}

impl Use {
    fn take(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.peak = self.peak.max(self.bytes);
    }
}

impl Memory {
    /// Returns the empty memory of a switch with this number of ports.
    pub(super) fn new(plan: Plan, ports: usize) -> Memory {
        let reserved = plan.pause.map_or(0, |pause| pause.headroom * ports as u64);
        let shared = match plan.per {
            Per::Port => 0,
            Per::Shared => plan.size - reserved,
        };
        let none = vec![Use::default(); ports];
        Memory { plan, shared, used: 0, outputs: none.clone(), inputs: none }
    }

    /// Admits a packet of this size, if there is room.
    pub(super) fn admit(&mut self, from: usize, to: usize, bytes: u64) -> Result<(), Refusal> {
        let Memory { plan, shared, used, outputs, inputs } = self;
        let free = *shared - *used;
        match (plan.pause, plan.per) {
            (None, Per::Port) if outputs[to].bytes + bytes > plan.size => return Err(Refusal::Full),
            (None, Per::Shared) if bytes > free || !plan.alpha.allows(outputs[to].bytes, free) => {
                return Err(Refusal::Full);
            }
            (Some(_), Per::Port) if inputs[from].bytes + bytes > plan.size => {
                return Err(Refusal::NoHeadroom);
            }
            (Some(pause), Per::Shared) if bytes > free || !plan.alpha.allows(inputs[from].bytes, free) => {
                if inputs[from].beyond + bytes > pause.headroom {
                    return Err(Refusal::NoHeadroom);
                }
                inputs[from].beyond += bytes;
            }
            (_, Per::Port) => {}
            (_, Per::Shared) => *used += bytes,
        }
        inputs[from].take(bytes);
        outputs[to].take(bytes);
        Ok(())
    }

    /// Removes a packet that has left. The bytes in its input's headroom are freed first.
    pub(super) fn leave(&mut self, from: usize, to: usize, bytes: u64) {
        let beyond = self.inputs[from].beyond.min(bytes);
        self.inputs[from].beyond -= beyond;
        if self.plan.per == Per::Shared {
            self.used -= bytes - beyond;
        }
        self.inputs[from].bytes -= bytes;
        self.outputs[to].bytes -= bytes;
    }

    /// Whether the sender of this input must be paused.
    pub(super) fn is_over(&self, input: usize) -> bool {
        let Some(Pausing { xoff, .. }) = self.plan.pause else { return false };
        let found = &self.inputs[input];
        match self.plan.per {
            Per::Port => found.bytes >= xoff,
            Per::Shared => found.beyond > 0 || !self.plan.alpha.allows(found.bytes, self.shared - self.used),
        }
    }

    /// Whether the sender of this input may resume.
    pub(super) fn is_under(&self, input: usize) -> bool {
        let Some(Pausing { xon, .. }) = self.plan.pause else { return true };
        let (found, free) = (&self.inputs[input], self.shared - self.used);
        match self.plan.per {
            Per::Port => found.bytes <= xon,
            Per::Shared => {
                let above = found.bytes + 2 * self.plan.largest;
                found.beyond == 0 && (found.bytes == 0 || self.plan.alpha.allows(above, free))
            }
        }
    }

    /// Whether the memory is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.inputs.iter().all(|input| input.bytes == 0)
    }

    /// The peak occupancy of a port in bytes. With pauses, this counts the bytes that arrived at the port. Without
    /// pauses, it counts the bytes that wait for the port.
    pub(super) fn peak(&self, port: usize) -> u64 {
        let of = if self.plan.pause.is_some() { &self.inputs } else { &self.outputs };
        of[port].peak
    }
}

#[cfg(test)]
mod tests {
    use super::super::Alpha;
    use super::*;

    /// Two ports have 100 bytes of headroom each, and share 800 more bytes. With alpha 1, a port may use as much as is
    /// free.
    fn shared(largest: u64) -> Memory {
        let pause = Some(Pausing { xoff: 0, xon: 0, headroom: 100, needed: 0, quanta: 1 });
        let (per, alpha) = (Per::Shared, Alpha::default());
        Memory::new(Plan { hosts: 2, largest, size: 1000, per, alpha, pause }, 2)
    }

    #[test]
    fn headroom_is_used_to_its_last_byte() {
        let mut memory = shared(100);
        // After four packets, the input has 400 bytes and 400 bytes are free. The fifth packet goes into the headroom.
        assert!((0..5).all(|_| memory.admit(0, 1, 100).is_ok()));
        assert!(memory.is_over(0) && memory.inputs[0].beyond == 100);
        assert_eq!(memory.admit(0, 1, 1), Err(Refusal::NoHeadroom));
    }

    #[test]
    fn a_pause_ends_when_headroom_is_free_and_two_more_packets_have_room() {
        for (largest, under) in [(10, true), (99, true), (100, false)] {
            let mut memory = shared(largest);
            (0..2).for_each(|_| memory.admit(1, 0, 100).unwrap());
            (0..4).for_each(|_| memory.admit(0, 1, 100).unwrap());
            // Memory is free again, but a packet is still in the headroom.
            (0..2).for_each(|_| memory.leave(1, 0, 100));
            assert!(memory.is_over(0) && !memory.is_under(0) && memory.inputs[0].beyond == 100);
            // The input has 300 bytes, and 500 bytes are free.
            memory.leave(0, 1, 100);
            assert_eq!((memory.is_over(0), memory.is_under(0)), (false, under), "{largest}");
        }
    }
}
