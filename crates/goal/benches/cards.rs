//! A training step on modelled cards: an allreduce of 64 MiB of gradients around a ring, on spin-discrete over a fat tree. `cargo
//! bench -p nicety-goal --bench cards -- RANKS` prints CPU time, packets per second and memory; the default is 128 ranks. Each
//! part that a rank passes on has the size of a part on 1024 ranks.

use cpu_time::ThreadTime;
use nicety::{ClusterConfig, Error, cards as specs};
use nicety_goal::cards;
use nicety_goal::generate::{Pattern, Shape, generate};
use std::sync::Arc;

/// Bytes that a rank passes on in each step: 64 MiB divided by 1024 ranks.
const PART: u64 = 64 << 10;
/// Bytes of a packet of the card.
const PACKET: u64 = 4 << 10;

fn main() -> Result<(), Error> {
    let named = std::env::args().skip(1).find(|each| each != "--bench");
    let ranks: u32 = named.map_or(Ok(128), |text| text.parse()).expect("a number of ranks");
    let shape = Shape { ranks, size: PART * u64::from(ranks), iterations: 1, compute_ns: 0, layers: 1 };
    let schedule = generate(Pattern::RingAllreduce, &shape, &mut |_| true).expect("nothing stops it");
    let begun = ThreadTime::now();
    let config = ClusterConfig {
        topology: "fat-tree:36".parse()?,
        breakdown: false,
        ..ClusterConfig::new(ranks, specs::load("spin-discrete", &[])?)
    };
    let finished = cards::run(&Arc::new(schedule), config, 1, &mut |_| true).expect("it finishes");
    let took = begun.elapsed().as_secs_f64();
    let packets = finished.counts.messages * PART.div_ceil(PACKET);
    println!("training_step_cpu  {took:.2}  s");
    println!("training_step_packets_per_s  {:.0}  packets/s", packets as f64 / took);
    println!("training_step_events_per_s  {:.0}  events/s", finished.counts.steps as f64 / took);
    if let Some(bytes) = peak_bytes() {
        println!("training_step_memory  {:.0}  MB", bytes / 1e6);
    }
    println!(
        "training_step_simulated  {:.3}  us",
        finished.finish_ps.iter().max().copied().unwrap_or(0) as f64 / 1e6
    );
    Ok(())
}

/// Returns the peak memory of this process in bytes.
fn peak_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kb = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(kb.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}
