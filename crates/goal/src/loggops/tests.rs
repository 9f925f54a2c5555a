//! Runs with windows, in any number of threads, equal runs with one heap to the last bit.

use super::costs::Costs;
use super::engine::World;
use super::{Noise, Parameters, run_global, windows};
use crate::schedule::{ANY, Builder, Kind, Op, Schedule};
use nicety_host::{Intervals, NoiseSpec, Regularity};
use nicety_types::{Duration, Gap};
use proptest::collection::vec;
use proptest::prelude::*;

/// A message: source, destination and bytes; the CPU and interface at each end. Two flags give a wildcard source and a wildcard
/// tag of its receive. The last two numbers are the distances from each end to the operation on which it depends.
type Step = (u32, u32, u64, [(u8, u8); 2], [bool; 2], [u8; 2]);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || prop_oneof![3 => Just((0, 0)), 1 => (0..3_u8, 0..2_u8)];
    let wild = || proptest::bool::weighted(0.2);
    vec((0..5_u32, 0..5_u32, 0..3000_u64, [place(), place()], [wild(), wild()], any::<[u8; 2]>()), 0..80)
}

/// Returns a schedule. All messages have one tag, so they match in order. Wildcards change the matches.
fn schedule(ranks: u32, steps: &[Step]) -> Schedule {
    let mut ops: Vec<Vec<(Op, Option<u32>)>> = vec![Vec::new(); ranks as usize];
    for (from, to, size, places, [any_source, any_tag], back) in steps {
        let (from, to) = (from % ranks, to % ranks);
        let send = Op::new(Kind::Send, *size, to, 0);
        let recv =
            Op::new(Kind::Recv, *size, if *any_source { ANY } else { from }, if *any_tag { ANY } else { 0 });
        for ((rank, mut op), ((cpu, nic), back)) in
            [(from, send), (to, recv)].into_iter().zip(places.iter().zip(back))
        {
            (op.cpu, op.nic) = (*cpu, *nic);
            let own = &mut ops[rank as usize];
            // Receives have no dependencies, so no receive waits for its own message.
            let first = own.len().checked_sub(1 + usize::from(*back % 4)).filter(|_| op.kind == Kind::Send);
            own.push((op, first.map(|first| first as u32)));
            let last = own.len() as u32 - 1;
            own.push((Op::new(Kind::Calc, size % 777, 0, 0).on_cpu(*cpu), Some(last)));
        }
    }
    let mut builder = Builder::new();
    for rank in ops {
        for (op, _) in &rank {
            builder.push(*op);
        }
        for (then, (_, first)) in (0..).zip(rank) {
            if let Some(first) = first {
                builder.depend(first, then, then % 5 == 0);
            }
        }
        builder.end_rank();
    }
    builder.finish()
}

proptest! {
    #[test]
    fn windows_are_as_one_heap(
        ranks in 1..6_u32,
        steps in steps(),
        times in (1..4000_u64, 0..2000_u64, 0..2000_u64),
        eager in prop_oneof![Just(0_u64), Just(1500), Just(1 << 20)],
        seed in proptest::option::of(any::<u64>()),
    ) {
        let schedule = schedule(ranks, &steps);
        let parameters = Parameters {
            latency: Duration::from_ps(times.0),
            overhead: Duration::from_ps(times.1),
            gap: Duration::from_ps(times.2),
            gap_per_byte: Gap::new(times.0 % 7, 3),
            overhead_per_byte: Gap::new(times.1 % 5, 2),
            eager_bytes: eager,
        };
        let costs = Costs::own(&parameters);
        let (period, duration) = (Duration::from_ps(700), Duration::from_ps(200));
        let spec = NoiseSpec { period, duration, regularity: Regularity::Exponential };
        let noise = seed.map(|seed| Noise { intervals: Intervals::Drawn(spec), rank: None, seed });
        let world = |threads: u32| {
            let mut world = World::new(&schedule, costs, threads);
            world.noise = noise.as_ref();
            world
        };
        let windows = [1, 2, 3, 9].map(|threads| windows::run(&world(threads), &mut |_| true));
        let heap = run_global::<false>(&world(1), &mut |_| true);
        let times = |run: Result<super::Finished, super::Failure>| match run {
            Ok(run) => Ok((run.finish_ps, run.counts.operations, run.counts.messages)),
            // A wildcard receive may have taken the message of another receive.
            Err(super::Failure::Stuck(stuck)) => Err((stuck.sends, stuck.receives, stuck.waiting)),
            Err(other) => panic!("{other:?}"),
        };
        let heap = times(heap);
        for windows in windows.map(times) {
            prop_assert_eq!(&windows, &heap);
        }
    }
}
