//! The layout of the memory that a process and the simulator share. It follows `shim/protocol.h`, which explains it.

use crate::spent::Part;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

pub(crate) const MAGIC: u64 = 0x0058_4579_5465_634e;
pub(crate) const VERSION: u32 = 8;
/// Maximum words of a call's arguments and results.
pub(crate) const WORDS: usize = 32;
/// Bytes of the text that says why a call was refused.
pub(crate) const REASON: usize = 512;
pub(crate) const PAGE: usize = 4096;
/// Offsets of the bell and of the first rank's pages in the mapping.
pub(crate) const BELL: usize = PAGE;
pub(crate) const SLOTS: usize = 2 * PAGE;
/// Bytes of the pages of one rank.
pub(crate) const SLOT_BYTES: usize = 4 * PAGE;
/// Places in the ring of posted calls of one rank.
pub(crate) const POSTS: u32 = 64;
const POST_BYTES: usize = 64;
pub(crate) const MOST_COMPLETIONS: usize = 24;
/// Maximum number of looks that a process defers.
const MOST_DEFERRED: u64 = 3;
pub(crate) const ANY: u64 = u64::MAX;
/// Maximum names of shared memory for a rank, and bytes of a name.
const SHARED: usize = 8;
const SHARED_BYTES: usize = 96;
const LIBRARY_BYTES: usize = 192;
/// A length in bytes that exceeds the address space of a process.
const MOST_BYTES: u64 = 1 << 48;
/// Prefix of a file that the launcher of MPICH creates.
pub(crate) const LAUNCHER_FILE: &str = "/tmp/hydra_hwloc_xmlfile_";
/// Maximum arguments of a posted call.
pub(crate) const ARGS: usize = 14;

pub(crate) mod turn {
    pub(crate) const RUN: u32 = 0;
    pub(crate) const CALL: u32 = 1;
    pub(crate) const OUTSIDE: u32 = 2;
    pub(crate) const ENDS: u32 = 3;
    pub(crate) const SLEEP: u32 = 4;
}

pub(crate) mod flag {
    pub(crate) const UNTAGGED: u32 = 1;
    pub(crate) const COMPLETION: u32 = 2;
    pub(crate) const DATA: u32 = 4;
    pub(crate) const MULTI: u32 = 8;
    pub(crate) const INJECT: u32 = 16;
    pub(crate) const CLAIM: u32 = 32;
    pub(crate) const DISCARD: u32 = 64;
    pub(crate) const EARLY: u32 = 128;
    pub(crate) const EVENTS: u32 = 256;
    pub(crate) const COPY: u32 = 512;
    pub(crate) const PARTS: u32 = 1024;
    pub(crate) const REPEATS: u32 = 2048;
    pub(crate) const INLINE: u32 = 4096;
}

pub(crate) mod done {
    pub(crate) const RECV: u32 = 1;
    pub(crate) const DATA: u32 = 2;
    pub(crate) const USED_UP: u32 = 4;
    pub(crate) const UNTAGGED: u32 = 8;
    pub(crate) const READ: u32 = 16;
    pub(crate) const WRITE: u32 = 32;
    pub(crate) const ATOMIC: u32 = 64;
    pub(crate) const REMOTE: u32 = 128;
}

/// Abilities of the card.
pub(crate) mod card {
    pub(crate) const RMA: u32 = 1;
    pub(crate) const ATOMIC: u32 = 2;
    pub(crate) const ADDRESSES: u32 = 4;
    pub(crate) const EVENTS: u32 = 8;
}

/// Rights of other processes to a region.
pub(crate) mod right {
    pub(crate) const READ: u64 = 1;
    pub(crate) const WRITE: u64 = 2;
}

/// The reason why an access was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Bounds = 1024,
    Rights,
    Other,
}

/// Kinds of operations that counters count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Send,
    Recv,
    Read,
    Write,
    RemoteRead,
    RemoteWrite,
}

/// The number of kinds.
pub(crate) const KINDS: usize = 6;

/// The numbers of operations that have ended, by kind: successful and failed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) done: [u64; KINDS],
    pub(crate) failed: [u64; KINDS],
}

/// A completion in the form that the process reads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) context: u64,
    pub(crate) flags: u32,
    pub(crate) error: i32,
    pub(crate) bytes: u64,
    pub(crate) address: u64,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    pub(crate) source: u64,
    pub(crate) cut: u64,
}

#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: u64,
    pub(crate) version: u32,
    pub(crate) ranks: u32,
    pub(crate) ended: AtomicU32,
    pub(crate) spins: AtomicU32,
    pub(crate) simulator: u32,
    pub(crate) measured: u32,
    pub(crate) clock_cost_ps: u64,
    pub(crate) epoch_ns: u64,
    pub(crate) scale: f64,
    pub(crate) look_cost_ps: u64,
    pub(crate) tag_bits: u32,
    pub(crate) card: u32,
    pub(crate) atomic_bytes: u32,
    pub(crate) fetch_bytes: u32,
    pub(crate) launcher: u32,
    pub(crate) begun: AtomicU32,
    pub(crate) asleep: AtomicU32,
}

