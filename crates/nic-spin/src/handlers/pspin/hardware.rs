//! The registers of a core and its memory in the cluster, as seen by handlers written for PsPIN.
//!
//! | offset | register |
//! |---|---|
//! | 0x08 | the task, 18 words: see [`Task`] |
//! | 0x50 | doorbell: the handler has ended |
//! | 0x54 | error cause |
//! | 0x80 | read: issues the command, and returns its handle |
//! | 0x84 | write: waits for a handle |
//! | 0x88 | write: selects a handle; read: whether its command is done |
//! | 0x8c | kind of the command: twice its type, plus 1 for an event at the host |
//! | 0x90 | words of the command, up to 0xa8 |
//!
//! The registers of its cluster's DMA engine ([`Engine`]). Each core has its own set:
//!
//! | offset | register |
//! |---|---|
//! | 0x00, 0x08 | addresses of the source and of the destination |
//! | 0x10 | bytes |
//! | 0x18 | read: starts the transfer, and returns its number |
//! | 0x20 | read: the number of the engine's last completed transfer |
//! | 0x28 | configuration, and whether the engine is busy (bit 16) |

use crate::handlers::disposition::Slots;
use crate::programs::attachments::Attachment;
use crate::programs::program::map as code_map;
use crate::spec::{HpuSpec, Piece, Timings, protection, pspin_map as map};
use nicety_hpu::{AddressSpace, Region};

/// Offsets of registers.
pub(crate) mod register {
    pub const DOORBELL: u32 = 0x50;
    pub const ERROR: u32 = 0x54;
    pub const ISSUE: u32 = 0x80;
    pub const WAIT: u32 = 0x84;
    pub const TEST: u32 = 0x88;
    pub const KIND: usize = 0x8c;
}

/// Offsets of the engine's registers.
pub(crate) mod engine {
    pub const SOURCE: u32 = 0x00;
    pub const DESTINATION: u32 = 0x08;
    pub const BYTES: u32 = 0x10;
    pub const START: u32 = 0x18;
    pub const DONE: u32 = 0x20;
    pub const CONFIGURATION: u32 = 0x28;
    /// The end of the registers.
    pub const END: u32 = 0x40;
    /// Bits of the configuration: the stored ones, the initial ones, and the busy bit.
    pub const STORED: u32 = 7;
    pub const AT_FIRST: u32 = 1;
    pub const BUSY: u32 = 1 << 16;
}

/// The registers that a core has written at its cluster's DMA engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) bytes: u32,
    pub(crate) configuration: u32,
}

/// Bytes of a task.
const TASK_BYTES: usize = 72;
/// Bytes of the kind and the words of a command.
const COMMAND_BYTES: usize = 32;
/// Bytes of the arguments of a handler, on its stack: the task's address and the core's numbers.
const ARGUMENTS: u32 = 16;

/// A core, as seen by a handler.
pub(crate) struct Hardware {
    core: u32,
    cluster: u32,
    /// The addresses of its stack, of its cluster's packets in L1, and of its packet in L1 and in L2.
    stack: u32,
    packets: u32,
    pub(crate) packet: u32,
    l2_packet: u32,
    scratchpad: u32,
    clusters: u32,
    /// Cores of a cluster.
    cores: u32,
    /// Its protection entries. The entry of the registers covers three regions here.
    entries: usize,
    /// Bytes per packet where packets have no slots.
    each: u32,
    task: [u8; TASK_BYTES],
    command: [u8; COMMAND_BYTES],
    pub(crate) engine: Engine,
    /// The packet in L2. The packet in L1 is a copy of it.
    l2: Vec<u8>,
}

/// The bytes of a run's memory, without its packet.
pub(crate) struct Bytes<'a> {
    pub(crate) data: &'a mut [u8],
    pub(crate) state: &'a mut [u8],
    pub(crate) stack: &'a mut [u8],
    pub(crate) pads: &'a mut [u8],
}

/// The words of a task that differ from run to run.
pub(crate) struct Task {
    /// Handler memory: address and size.
    pub(crate) memory: (u32, u32),
    /// Bytes of the packet.
    pub(crate) packet_bytes: u32,
    /// The slots of the packet. Without slots, each core has a fixed place for its packet.
    pub(crate) slots: Slots,
    /// Host memory: address and size.
    pub(crate) host: (u64, u32),
    pub(crate) home: u32,
    pub(crate) flow: u32,
}

impl Hardware {
    pub(crate) fn new(core: usize, hpu: &HpuSpec) -> Hardware {
        let cores = hpu.memories.cluster as u32;
        let (cluster, within) = (core as u32 / cores, core as u32 % cores);
        let l1 = map::L1 + cluster * map::L1_EACH;
        let packets = l1 + map::RUNTIME;
        Hardware {
            core: core as u32,
            cluster,
            stack: l1 + within * (map::RUNTIME / cores),
            packets,
            packet: packets,
            l2_packet: map::L2_PACKETS,
            scratchpad: hpu.pspin.map_or(0, |commands| commands.scratchpad),
            clusters: hpu.cores as u32 / cores,
            cores,
            entries: protection::entries(hpu, true).len(),
            each: map::PACKETS / cores,
            task: [0; TASK_BYTES],
            command: [0; COMMAND_BYTES],
            engine: Engine { source: 0, destination: 0, bytes: 0, configuration: engine::AT_FIRST },
            l2: Vec::new(),
        }
    }

