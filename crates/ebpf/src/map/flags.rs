//! Flags of definitions that Linux takes, by type (`kernel/bpf/*.c` of 6.18).

use super::{Flags, MapKind};

const NUMA_NODE: u32 = 1 << 2;
/// `BPF_F_RDONLY` and `BPF_F_WRONLY`: of user space.
const USER_ACCESS: u32 = 1 << 3 | 1 << 4;
const ZERO_SEED: u32 = 1 << 6;
const WRITE_ONLY_PROGRAM: u32 = 1 << 8;
const MMAPABLE: u32 = 1 << 10;
const PRESERVE_ELEMS: u32 = 1 << 11;

/// The access of programs: of both kinds at most one.
const PROGRAM_ACCESS: u32 = Flags::READ_ONLY_PROGRAM | WRITE_ONLY_PROGRAM;
const ACCESS: u32 = USER_ACCESS | PROGRAM_ACCESS;

/// The flags that a type may have.
const fn taken(kind: MapKind) -> u32 {
    let of_type = match kind {
        MapKind::Array => ACCESS | MMAPABLE | Flags::INNER_MAP,
        MapKind::PerCpuArray | MapKind::Queue | MapKind::Stack => ACCESS,
        MapKind::PerfEvents => USER_ACCESS | PRESERVE_ELEMS,
        MapKind::Programs | MapKind::ArrayOfMaps => USER_ACCESS,
        MapKind::Hash | MapKind::PerCpuHash | MapKind::HashOfMaps => ACCESS | Flags::NO_PREALLOC | ZERO_SEED,
        MapKind::LruHash | MapKind::LruPerCpuHash => ACCESS | Flags::NO_COMMON_LRU | ZERO_SEED,
        MapKind::Lpm => ACCESS | Flags::NO_PREALLOC,
        MapKind::Devices | MapKind::DeviceHash | MapKind::Sockets => USER_ACCESS,
        MapKind::Bloom => ACCESS | ZERO_SEED,
        MapKind::Cpus | MapKind::Ring => 0,
    };
    of_type | NUMA_NODE
}

/// Returns flags that Linux refuses for a type; none if it takes all.
pub(super) const fn refused(kind: MapKind, flags: u32) -> Option<u32> {
    let unknown = flags & !taken(kind);
    match unknown {
        0 if flags & PROGRAM_ACCESS == PROGRAM_ACCESS => Some(PROGRAM_ACCESS),
        0 => None,
        unknown => Some(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_other_types_are_refused() {
        assert_eq!(refused(MapKind::Hash, Flags::NO_PREALLOC), None);
        for kind in [MapKind::Array, MapKind::Queue, MapKind::Devices, MapKind::Sockets, MapKind::Programs] {
            assert_eq!(refused(kind, Flags::NO_PREALLOC | NUMA_NODE), Some(Flags::NO_PREALLOC), "{kind:?}");
        }
        assert_eq!(refused(MapKind::Hash, 1 << 31), Some(1 << 31));
        assert_eq!(refused(MapKind::Array, MMAPABLE | Flags::READ_ONLY_PROGRAM), None);
        assert_eq!(refused(MapKind::Array, PROGRAM_ACCESS), Some(PROGRAM_ACCESS));
        assert_eq!(refused(MapKind::Hash, Flags::NO_COMMON_LRU), Some(Flags::NO_COMMON_LRU));
    }
}
