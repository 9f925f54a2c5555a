//! The memory of an address: shared between runs, or a run's own.

use nicety_hpu::AddressSpace;

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// State, variables, scratchpads: all runs access them.
    Shared,
    /// Variables in a microengine's local memory: its contexts access them, one at a time.
    Local,
    /// A memory outside a microengine: processes on all microengines access it.
    Outer,
    Stack,
    Packet,
    /// Arguments, the task and the registers of a command.
    Own,
    Code,
    Device,
    /// None: an access traps.
    Nowhere,
}

impl Area {
    /// Returns the memory of an access, its name, and its first address and size.
    #[inline]
    pub fn of(space: &AddressSpace<'_>, address: u32, bytes: u32) -> (Area, &'static str, u32, u32) {
        for region in space.regions() {
            let offset = address.wrapping_sub(region.base());
            if u64::from(offset) + u64::from(bytes) <= region.size() {
                let name = region.name();
                let area = match name {
                    "the stack" => Area::Stack,
                    "the packet" | "the packet in L2" => Area::Packet,
                    "the state"
                    | "the program's data"
                    | "the scratchpad"
                    | "another cluster's scratchpad" => Area::Shared,
                    "the data in local memory" => Area::Local,
                    "CLS" | "CTM" | "IMEM" | "EMEM" => Area::Outer,
                    "program memory" | "the code store" => Area::Code,
                    "the core's registers" => Area::Device,
                    _ => Area::Own,
                };
                return (area, name, region.base(), region.size() as u32);
            }
        }
        (Area::Nowhere, "no memory", 0, 0)
    }

    /// Whether other runs access it.
    pub const fn is_shared(self) -> bool {
        matches!(self, Area::Shared | Area::Local | Area::Outer)
    }
}

/// Bytes between the numbers of local memories, and between those of memories of islands.
const LOCAL_STRIDE: u32 = 0x0020_0000;
const ISLAND_STRIDE: u32 = 0x0080_0000;
/// The addresses from which on all microengines have the same memory.
const COMMON: u32 = 0x4000_0000;
/// The address of CLS, the first memory outside a microengine.
const OUTER: u32 = 0x2000_0000;

/// Returns the number of a byte among those of all processes of a card. Microengines have a local memory each at the
/// same addresses, and islands a CLS and a CTM.
pub(crate) const fn key_of(address: u32, microengine: u32, island: u32) -> u32 {
    match address {
        COMMON.. => address,
        OUTER.. => address.wrapping_add(island.wrapping_mul(ISLAND_STRIDE)),
        _ => address.wrapping_add(microengine * LOCAL_STRIDE),
    }
}

/// Whether an address is in the packet of a run.
pub(crate) fn in_packet(space: &AddressSpace<'_>, address: u32) -> bool {
    space.regions().iter().any(|region| {
        let packet = matches!(region.name(), "the packet" | "the packet in L2");
        packet && address >= region.base() && u64::from(address - region.base()) <= region.size()
    })
}