    /// Writes the task of a run, and `packet`, the bytes of its packet.
    pub(crate) fn begin(&mut self, task: &Task, packet: &[u8]) {
        let (host, host_bytes) = task.host;
        let Slots { buffer, cluster } = task.slots;
        self.packet = self.packets + cluster.unwrap_or(self.core % self.cores * self.each);
        self.l2_packet = map::L2_PACKETS + buffer.unwrap_or(self.core * self.each);
        let pads = |cluster: u32| if cluster < self.clusters { map::pad(cluster as usize) } else { 0 };
        let pad_bytes = |cluster: u32| if cluster < self.clusters { self.scratchpad } else { 0 };
        let packet_at = |address: u32| if task.packet_bytes > 0 { address } else { 0 };
        let words = [task.memory.0, task.memory.1, packet_at(self.packet), task.packet_bytes]
            .into_iter()
            .chain((0..4).map(pads))
            .chain((0..4).map(pad_bytes))
            .chain([(host >> 32) as u32, host as u32, host_bytes])
            .chain([packet_at(self.l2_packet), task.home, task.flow]);
        let mut bytes = [0; TASK_BYTES];
        for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        (self.task, self.command) = (bytes, [0; COMMAND_BYTES]);
        self.l2.clear();
        self.l2.extend_from_slice(packet);
    }

    /// Returns `mhartid`: the core in 5 bits, the cluster above them.
    pub(crate) const fn hart(&self) -> u32 {
        (self.cluster << 5) | (self.core % self.cores)
    }

    /// Returns the packet in L2, as changed by its handler.
    pub(crate) fn l2(&self) -> &[u8] {
        &self.l2
    }

    /// Puts the arguments of a handler on its stack. Returns their address, which is also the top of the stack.
    pub(crate) fn arguments(&self, stack: &mut [u8]) -> u32 {
        let at = (stack.len() as u32 - ARGUMENTS) & !15;
        let words = [map::TASK, self.core, self.cluster, self.core % self.cores];
        for (word, bytes) in words.iter().zip(stack[at as usize..].chunks_exact_mut(4)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.stack + at
    }

    /// Returns the kind and the words of the command in the registers.
    pub(crate) fn command(&self) -> [u32; 8] {
        let word =
            |at: usize| u32::from_le_bytes(*self.command[4 * at..].first_chunk().expect("eight words"));
        std::array::from_fn(word)
    }

    /// Fills the address space of a slice.
    pub(crate) fn fill<'a>(
        &'a mut self,
        space: &mut AddressSpace<'a>,
        timings: &Timings,
        attachment: &'a Attachment,
        bytes: Bytes<'a>,
        packet: &'a mut [u8],
    ) {
        let Bytes { data, state, stack, pads } = bytes;
        let handlers = &attachment.program.handlers;
        let stack = Region::stack("the stack", self.stack, stack, code_map::STACK_GUARD);
        space.push(timings.apply(Piece::Stack, stack));
        space.push(timings.apply(Piece::Packet, Region::memory("the packet", self.packet, packet)));
        space.push(Region::read_only("the task", map::TASK, &self.task).whole_words().ignores_stores());
        let command = map::HARDWARE + register::KIND as u32;
        space.push(Region::memory("the command registers", command, &mut self.command).whole_words());
        if self.scratchpad > 0 {
            let own = self.cluster as usize;
            for (cluster, pad) in pads.chunks_mut(self.scratchpad as usize).enumerate() {
                let name = if cluster == own { "the scratchpad" } else { "another cluster's scratchpad" };
                space.push(timings.apply_l1(cluster == own, Region::memory(name, map::pad(cluster), pad)));
            }
        }
        let data = Region::memory("the program's data", handlers.data_address(), data);
        space.push(timings.apply(Piece::Data, data));
        let state = Region::memory("the state", attachment.state_address(), state);
        space.push(timings.apply(Piece::State, state));
        space.push(timings.apply_l2(Region::memory("the packet in L2", self.l2_packet, &mut self.l2)));
        let code = &attachment.program.code;
        space
            .push(timings.apply(Piece::Constants, Region::read_only("program memory", code_map::CODE, code)));
        // Includes the engine's registers below. The task and the command are regions of their own.
        let (first, size) = (map::ENGINE, map::HARDWARE + map::HARDWARE_SIZE - map::ENGINE);
        space.push(Region::device("the core's registers", first, size).whole_words());
        debug_assert_eq!(
            space.regions().len(),
            self.entries + 2,
            "a handler may access what it has entries for"
        );
    }
}
