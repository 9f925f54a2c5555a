//! Throughput of several processes that move a payload together. Each process communicates with its own thread of the host.
//!
//! A run lasts from the first call of any thread to the last return of any thread. Each thread begins at a random time, which
//! differs from run to run, as on a real host. Otherwise the threads would contend in the same way in every run, and the results
//! would have no spread. Background noise increases the spread.

use super::request::DIRECT;
use super::rig::{Far, Load, Near};
use super::{Mode, Point, Row};
use nicety::{Duration, Error, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum number of direct messages of a process. The messages are all alike, and their rate is steady from the first one on.
const DIRECT_MESSAGES: u64 = 500;
/// Each thread begins at a random time below this value.
const BEGIN: Duration = Duration::from_us(20);

/// The messages of a run, and the times of its begin and end.
struct Moved {
    first: Time,
    last: Time,
}

pub(super) fn measure(point: &Point<'_>, processes: u32, payload: u64, runs: u32) -> Result<Row, Error> {
    let load = plan(point, processes, payload);
    let bytes = u64::from(load.bytes) * u64::from(load.messages) * u64::from(processes);
    let rate = |run: u32| {
        // Each run has a seed of its own.
        let seed = point.request.seed.wrapping_add(u64::from(run) << 32);
        let took = one(point, &load, seed, run == 0)?;
        Ok(bytes as f64 / (took.ps() as f64 / 1e12))
    };
    let rates = (0..runs).map(rate).collect::<Result<Vec<f64>, Error>>()?;
    let mean = rates.iter().sum::<f64>() / f64::from(runs);
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    Ok(Row {
        processes: Some(processes),
        message_bytes: Some(load.bytes.into()),
        messages: Some(u64::from(load.messages) * u64::from(processes)),
        payload_bytes: Some(bytes),
        runs: Some(runs),
        bandwidth_bytes_per_s: Some(mean),
        // The deviation of a single run is undefined.
        stddev_bytes_per_s: (runs > 1).then(|| (squares / f64::from(runs - 1)).sqrt()),
        ..point.row(&load, point.size)
    })
}

/// Returns the kind and number of messages of each process. Messages are whole, and each process has at least one.
fn plan(point: &Point<'_>, processes: u32, payload: u64) -> Load {
    let load = point.load(processes);
    let each = payload.div_ceil(u64::from(processes));
    match point.mode {
        Mode::Indirect => Load { messages: each.div_ceil(load.bytes.into()) as u32, ..load },
        Mode::Direct => {
            let bytes = point.size.min(DIRECT);
            Load { bytes: bytes as u32, messages: each.div_ceil(bytes).min(DIRECT_MESSAGES) as u32, ..load }
        }
    }
}

/// Makes one run, and returns its duration.
fn one(point: &Point<'_>, load: &Load, seed: u64, first: bool) -> Result<Duration, Error> {
    let mut cluster = point.cluster(seed, first)?;
    let program = cluster.host(0).channels()?.load(point.elf)?;
    let far = Far::start_all(cluster.host(0), &program, load)?;
    let moved: Rc<RefCell<Option<Moved>>> = Rc::default();
    let (theirs, load) = (moved.clone(), *load);
    cluster.program(0, move |host| async move {
        let device = host.channels()?.open();
        let mut rng = host.rng("beginnings of threads");
        let mut ready = Vec::new();
        for far in far {
            let channel = device.subscribe(far.target()).await?;
            ready.push((far, channel, Duration::from_ps(rng.below(BEGIN.ps()))));
        }
        let mut threads = Vec::new();
        for (far, channel, after) in ready {
            threads.push(host.spawn(move |host| async move {
                let near = Near::new(host.clone(), channel, load, far)?;
                host.pause(after).await;
                let begun = host.now();
                for message in 0..load.messages {
                    near.prepare(message)?;
                    near.transfer(message).await?;
                    near.check(message)?;
                }
                let last = host.now();
                near.finish().await?;
                Ok(Moved { first: begun, last })
            }));
        }
        for thread in threads {
            let Moved { first, last } = thread.join().await?;
            let mut moved = theirs.borrow_mut();
            let before = moved.take().unwrap_or(Moved { first, last });
            *moved = Some(Moved { first: before.first.min(first), last: before.last.max(last) });
        }
        Ok(())
    });
    point.run(&mut cluster, first)?;
    let Moved { first, last } = moved.take().expect("the program has ended");
    Ok(last.since(first))
}
