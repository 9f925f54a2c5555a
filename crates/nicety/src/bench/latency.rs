//! Ping-pong: rank 0 sends, whoever the mode says answers, rank 0 checks every byte of the reply.

use super::{Mode, Point, Row, StageRow};
use crate::host::{Buffer, Host};
use crate::{Duration, Error};
use nicety_portals::{CtHandle, List, Md, MdOptions, Me, MeOptions, PutRequest};
use nicety_types::{NodeId, Path, Stage};
use std::cell::RefCell;
use std::rc::Rc;

const PT: u32 = 1;
const PING: u64 = 1;
const PONG: u64 = 2;
/// Replies that are prepared ahead of their pings, where the card sends them by itself.
const AHEAD: u64 = 64;

/// What rank 0 measured.
struct Measured {
    round_trips: Vec<Duration>,
    /// Sums over the round trips, by stage.
    stages: Vec<(Stage, Duration)>,
    /// Paths that did not begin where their round trip did, and so explain another time.
    strays: u64,
}

pub(super) fn measure(point: &Point<'_>) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let measured = Rc::new(RefCell::new(None));
    let (size, iterations, warmup, mode) = (point.size, point.iterations, point.warmup, point.mode);
    let rounds = warmup + iterations;

    let result = measured.clone();
    let seed = point.cluster.seed;
    let users_handlers = point.users_handlers;
    cluster.program(0, move |host| async move {
        let pinger = Pinger::set_up(host, size).await?;
        *result.borrow_mut() = Some(pinger.measure(seed, warmup, iterations, users_handlers).await?);
        Ok(())
    });

    let ponger = Ponger::set_up(cluster.host(1), point)?;
    cluster.program(1, move |host| async move {
        match mode {
            Mode::Rdma => ponger.answer_from_host(&host, rounds).await,
            Mode::Portals4 => ponger.answer_by_trigger(&host, rounds).await,
            Mode::SpinStore | Mode::SpinStream => ponger.answer_from_card(&host).await,
        }
    });
    cluster.run()?;

    let measured = measured.take().expect("the program ended without an error");
    if measured.strays > 0 {
        return Err(Error::Program(format!("{} round trips have no breakdown", measured.strays)));
    }
    // One division of whole picoseconds, so that what is exact prints exactly.
    let half = |d: Duration, rounds: u64| d.ps() as f64 / (2_000 * rounds) as f64;
    let of = |d: Option<&Duration>| d.map(|d| half(*d, 1));
    let total: Duration = measured.round_trips.iter().copied().sum();
    let each = |d: Duration| half(d, iterations);
    let stage = |(stage, d): (Stage, Duration)| StageRow { stage: stage.name(), ns: each(d) };
    Ok(Row {
        mode: mode.name(),
        size_bytes: size,
        iterations,
        latency_ns: Some(each(total)),
        min_ns: of(measured.round_trips.iter().min()),
        max_ns: of(measured.round_trips.iter().max()),
        verified: true,
        stages: Some(measured.stages.into_iter().map(stage).collect()),
        ..Row::default()
    })
}

/// Options of a match entry whose counter counts messages.
fn counted() -> MeOptions {
    MeOptions::OP_PUT | MeOptions::EVENT_COMM_DISABLE | MeOptions::EVENT_LINK_DISABLE | MeOptions::EVENT_CT_COMM
}

fn descriptor(buffer: &Buffer) -> Md {
    let options = MdOptions::EVENT_SEND_DISABLE;
    Md { start: buffer.address(), length: buffer.len(), options, ..Md::default() }
}

/// Rank 0.
struct Pinger {
    host: Host,
    size: u64,
    out: Buffer,
    back: Buffer,
    ping: PutRequest,
    /// Counts bytes of replies, since a reply may come as one message or as many; messages where there are no bytes.
    replies: CtHandle,
}

impl Pinger {
    async fn set_up(host: Host, size: u64) -> Result<Pinger, Error> {
        let (out, back) = (host.alloc(size)?, host.alloc(size)?);
        let replies = host.ct_alloc()?;
        host.pt_alloc(Some(PT), None)?;
        let bytes = if size > 0 { MeOptions::EVENT_CT_BYTES } else { MeOptions::empty() };
        let me = Me {
            start: back.address(),
            length: size,
            match_bits: PONG,
            options: counted() | bytes,
            ct: Some(replies),
            ..Me::default()
        };
        let appending = host.me_append(PT, me, List::Priority).await?;
        host.appended(appending).await?;
        let md = host.md_bind(descriptor(&out))?;
        let ping = PutRequest::new(md, size, NodeId(1), PT, PING);
        Ok(Pinger { host, size, out, back, ping, replies })
    }

