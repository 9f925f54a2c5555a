//! CPU time, instructions and cache misses by function group, and counters of scheduler actions.

use nicety_types::Duration;

/// A purpose on which a CPU spends time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The card's driver, including its interrupt handlers.
    Driver,
    /// The protocols: Ethernet, IP, TCP, UDP.
    Stack,
    /// Packet buffers: allocate, free and chain them.
    Buffers,
    /// Sockets: the queues to and from the application, and the application's socket calls.
    Socket,
    /// The rest of the kernel: scheduler, context switches, cross-calls, system calls.
    Kernel,
    /// Copies of bytes between kernel and user space.
    Copy,
    /// The application itself.
    Application,
}

impl Group {
    /// All groups, in the order of tables.
    pub const ALL: [Group; 7] = [
        Group::Driver,
        Group::Stack,
        Group::Buffers,
        Group::Socket,
        Group::Kernel,
        Group::Copy,
        Group::Application,
    ];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Driver => "driver",
            Group::Stack => "stack",
            Group::Buffers => "buffers",
            Group::Socket => "socket",
            Group::Kernel => "kernel",
            Group::Copy => "copy",
            Group::Application => "application",
        }
    }
}

/// The cost of a function group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupAccount {
    /// CPU time, including waits for memory and waits for the core's other hardware threads.
    pub busy: Duration,
    /// Number of instructions.
    pub instructions: u64,
    /// Number of loads that missed a core's first-level cache.
    pub l1_misses: u64,
    /// Number of first-level misses that also missed the second level.
    pub shared_cache_misses: u64,
    /// Number of misses of the TLB for data.
    pub tlb_misses: u64,
    /// Number of misses of the TLB for code.
    pub code_tlb_misses: u64,
}

/// The cost of all threads since the start of the run, and the counters of scheduler actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    groups: [GroupAccount; Group::ALL.len()],
    /// Number of times that a CPU switched to another thread, or from idle to a thread.
    pub context_switches: u64,
    /// Number of cross-calls (inter-processor interrupts) from one CPU to another.
    pub cross_calls: u64,
    /// Number of interrupts taken.
    pub interrupts: u64,
    /// Number of wake-ups of sleeping threads.
    pub wakes: u64,
    /// Number of times that a thread continued on another CPU.
    pub migrations: u64,
}

impl Account {
    /// The cost of a group.
    pub const fn group(&self, group: Group) -> &GroupAccount {
        &self.groups[group as usize]
    }

    pub(super) const fn group_mut(&mut self, group: Group) -> &mut GroupAccount {
        &mut self.groups[group as usize]
    }

    /// CPU time of all groups.
    pub fn busy(&self) -> Duration {
        self.groups.iter().map(|group| group.busy).fold(Duration::ZERO, |sum, busy| sum + busy)
    }

    /// Returns the cost since `earlier`.
    pub fn since(&self, earlier: &Account) -> Account {
        let group = |now: &GroupAccount, then: &GroupAccount| GroupAccount {
            busy: now.busy.saturating_sub(then.busy),
            instructions: now.instructions - then.instructions,
            l1_misses: now.l1_misses - then.l1_misses,
            shared_cache_misses: now.shared_cache_misses - then.shared_cache_misses,
            tlb_misses: now.tlb_misses - then.tlb_misses,
            code_tlb_misses: now.code_tlb_misses - then.code_tlb_misses,
        };
        Account {
            groups: std::array::from_fn(|i| group(&self.groups[i], &earlier.groups[i])),
            context_switches: self.context_switches - earlier.context_switches,
            cross_calls: self.cross_calls - earlier.cross_calls,
            interrupts: self.interrupts - earlier.interrupts,
            wakes: self.wakes - earlier.wakes,
            migrations: self.migrations - earlier.migrations,
        }
    }
}
