//! The benchmarks on cards with `send` and `recv` as their natural mode.
//!
//! A send returns only when the card has the message. So a window is sent by one thread for each of its messages, at most 64.
//! This is also the maximum number of messages in flight.

use super::latency::{self, Measured, Plan};
use super::pattern::Direction;
use super::payload::Payload;
use super::stream::{self, Shared};
use super::{Benchmark, Meter, Point, Row};
use nicety::{Buffer, Cluster, Error, Host};
use nicety_kernel::Rng;
use nicety_types::Time;
use std::cell::RefCell;
use std::rc::Rc;

const PING: u64 = 1;
const PONG: u64 = 2;
const DATA: u64 = 3;
/// Maximum number of threads that send a window.
const SENDERS: u64 = 64;

/// Measures a ping-pong.
pub(super) fn ping_pong(point: &Point<'_>) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let meter = Meter::new(&cluster);
    let plan = Plan::of(point, meter.clone());
    let directions = point.pattern.directions();
    let results: Vec<_> = directions.iter().map(|_| Rc::new(RefCell::new(Measured::default()))).collect();
    program_pings(&mut cluster, &plan, &results)?;
    point.run(&mut cluster)?;
    latency::row(point, &meter, &directions, &results)
}

/// Measures windows of messages.
pub(super) fn windows(point: &Point<'_>, benchmark: Benchmark) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let meter = Meter::new(&cluster);
    let flows = stream::flows(point);
    program_windows(&mut cluster, point, &flows, &meter)?;
    point.run(&mut cluster)?;
    stream::row(point, benchmark, &meter, &flows)
}

/// Adds the program of a ping-pong to every rank. The measurements of ranks that ping go to `results`, in the order of
/// directions.
fn program_pings(cluster: &mut Cluster, plan: &Plan, results: &[Rc<RefCell<Measured>>]) -> Result<(), Error> {
    let directions = plan.pattern.directions();
    for rank in 0..plan.pattern.nodes() {
        let ping = directions.iter().zip(results).find(|(d, _)| d.source == rank);
        let mut pinger = match ping {
            None => None,
            Some((direction, result)) => {
                Some(Pinger::new(cluster.host(rank), plan, *direction, result.clone())?)
            }
        };
        let host = cluster.host(rank);
        let answers = directions.iter().filter(|d| d.target == rank);
        let answers: Vec<(u32, Buffer)> =
            answers.map(|d| Ok((d.source, host.alloc(plan.size)?))).collect::<Result<_, Error>>()?;
        let plan = plan.clone();
        cluster.program(rank, move |host| async move {
            host.barrier().await;
            for round in 0..plan.rounds {
                if plan.pattern.is_concurrent() && round > 0 {
                    host.barrier().await;
                }
                // Each thread answers when its ping arrives, independently of the other threads.
                let threads: Vec<_> = answers
                    .iter()
                    .cloned()
                    .map(|(source, buffer)| host.spawn(move |host| answer(host, source, buffer)))
                    .collect();
                if let Some(pinger) = &mut pinger {
                    pinger.round(&host, round).await?;
                }
                for thread in threads {
                    thread.join().await?;
                }
            }
            Ok(())
        });
    }
    Ok(())
}

async fn answer(host: Host, source: u32, buffer: Buffer) -> Result<(), Error> {
    host.recv(&buffer, Some(source), Some(PING)).await?;
    host.send(&buffer, source, PONG).await
}

/// A rank that sends pings.
struct Pinger {
    plan: Plan,
    target: u32,
    out: Buffer,
    back: Buffer,
    rng: Rng,
    pattern: Vec<u8>,
    result: Rc<RefCell<Measured>>,
}

impl Pinger {
    fn new(
        host: &Host,
        plan: &Plan,
        direction: Direction,
        result: Rc<RefCell<Measured>>,
    ) -> Result<Pinger, Error> {
        Ok(Pinger {
            plan: plan.clone(),
            target: direction.target,
            out: host.alloc(plan.size)?,
            back: host.alloc(plan.size)?,
            rng: host.rng("ping-pong payload"),
            pattern: vec![0; plan.size as usize],
            result,
        })
    }