    async fn measure(
        &self,
        seed: u64,
        warmup: u64,
        iterations: u64,
        users_handlers: bool,
    ) -> Result<Measured, Error> {
        let mut rng = self.host.rng("ping-pong payload");
        let mut round_trips = Vec::with_capacity(iterations as usize);
        let mut totals = vec![Duration::ZERO; Stage::ALL.len()];
        let mut strays = 0;
        let mut pattern = vec![0; self.size as usize];
        self.host.barrier().await;
        for round in 0..warmup + iterations {
            rng.fill(&mut pattern);
            self.out.write(0, &pattern);
            let begun = self.host.now();
            self.host.restart_path();
            self.host.put(&self.ping).await?;
            self.host.ct_wait(self.replies, (round + 1) * self.size.max(1)).await?;
            let took = self.host.now().since(begun);
            self.check(&pattern, round, seed, users_handlers)?;
            if round < warmup {
                continue;
            }
            round_trips.push(took);
            let path: Path = self.host.path();
            strays += u64::from(path.origin() != begun || path.at() != self.host.now());
            for (stage, duration) in path.stages() {
                totals[stage as usize] += duration;
            }
        }
        let stages = Stage::ALL.iter().copied().zip(totals).filter(|(_, d)| !d.is_zero()).collect();
        Ok(Measured { round_trips, stages, strays })
    }

    fn check(&self, expected: &[u8], round: u64, seed: u64, users_handlers: bool) -> Result<(), Error> {
        let found = self.back.read(0, self.size);
        let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) else { return Ok(()) };
        let who = if users_handlers { "the handlers" } else { "the card" };
        Err(Error::Program(format!(
            "the reply of round {round} is wrong from byte {at} on: {:#04x} instead of {:#04x}; {who} sent back other \
             bytes than came, or to another offset (seed {seed})",
            found[at], expected[at]
        )))
    }
}

/// Rank 1.
struct Ponger {
    me: Me,
    pong: PutRequest,
    pings: CtHandle,
}

impl Ponger {
    /// Host memory, descriptor and, where the mode has them, handlers: all that takes no time.
    fn set_up(host: &Host, point: &Point<'_>) -> Result<Ponger, Error> {
        let memory = host.alloc(point.size)?;
        let pings = host.ct_alloc()?;
        host.pt_alloc(Some(PT), None)?;
        let md = host.md_bind(descriptor(&memory))?;
        let handlers = match point.handlers {
            None => None,
            Some(handlers) => Some(host.attach(handlers, &initial_state(host), None)?),
        };
        let me = Me {
            start: memory.address(),
            length: point.size,
            match_bits: PING,
            options: counted(),
            ct: Some(pings),
            handlers,
            ..Me::default()
        };
        Ok(Ponger { me, pong: PutRequest::new(md, point.size, NodeId(0), PT, PONG), pings })
    }

    async fn append(&self, host: &Host) -> Result<(), Error> {
        let appending = host.me_append(PT, self.me, List::Priority).await?;
        host.appended(appending).await?;
        Ok(())
    }

    async fn answer_from_host(&self, host: &Host, rounds: u64) -> Result<(), Error> {
        self.append(host).await?;
        host.barrier().await;
        for round in 0..rounds {
            host.ct_wait(self.pings, round + 1).await?;
            host.put(&self.pong).await?;
        }
        Ok(())
    }

    async fn answer_by_trigger(&self, host: &Host, rounds: u64) -> Result<(), Error> {
        self.append(host).await?;
        for round in 0..rounds.min(AHEAD) {
            host.triggered_put(self.pong, self.pings, round + 1).await?;
        }
        host.barrier().await;
        for round in AHEAD..rounds {
            host.ct_wait(self.pings, round - AHEAD + 1).await?;
            host.triggered_put(self.pong, self.pings, round + 1).await?;
        }
        Ok(())
    }

    async fn answer_from_card(&self, host: &Host) -> Result<(), Error> {
        self.append(host).await?;
        host.barrier().await;
        Ok(())
    }
}

/// `pingpong_t` of pingpong.h.
fn initial_state(host: &Host) -> [u8; 24] {
    let mut state = [0; 24];
    state[..8].copy_from_slice(&PONG.to_le_bytes());
    state[8..12].copy_from_slice(&0u32.to_le_bytes());
    state[12..16].copy_from_slice(&(host.packet_payload() as u32).to_le_bytes());
    state
}
