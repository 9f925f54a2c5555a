//! The check of profiles of handlers.

use nicety_hpu::profile::{CAUSES, Cause};
use nicety_nic_processors::{Processors, ProgramProfile};

/// Checks that the profiles of a card's handlers have each instruction and each cycle once, and waits by cause as the
/// card counts them.
///
/// # Panics
/// When a sum differs.
pub fn has_each_cycle_once(processors: &Processors) {
    let statistics = processors.handler_statistics();
    let (mut cycles, mut instructions, mut overlaps) = ([0; CAUSES], 0, false);
    for ProgramProfile { image, totals } in processors.take_profiles() {
        overlaps |= image.core().overlap.is_some();
        totals.for_each(&image, |executed| {
            cycles[executed.cause as usize] += executed.cycles;
            instructions += executed.executions;
        });
    }
    assert_eq!(cycles.iter().sum::<u64>(), statistics.cycles);
    assert_eq!(instructions, statistics.instructions);
    if overlaps {
        // Waits are hidden behind other instructions.
        return;
    }
    let of = |causes: &[Cause]| causes.iter().map(|cause| cycles[*cause as usize]).sum::<u64>();
    assert_eq!(of(&[Cause::Ready]), statistics.issue_waits);
    assert_eq!(of(&[Cause::Fetch]), statistics.fetch_waits);
    assert_eq!(of(&[Cause::Cache]), statistics.cache_waits);
    assert_eq!(of(&[Cause::Queue, Cause::Transfer]), statistics.stalled);
    let banks = of(&[Cause::Bank]);
    if statistics.cache_hits + statistics.cache_misses == 0 {
        assert_eq!(banks, statistics.memory_waits);
    }
    // The waits of a cache's lines for banks are those for its lines.
    assert!(banks <= statistics.memory_waits, "{banks} of {}", statistics.memory_waits);
}