/// The MPI libraries.
pub(crate) mod mpi {
    pub(crate) const UNKNOWN: u32 = 0;
    pub(crate) const MPICH: u32 = 1;
    pub(crate) const OPENMPI: u32 = 2;
}

/// A posted call in the ring.
#[repr(C)]
pub(crate) struct Post {
    pub(crate) call: AtomicU32,
    pub(crate) flags: AtomicU32,
    pub(crate) spent_ps: AtomicU64,
    pub(crate) args: [AtomicU64; ARGS],
    pub(crate) bytes: [AtomicU8; POST_BYTES],
}

#[repr(C)]
pub(crate) struct Slot {
    pub(crate) turn: AtomicU32,
    pub(crate) pid: AtomicU32,
    pub(crate) now_ps: AtomicU64,
    pub(crate) spent_ps: AtomicU64,
    pub(crate) clock_reads: AtomicU64,
    pub(crate) call: AtomicU32,
    pub(crate) flags: AtomicU32,
    pub(crate) args: [AtomicU64; 8],
    pub(crate) result: AtomicU64,
    pub(crate) completions: AtomicU32,
    pub(crate) ended: AtomicU32,
    pub(crate) completion: [std::cell::UnsafeCell<Completion>; MOST_COMPLETIONS],
    pub(crate) posted: AtomicU32,
    pub(crate) taken: AtomicU32,
    pub(crate) quiet_ps: AtomicU64,
    pub(crate) looks_left: AtomicU32,
    pub(crate) looks: AtomicU32,
    pub(crate) counts: [[AtomicU64; KINDS]; 2],
    pub(crate) end: AtomicU32,
    pub(crate) end_code: std::sync::atomic::AtomicI32,
    pub(crate) fork: AtomicU32,
    pub(crate) loaded: AtomicU32,
    pub(crate) watched: AtomicU32,
    pub(crate) shared: [[AtomicU8; SHARED_BYTES]; SHARED],
    /// Only the process uses this field.
    _service: AtomicU32,
    pub(crate) names: AtomicU32,
    pub(crate) library: AtomicU32,
    pub(crate) guard: AtomicU64,
    pub(crate) library_path: [AtomicU8; LIBRARY_BYTES],
    pub(crate) looks_of_waits: AtomicU32,
    pub(crate) under_way: [AtomicU32; 2],
}

/// The end of a process, as the process reports it.
pub(crate) mod end {
    pub(crate) const ABORT: u32 = 1;
    pub(crate) const EXIT: u32 = 2;
    pub(crate) const ERROR: u32 = 3;
}

/// Declares the arguments of a call in the order of their words, and its flags.
macro_rules! arguments {
    ($($(#[$doc:meta])* $call:ident { $($(#[$note:meta])* $word:ident),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $call {
            $($(#[$note])* pub(crate) $word: u64,)*
            pub(crate) flags: u32,
        }

        impl $call {
            const fn of(flags: u32, args: &[u64; ARGS]) -> $call {
                let [$($word),*, ..] = *args;
                $call { $($word),*, flags }
            }
        })*
    };
}

arguments! {
    /// A message that a process sends.
    Send { address, bytes, to, tag, data, context }

    /// A receive that a process posts.
    Receive {
        address,
        bytes,
        from,
        tag,
        ignore,
        context,
        /// For a buffer for many messages: it is full when fewer bytes than this are left.
        least,
    }

    /// An access to registered memory of a rank: a read, a write or an atomic operation.
    Access { address, bytes, rank, key, remote, data, context }

    /// Memory that a process registers.
    Registration { address, bytes, rights, key, number }
}

/// The operation of an atomic access: libfabric's numbers for the kind, the type and the operator, and the addresses of the
/// operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) kind: u8,
    pub(crate) datatype: u8,
    pub(crate) op: u8,
    pub(crate) result: u64,
    pub(crate) compared: u64,
}

/// A look at counters, or a wait for them. It ends when a sum is reached or the time has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) kinds: u64,
    /// The sum of successful operations to reach.
    pub(crate) done: u64,
    /// The sum of failed operations that ends the wait if it is exceeded.
    pub(crate) failed: u64,
    pub(crate) ps: u64,
    /// The kind of a look.
    pub(crate) follows: Follows,
}

/// The looks that certainly follow if this look finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// The process decides whether looks follow.
    Unknown,
    /// The looks of a call that waits.
    Wait,
    /// The looks at the start or the end of MPI.
    Start,
    /// The process is in a call that waits, but may do something else before the next look.
    MayWait,
}

impl Follows {
    const fn of(number: u64) -> Follows {
        match number {
            0 => Follows::Unknown,
            2 => Follows::Start,
            3 => Follows::MayWait,
            _ => Follows::Wait,
        }
    }

