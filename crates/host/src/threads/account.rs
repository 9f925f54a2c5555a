//! CPU time, instructions and misses by function group, and how often the scheduler had to act.

use nicety_types::Duration;

/// What CPU time is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The card's driver, with its interrupt handlers.
    Driver,
    /// The protocols: Ethernet, IP, TCP, UDP.
    Stack,
    /// Buffers of packets: allocated, freed, chained.
    Buffers,
    /// Sockets: queues to and from the application, its calls.
    Socket,
    /// The rest of the kernel: scheduler, context switches, cross-calls, system calls.
    Kernel,
    /// Bytes between kernel and user.
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

    /// The name, as it stands in tables and JSON.
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

/// What a function group took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupAccount {
    /// CPU time, waiting for memory and for the core's other hardware threads with it.
    pub busy: Duration,
    /// Instructions.
    pub instructions: u64,
    /// Loads that missed a core's first-level cache.
    pub first_misses: u64,
    /// Of these, loads that missed the second level.
    pub second_misses: u64,
}

/// What all threads took, from the run's begin on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    groups: [GroupAccount; Group::ALL.len()],
    /// Times that a CPU went over to another thread, or from idling to one.
    pub context_switches: u64,
    /// Calls from one CPU to another.
    pub cross_calls: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Threads that were asleep and were woken.
    pub wakes: u64,
    /// Times that a thread went on on another CPU than before.
    pub migrations: u64,
}

impl Account {
    /// What a group took.
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

    /// What was taken since an earlier account.
    pub fn since(&self, earlier: &Account) -> Account {
        let group = |now: &GroupAccount, then: &GroupAccount| GroupAccount {
            busy: now.busy.saturating_sub(then.busy),
            instructions: now.instructions - then.instructions,
            first_misses: now.first_misses - then.first_misses,
            second_misses: now.second_misses - then.second_misses,
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