    async fn round(&mut self, host: &Host, round: u64) -> Result<(), Error> {
        self.rng.fill(&mut self.pattern);
        self.out.write(0, &self.pattern);
        let begun = host.now();
        host.restart_path();
        let reply = host.post_recv(&self.back, Some(self.target), Some(PONG)).await?;
        host.send(&self.out, self.target, PING).await?;
        host.received(reply).await?;
        let took = host.now().since(begun);
        self.plan.check_reply(&self.back, &self.pattern, round)?;
        if round >= self.plan.warmup {
            self.result.borrow_mut().add(took, &host.path(), host.now());
        }
        if round + 1 == self.plan.warmup {
            self.plan.meter.warm();
        }
        Ok(())
    }
}

/// Adds a program to every rank that sends windows in one direction.
fn program_windows(
    cluster: &mut Cluster,
    point: &Point<'_>,
    flows: &[(Direction, Shared)],
    meter: &Rc<Meter>,
) -> Result<(), Error> {
    for rank in 0..point.pattern.nodes() {
        let host = cluster.host(rank);
        let outgoing = flows.iter().find(|(d, _)| d.source == rank).cloned();
        let out = host.alloc(if outgoing.is_some() { point.size } else { 0 })?;
        let incoming = flows.iter().filter(|(d, _)| d.target == rank).cloned();
        let incoming: Vec<_> = incoming
            .map(|(direction, windows)| Ok((direction.source, host.alloc(point.size)?, windows)))
            .collect::<Result<_, Error>>()?;
        let end = WindowEnd { outgoing, out, incoming, window: point.window };
        let (warmup, rounds, meter) = (point.warmup, point.warmup + point.iterations, meter.clone());
        cluster.program(rank, move |host| async move {
            let mut rng = host.rng("stream payload");
            for round in 0..rounds {
                end.exchange(&host, &mut rng, round).await?;
                if round + 1 == warmup && !end.incoming.is_empty() {
                    meter.warm();
                }
            }
            Ok(())
        });
    }
    Ok(())
}

/// A rank's part in an exchange of windows: it sends windows, receives them, or does both.
struct WindowEnd {
    outgoing: Option<(Direction, Shared)>,
    out: Buffer,
    /// For each rank that sends windows to this rank: its number, the memory for its messages, and the times of its windows.
    incoming: Vec<(u32, Buffer, Shared)>,
    window: u64,
}

impl WindowEnd {
    /// Sends and receives one window.
    async fn exchange(&self, host: &Host, rng: &mut Rng, round: u64) -> Result<(), Error> {
        let window = self.window;
        let mut threads = Vec::new();
        for (source, memory, windows) in &self.incoming {
            let mut posted = Vec::with_capacity(window as usize);
            for _ in 0..window {
                posted.push(host.post_recv(memory, Some(*source), Some(DATA)).await?);
            }
            let (memory, windows) = (memory.clone(), windows.clone());
            threads.push(host.spawn(move |host| async move {
                for receive in posted {
                    host.received(receive).await?;
                }
                let mut windows = windows.borrow_mut();
                windows.ended.push(host.now());
                windows.check(&memory, round)
            }));
        }
        // All ranks have finished the previous window, and posted the receives of this one, before this window begins.
        host.barrier().await;
        if let Some((direction, windows)) = &self.outgoing {
            self.fill(rng, windows, host.now());
            for sender in 0..window.min(SENDERS) {
                let (out, target) = (self.out.clone(), direction.target);
                threads.push(host.spawn(move |host| async move {
                    for _ in (sender..window).step_by(SENDERS as usize) {
                        host.send(&out, target, DATA).await?;
                    }
                    Ok(())
                }));
            }
        }
        for thread in threads {
            thread.join().await?;
        }
        Ok(())
    }

    /// Fills the bytes of the next window, and records its begin.
    fn fill(&self, rng: &mut Rng, windows: &Shared, now: Time) {
        let mut windows = windows.borrow_mut();
        windows.sent = Payload::write(rng, &self.out);
        windows.begun.push(now);
    }
}
