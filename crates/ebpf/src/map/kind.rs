//! Types of maps, flags, and Linux's error numbers.

use std::fmt;

/// A type of map, with the number of `enum bpf_map_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum MapKind {
    Hash = 1,
    Array = 2,
    Programs = 3,
    PerfEvents = 4,
    PerCpuHash = 5,
    PerCpuArray = 6,
    LruHash = 9,
    LruPerCpuHash = 10,
    Lpm = 11,
    ArrayOfMaps = 12,
    HashOfMaps = 13,
    Devices = 14,
    Cpus = 16,
    Sockets = 17,
    Queue = 22,
    Stack = 23,
    DeviceHash = 25,
    Ring = 27,
    Bloom = 30,
}

/// The names of Linux from number 0 on, as bpftool prints them.
const NAMES: [&str; 34] = [
    "unspec",
    "hash",
    "array",
    "prog_array",
    "perf_event_array",
    "percpu_hash",
    "percpu_array",
    "stack_trace",
    "cgroup_array",
    "lru_hash",
    "lru_percpu_hash",
    "lpm_trie",
    "array_of_maps",
    "hash_of_maps",
    "devmap",
    "sockmap",
    "cpumap",
    "xskmap",
    "sockhash",
    "cgroup_storage",
    "reuseport_sockarray",
    "percpu_cgroup_storage",
    "queue",
    "stack",
    "sk_storage",
    "devmap_hash",
    "struct_ops",
    "ringbuf",
    "inode_storage",
    "task_storage",
    "bloom_filter",
    "user_ringbuf",
    "cgrp_storage",
    "arena",
];

impl MapKind {
    /// All types of this machine.
    pub const ALL: [MapKind; 19] = [
        MapKind::Hash,
        MapKind::Array,
        MapKind::Programs,
        MapKind::PerfEvents,
        MapKind::PerCpuHash,
        MapKind::PerCpuArray,
        MapKind::LruHash,
        MapKind::LruPerCpuHash,
        MapKind::Lpm,
        MapKind::ArrayOfMaps,
        MapKind::HashOfMaps,
        MapKind::Devices,
        MapKind::Cpus,
        MapKind::Sockets,
        MapKind::Queue,
        MapKind::Stack,
        MapKind::DeviceHash,
        MapKind::Ring,
        MapKind::Bloom,
    ];

    /// The type of a number.
    pub fn of(number: u32) -> Option<MapKind> {
        MapKind::ALL.into_iter().find(|kind| *kind as u32 == number)
    }

    /// The name that bpftool prints.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The name that bpftool prints for any number of Linux.
    pub fn name_of(number: u32) -> Option<&'static str> {
        NAMES.get(number as usize).copied().filter(|_| number != 0)
    }

    /// Whether the key is the place of the value.
    pub fn is_array(self) -> bool {
        matches!(self, MapKind::Array | MapKind::PerCpuArray | MapKind::ArrayOfMaps)
    }

    /// Whether each CPU has its own values.
    pub fn is_per_cpu(self) -> bool {
        matches!(self, MapKind::PerCpuHash | MapKind::PerCpuArray | MapKind::LruPerCpuHash)
    }

    /// Whether the least recently used entry makes room for a new one.
    pub fn is_lru(self) -> bool {
        matches!(self, MapKind::LruHash | MapKind::LruPerCpuHash)
    }
}

/// Numbers of flags.
#[derive(Clone, Copy, Debug)]
pub struct Flags;

impl Flags {
    /// Create: no memory in advance.
    pub const NO_PREALLOC: u32 = 1;
    /// Create: an LRU list for each CPU.
    pub const NO_COMMON_LRU: u32 = 2;
    /// Create: inner maps of an array of maps may have other numbers of entries.
    pub const INNER_MAP: u32 = 0x1000;
    /// Create: programs may only read.
    pub const READ_ONLY_PROGRAM: u32 = 0x80;
    /// Update: only an absent key.
    pub const ABSENT: u64 = 1;
    /// Update: only a present key.
    pub const PRESENT: u64 = 2;
    /// Update: under the value's lock.
    pub const LOCK: u64 = 4;
}

/// A number of `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i64);

#[allow(missing_docs)]
impl Errno {
    pub const ENOENT: Errno = Errno(2);
    pub const E2BIG: Errno = Errno(7);
    pub const EAGAIN: Errno = Errno(11);
    pub const ENOMEM: Errno = Errno(12);
    pub const EACCES: Errno = Errno(13);
    pub const EFAULT: Errno = Errno(14);
    pub const EEXIST: Errno = Errno(17);
    pub const EINVAL: Errno = Errno(22);
    pub const ENOSPC: Errno = Errno(28);
    pub const EOVERFLOW: Errno = Errno(75);
    pub const ENOTSUPP: Errno = Errno(524);

    /// The result of a helper that fails with it.
    pub fn returned(self) -> u64 {
        self.0.wrapping_neg() as u64
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Errno::ENOENT => "ENOENT",
            Errno::E2BIG => "E2BIG",
            Errno::EAGAIN => "EAGAIN",
            Errno::ENOMEM => "ENOMEM",
            Errno::EACCES => "EACCES",
            Errno::EFAULT => "EFAULT",
            Errno::EEXIST => "EEXIST",
            Errno::EINVAL => "EINVAL",
            Errno::ENOSPC => "ENOSPC",
            Errno::EOVERFLOW => "EOVERFLOW",
            Errno::ENOTSUPP => "ENOTSUPP",
            Errno(number) => return write!(f, "errno {number}"),
        };
        f.write_str(name)
    }
}

/// Checks the flags of an update as most maps do.
pub(crate) fn check_update(flags: u64, present: bool) -> Result<(), Errno> {
    match flags {
        Flags::ABSENT if present => Err(Errno::EEXIST),
        Flags::PRESENT if !present => Err(Errno::ENOENT),
        0..=Flags::PRESENT => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}
