//! The measurement of one point.

use super::window::{Addresses, prepare};
use super::{Point, Test};
use nicety::{Environment, Error};
use nicety_host::pcie::PcieSpec;
use nicety_kernel::{Config, RunError, Sim, World};
use nicety_nic_core::parts::Access;
use nicety_types::{Duration, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The time between two samples of latency. All DLLPs of a sample have then left.
const APART: Duration = Duration::from_us(2);
/// Transfers of a test of bandwidth for each sample of a test of latency.
const TRANSFERS: u64 = 16;

/// The figures of a point.
pub(super) struct Figures {
    pub(super) transfers: u64,
    /// Latencies in ns, in ascending order. Empty for a test of bandwidth.
    pub(super) latencies: Vec<f64>,
    /// Transfers per second, for a test of bandwidth.
    pub(super) rate: Option<f64>,
}

pub(super) fn measure(
    pcie: PcieSpec,
    point: &Point,
    samples: u64,
    environment: &Environment<'_>,
) -> Result<Figures, Error> {
    let interrupt = environment.interrupt.clone().map(Into::into);
    let mut world: World<()> = World::new(Config { seed: 1, interrupt, ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    let access = Access::new(&sim, pcie);
    let mut addresses = Addresses::new(point, sim.rng("addresses"));
    prepare(access.bus(), point, &mut addresses, &mut sim.rng("thrash"));
    if point.test.is_bandwidth() {
        let ends = Rc::new(RefCell::new(Vec::new()));
        stream(&sim, &access, point, addresses, samples * TRANSFERS, &ends);
        run(&mut world)?;
        let (transfers, rate) = rate(&ends.borrow(), point.test);
        return Ok(Figures { transfers, latencies: Vec::new(), rate: Some(rate) });
    }
    let taken = Rc::new(RefCell::new(Vec::new()));
    sim.spawn_program("pcie", sample(sim.clone(), access, *point, addresses, samples, taken.clone()));
    run(&mut world)?;
    let mut latencies = taken.borrow().clone();
    latencies.sort_by(f64::total_cmp);
    Ok(Figures { transfers: samples, latencies, rate: None })
}

fn run(world: &mut World<()>) -> Result<(), Error> {
    match world.run() {
        Ok(_) => Ok(()),
        Err(RunError::Interrupted { .. } | RunError::Left { .. }) => Err(Error::Interrupted),
        Err(error) => Err(Error::Program(error.to_string())),
    }
}

/// Takes samples of a latency by timestamps.
async fn sample(
    sim: Sim,
    access: Rc<Access>,
    point: Point,
    mut addresses: Addresses,
    samples: u64,
    taken: Rc<RefCell<Vec<f64>>>,
) {
    let spec = *access.spec();
    let mut phases = sim.rng("phases");
    let step = spec.clock.cycles(spec.step);
    for _ in 0..samples {
        sim.delay(APART + Duration::from_ps(phases.below(step.ps().max(1)))).await;
        let (address, begin) = (addresses.next(), sim.now());
        match point.test {
            Test::LatencyCommandRead => access.read(address, point.size).await,
            Test::LatencyCommandWriteRead => access.write_and_read(address, point.size).await,
            Test::LatencyDmaRead => access.dma_read(address, point.card_offset, point.size).await,
            _ => {
                access.dma_write(address, point.card_offset, point.size).await;
                access.dma_read(address, point.card_offset, point.size).await;
            }
        }
        let stamp = |time: Time| spec.clock.cycles_in(time.since(Time::ZERO)) / spec.step;
        let cycles = (stamp(sim.now()) - stamp(begin)) * spec.step;
        taken.borrow_mut().push(cycles as f64 * 1e9 / spec.clock.hz() as f64);
    }
}

/// Starts the workers of a test of bandwidth. They note the ends of transfers.
fn stream(
    sim: &Sim,
    access: &Rc<Access>,
    point: &Point,
    addresses: Addresses,
    transfers: u64,
    ends: &Rc<RefCell<Vec<Time>>>,
) {
    let engines = access.spec().engines;
    let addresses = Rc::new(RefCell::new(addresses));
    // The last transfers of all workers overlap less, and are not counted.
    let left = Rc::new(Cell::new(transfers + engines.workers));
    for worker in 0..engines.workers {
        let (sim, access, point) = (sim.clone(), access.clone(), *point);
        let (addresses, left, ends) = (addresses.clone(), left.clone(), ends.clone());
        sim.clone().spawn_program(format!("worker {worker}"), async move {
            while left.get() > 0 {
                let number = left.replace(left.get() - 1);
                sim.delay(engines.pause).await;
                let address = addresses.borrow_mut().next();
                let reads = match point.test {
                    Test::BandwidthRead => true,
                    Test::BandwidthWrite => false,
                    _ => number % 2 == 1,
                };
                match reads {
                    true => access.dma_read(address, point.card_offset, point.size).await,
                    false => access.dma_write(address, point.card_offset, point.size).await,
                }
                ends.borrow_mut().push(sim.now());
            }
        });
    }
}

/// Returns the number of counted transfers, and their rate per second. The first quarter and the last eighth are not counted.
/// For a test of both directions the rate is half of it.
fn rate(ends: &[Time], test: Test) -> (u64, f64) {
    let last = ends.len() - ends.len() / 8 - 1;
    let first = last / 4;
    let counted = (last - first) as u64;
    let rate = counted as f64 * 1e12 / ends[last].since(ends[first]).ps() as f64;
    (counted, if test == Test::BandwidthReadWrite { rate / 2.0 } else { rate })
}
