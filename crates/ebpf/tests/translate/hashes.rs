//! The ends of chains that a lookup in place meets.

use super::build::{compiler, object, options};
use super::card::Card;
use super::ten::cases;
use nicety_ebpf::card::Layout;
use nicety_ebpf::translate::Options;

const DROP: u32 = 1;
const PASS: u32 = 2;

/// The mark behind the last entry of a bucket's chain.
fn mark_of(bucket: u32) -> u32 {
    2 * bucket + 1
}

#[test]
fn a_chain_that_ends_in_another_one_is_searched_by_the_runtime() {
    let Some(zig) = compiler() else {
        eprintln!("skipped: lookups in place (no ziglang in .venv, and no NICETY_ZIG)");
        return;
    };
    let case = cases().into_iter().find(|case| case.name == "firewall").unwrap();
    let object = object(&zig, case.name);
    let flows = object.maps.iter().find(|map| map.name == "flows").unwrap();
    for isa in ["rv32imac_zicsr", "rv64imac_zicsr"] {
        let options = Options { hashes: true, ..options(isa, true) };
        let layout = Layout::of(flows, options.cpus, None).unwrap();
        let mut card = Card::new(&object, "firewall", &mut case.filled(&object), isa, &options).unwrap();
        let mut run = |first: &dyn Fn(u32) -> u32| {
            let memory = card.variable("nicety_map_memory_flows");
            for bucket in 0..=layout.mask {
                let at = (layout.buckets + 8 * bucket + 4) as usize;
                memory[at..at + 4].copy_from_slice(&first(bucket).to_le_bytes());
            }
            let ran = card.run(&case.packets[0]).unwrap();
            (ran.value, ran.calls)
        };
        // The flow is in the runtime's map alone. A bucket is unused, or its chain is empty.
        assert_eq!(run(&|_| 0), (DROP, 0), "{isa}");
        assert_eq!(run(&mark_of), (DROP, 0), "{isa}");
        assert_eq!(run(&|bucket| mark_of(bucket ^ 1)), (PASS, 1), "{isa}");
        assert_eq!(run(&|bucket| mark_of(bucket + layout.mask + 1)), (PASS, 1), "{isa}");
    }
}
