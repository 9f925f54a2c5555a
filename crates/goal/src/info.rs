//! Statistics of a schedule.

use crate::check::in_order;
use crate::schedule::{ANY, Kind, Rank, Schedule};
use schemars::JsonSchema;
use serde::Serialize;

/// Statistics of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ScheduleInfo")]
pub struct Info {
    /// The file.
    pub file: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations, over all ranks.
    pub operations: u64,
    /// Number of sends.
    pub sends: u64,
    /// Number of receives.
    pub recvs: u64,
    /// Number of calculations.
    pub calcs: u64,
    /// Bytes of all sends.
    pub bytes: u64,
    /// Nanoseconds of all calculations, summed over all CPUs.
    pub calc_ns: u64,
    /// Number of dependencies between operations.
    pub dependencies: u64,
    /// Number of operations in the longest chain of dependencies within a rank.
    pub depth: u64,
    /// Maximum number of peers of a rank. A peer is another rank with which it exchanges messages.
    pub degree: u64,
    /// Maximum number of operations of a rank.
    pub rank_operations: u64,
    /// Maximum number of CPUs of a rank.
    pub cpus: u32,
    /// Maximum number of network interfaces of a rank.
    pub nics: u32,
}

impl Info {
    /// Returns the statistics of a schedule. `go_on` is called for each rank; if it returns false, the result is `None`.
    ///
    /// Operations that depend on each other in a cycle are in no chain.
    pub fn of(file: &str, schedule: &Schedule, go_on: &mut dyn FnMut(u32) -> bool) -> Option<Info> {
        let mut info = Info { file: file.to_owned(), ranks: schedule.ranks(), ..Info::default() };
        let mut peers = Vec::new();
        for (number, rank) in (0..).zip(schedule.iter()) {
            if !go_on(number) {
                return None;
            }
            info.count(rank);
            peers.clear();
            peers.extend(rank.ops.iter().filter(|op| op.kind != Kind::Calc).map(|op| op.peer));
            peers.sort_unstable();
            peers.dedup();
            peers.retain(|peer| *peer != number && *peer != ANY);
            info.degree = info.degree.max(peers.len() as u64);
            info.depth = info.depth.max(depth(rank));
        }
        Some(info)
    }

    fn count(&mut self, rank: Rank<'_>) {
        self.operations += rank.ops.len() as u64;
        self.rank_operations = self.rank_operations.max(rank.ops.len() as u64);
        self.dependencies += rank.edges() as u64;
        for op in rank.ops {
            match op.kind {
                Kind::Send => (self.sends, self.bytes) = (self.sends + 1, self.bytes.saturating_add(op.size)),
                Kind::Recv => self.recvs += 1,
                Kind::Calc => {
                    (self.calcs, self.calc_ns) = (self.calcs + 1, self.calc_ns.saturating_add(op.size))
                }
            }
            self.cpus = self.cpus.max(u32::from(op.cpu) + 1);
            self.nics = self.nics.max(u32::from(op.nic) + 1);
        }
    }
}

fn depth(rank: Rank<'_>) -> u64 {
    // For each operation, the number of operations in the longest chain before it.
    let mut before = vec![0_u64; rank.ops.len()];
    let mut longest = 0;
    in_order(rank, |op| {
        let here = before[op as usize] + 1;
        longest = longest.max(here);
        for dependent in rank.dependents(op as usize) {
            let behind = &mut before[dependent.op() as usize];
            *behind = here.max(*behind);
        }
    });
    longest
}