    pub(crate) const fn are_certain(self) -> bool {
        matches!(self, Follows::Wait | Follows::Start)
    }

    /// Returns the part of the process's time to which a look belongs. In a call that waits, looks that find nothing are a
    /// wait. So the division does not depend on the number of looks after which the process knows that they repeat.
    pub(crate) const fn part(self, found: bool) -> Part {
        match self {
            Follows::Wait | Follows::MayWait if !found => Part::Waits,
            _ => Part::Looks,
        }
    }
}

/// A call of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Send(Send),
    Receive(Receive),
    Poll {
        most: u64,
        /// The looks that certainly follow. The process does nothing else until a look finds something.
        follows: Follows,
        /// The number of earlier looks that the process has deferred.
        deferred: u32,
    },
    Wait {
        most: u64,
        ps: u64,
    },
    Peek(Receive),
    Cancel {
        context: u64,
    },
    Sleep {
        ps: u64,
    },
    Back,
    End,
    /// No operation: the process waits until its posted calls have been executed.
    Posted,
    Write(Access),
    Read(Access),
    Atomic(Access, Operation),
    Register(Registration),
    Deregister {
        number: u64,
    },
    Count(Count),
    /// A call of Portals, with the number of its operation.
    Portals(u32),
    /// A call on channels, with the number of its operation.
    Channels(u32),
    /// An unknown call. The process has another version of the library, or has overwritten the number.
    Unknown(u32),
}

impl Call {
    /// Returns whether the call has no reply, so that the process may post it.
    pub(crate) const fn is_post(&self) -> bool {
        matches!(
            self,
            Call::Send(_)
                | Call::Receive(_)
                | Call::Peek(_)
                | Call::Cancel { .. }
                | Call::Write(_)
                | Call::Read(_)
                | Call::Atomic(..)
        )
    }

    /// Returns whether the ranks and lengths of the call are possible in a run of `ranks` ranks. If not, the process has
    /// overwritten the call.
    pub(crate) fn is_plausible(&self, ranks: u32) -> bool {
        let is_rank = |rank: u64| rank < u64::from(ranks);
        match self {
            Call::Send(send) => is_rank(send.to) && send.bytes < MOST_BYTES,
            Call::Receive(receive) | Call::Peek(receive) => {
                (receive.from == ANY || is_rank(receive.from)) && receive.bytes < MOST_BYTES
            }
            Call::Write(access) | Call::Read(access) | Call::Atomic(access, _) => {
                is_rank(access.rank) && access.bytes < MOST_BYTES
            }
            Call::Unknown(_) => false,
            _ => true,
        }
    }

    /// Returns the call with this number.
    pub(crate) fn of(number: u32, flags: u32, args: [u64; ARGS]) -> Call {
        match number {
            1 => Call::Send(Send::of(flags, &args)),
            2 => Call::Receive(Receive::of(flags, &args)),
            3 => Call::Poll {
                most: args[0],
                follows: Follows::of(args[1]),
                deferred: args[2].min(MOST_DEFERRED) as u32,
            },
            4 => Call::Wait { most: args[0], ps: args[1] },
            5 => Call::Peek(Receive::of(flags, &args)),
            6 => Call::Cancel { context: args[0] },
            7 => Call::Sleep { ps: args[0] },
            8 => Call::Back,
            9 => Call::End,
            10 => Call::Posted,
            11 => Call::Write(Access::of(flags, &args)),
            12 => Call::Read(Access::of(flags, &args)),
            13 => {
                let [.., names, result, compared] = *args.first_chunk::<10>().expect("calls have more words");
                let [op, datatype, kind, ..] = names.to_le_bytes();
                Call::Atomic(Access::of(flags, &args), Operation { kind, datatype, op, result, compared })
            }
            14 => Call::Register(Registration::of(flags, &args)),
            15 => Call::Deregister { number: args[0] },
            16 => {
                let [kinds, done, failed, ps, kind, ..] = args;
                Call::Count(Count { kinds, done, failed, ps, follows: Follows::of(kind) })
            }
            32 => Call::Portals(flags),
            48 => Call::Channels(flags),
            other => Call::Unknown(other),
        }
    }
}

const _: () = {
    assert!(size_of::<Completion>() == 64 && size_of::<Header>() <= PAGE && size_of::<Slot>() <= PAGE);
    assert!(std::mem::offset_of!(Header, ended) == 16 && std::mem::offset_of!(Header, scale) == 48);
    assert!(std::mem::offset_of!(Header, card) == 68 && std::mem::offset_of!(Slot, counts) == 1680);
    assert!(
        size_of::<Post>() * POSTS as usize == SLOT_BYTES - PAGE && std::mem::offset_of!(Post, args) == 16
    );
    assert!(std::mem::offset_of!(Slot, posted) == 1656 && std::mem::offset_of!(Slot, shared) == 1796);
    assert!(std::mem::offset_of!(Slot, args) == 40 && std::mem::offset_of!(Slot, completion) == 120);
};
