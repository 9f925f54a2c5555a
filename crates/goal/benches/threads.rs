//! Measures the wall time of runs in one thread and in two threads, without the time to read schedules. Runs with one and two
//! threads alternate. One schedule is a dissemination of 65536 ranks by LogGOPS. The other is a permutation of 1024 hosts with
//! cards over a fat tree. It prints lines of the form `name  value  unit`. Ratios are those of the medians. `cargo bench -p
//! nicety-goal --bench threads -- ROUNDS`; the default is three rounds. On a machine with fewer than two idle cores, the results
//! depend on other load.

use nicety::{ClusterConfig, Error, cards as specs};
use nicety_goal::generate::{Pattern, Shape, generate};
use nicety_goal::loggops::{self, Parameters, Rules};
use nicety_goal::{Builder, Kind, Op, Schedule, cards};
use nicety_types::{Duration, Gap};
use std::sync::Arc;
use std::time::Instant;

/// Numbers of the permutation: hosts, messages that each host sends in sequence, and bytes of a message.
const HOSTS: u32 = 1024;
const MESSAGES: u32 = 20;
const BYTES: u64 = 64 << 10;

fn main() -> Result<(), Error> {
    let named = std::env::args().skip(1).find(|each| each != "--bench");
    let rounds: usize = named.map_or(Ok(3), |text| text.parse()).expect("a number of rounds");

    let shape = Shape { ranks: 65_536, size: 8, iterations: 1, compute_ns: 0, layers: 1 };
    let dissemination = generate(Pattern::Dissemination, &shape, &mut |_| true).expect("nothing stops it");
    let parameters = Parameters {
        latency: Duration::from_ns(2500),
        overhead: Duration::from_ns(1500),
        gap: Duration::from_ns(1000),
        gap_per_byte: Gap::new(6000, 1),
        overhead_per_byte: Gap::ZERO,
        eager_bytes: 65_535,
    };
    compare("loggops_dissemination", rounds, |threads| {
        loggops::run_in_threads(&dissemination, &parameters, Rules::Own, threads, &mut |_| true)
            .expect("it finishes")
            .finish_ps
    });

    let permutation = Arc::new(permutation());
    let config = ClusterConfig {
        topology: "fat-tree:36".parse()?,
        breakdown: false,
        ..ClusterConfig::new(HOSTS, specs::load("spin-discrete", &[])?)
    };
    compare("cards_permutation", rounds, |threads| {
        cards::run(&permutation, config.clone(), threads, &mut |_| true).expect("it finishes").finish_ps
    });
    Ok(())
}

/// Returns a permutation in which each rank sends to the rank with its bits in reverse.
fn permutation() -> Schedule {
    let to = |rank: u32| rank.reverse_bits() >> (u32::BITS - HOSTS.ilog2());
    let mut builder = Builder::new();
    for rank in 0..HOSTS {
        // Reversing the bits twice gives the same rank. So the source of a rank is also its destination.
        for kind in [Kind::Recv, Kind::Send] {
            (0..MESSAGES).for_each(|tag| {
                builder.push(Op::new(kind, BYTES, to(rank), tag));
            });
        }
        builder.end_rank();
    }
    builder.finish()
}

/// Runs alternately in one thread and in two, and prints the median of each and their ratio.
fn compare<T: PartialEq>(name: &str, rounds: usize, run: impl Fn(u32) -> T) {
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let results = [1, 2].map(|threads| {
            let begun = Instant::now();
            let result = run(threads);
            took[threads as usize - 1].push(begun.elapsed().as_secs_f64());
            result
        });
        assert!(results[0] == results[1], "{name}: threads change the result");
    }
    let [one, two] = took.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("{name}_one_thread  {one:.3}  s");
    println!("{name}_two_threads  {two:.3}  s");
    println!("{name}_ratio  {:.2}  x", one / two);
}
