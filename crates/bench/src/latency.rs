//! Ping-pong. A rank sends a ping, the other side answers as the mode says, and the rank checks every byte of the reply.

use super::figures::Spread;
use super::pattern::Direction;
use super::payload::first_difference;
use super::{Flow, Meter, Mode, Pattern, Point, Row, StageRow, fairness};
use nicety::record::NOT_ACCOUNTED_FOR;
use nicety::{Buffer, Duration, Error, Host, Portals, Time};
use nicety_portals::{
    CtHandle, EqHandle, EventKind, List, Md, MdHandle, MdOptions, Me, MeOptions, PutRequest, Source,
};
use nicety_types::{NodeId, Path, Stage};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const PT: u32 = 1;
const PING: u64 = 1;
const PONG: u64 = 2;
/// Number of replies that are prepared ahead of their pings, if the card sends replies by triggered puts.
const AHEAD: u64 = 64;

/// The measurements of a pinging rank.
#[derive(Default)]
pub(super) struct Measured {
    round_trips: Vec<Duration>,
    /// For each stage, the sum over all round trips.
    stages: BTreeMap<Stage, Duration>,
    /// The sum of time that belongs to no stage. `strays` is the number of round trips with such time. In these, the path to the
    /// reply begins with another message, or a part of the path is unknown.
    unaccounted: Duration,
    strays: u64,
}

pub(super) fn measure(point: &Point<'_>) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let meter = Meter::new(&cluster);
    let directions = point.pattern.directions();
    let plan = Plan::of(point, meter.clone());
    let mut results = Vec::new();
    for rank in 0..point.pattern.nodes() {
        let answers: Vec<u32> = directions.iter().filter(|d| d.target == rank).map(|d| d.source).collect();
        let ponger = Ponger::set_up(cluster.host(rank), point, &answers)?;
        let ping = directions.iter().find(|d| d.source == rank).copied();
        let result = Rc::new(RefCell::new(Measured::default()));
        if ping.is_some() {
            results.push(result.clone());
        }
        let plan = plan.clone();
        cluster.program(rank, move |host| plan.run(host, ping, ponger, result));
    }
    point.run(&mut cluster)?;
    row(point, &meter, &directions, &results)
}

/// Returns the row of a point from the measurements of all ranks that ping, one for each direction.
pub(super) fn row(
    point: &Point<'_>,
    meter: &Meter,
    directions: &[Direction],
    results: &[Rc<RefCell<Measured>>],
) -> Result<Row, Error> {
    let measured: Vec<_> = results.iter().map(|result| result.borrow()).collect();
    let strays: u64 = measured.iter().map(|m| m.strays).sum();
    let unaccounted: Duration = measured.iter().map(|m| m.unaccounted).sum();
    let spread = Spread::of(measured.iter().flat_map(|m| m.round_trips.iter().copied()), 2);
    let rounds: usize = measured.iter().map(|m| m.round_trips.len()).sum();
    let mut totals: BTreeMap<Stage, Duration> = BTreeMap::new();
    for (&stage, &took) in measured.iter().flat_map(|m| &m.stages) {
        *totals.entry(stage).or_default() += took;
    }
    let share = |stage: &'static str, total: Duration| {
        let ns = total.ps() as f64 / (2000 * rounds as u64) as f64;
        StageRow { stage, ns }
    };
    let rest = (strays > 0).then(|| share(NOT_ACCOUNTED_FOR, unaccounted));
    let flow = |(direction, measured): (&Direction, &std::cell::Ref<'_, Measured>)| {
        let spread = Spread::of(measured.round_trips.iter().copied(), 2);
        Flow {
            source: direction.source,
            target: direction.target,
            latency_ns: Some(spread.mean),
            min_ns: Some(spread.min),
            max_ns: Some(spread.max),
            ..Flow::default()
        }
    };
    let flows: Vec<Flow> = directions.iter().zip(&measured).map(flow).collect();
    let incast = matches!(point.pattern, Pattern::Incast(_));
    Ok(Row {
        latency_ns: Some(spread.mean),
        stages: Some(
            totals.into_iter().map(|(stage, total)| share(stage.name(), total)).chain(rest).collect(),
        ),
        unaccounted_iterations: (strays > 0).then_some(strays),
        fairness: incast.then(|| fairness(flows.iter().filter_map(|flow| flow.latency_ns))),
        flows: point.pattern.is_concurrent().then_some(flows),
        ..point.row(&spread, meter)
    })
}

/// The inputs of the program that every rank runs.
#[derive(Clone)]
pub(super) struct Plan {
    mode: Mode,
    pub(super) pattern: Pattern,
    pub(super) size: u64,
    pub(super) warmup: u64,
    pub(super) rounds: u64,
    seed: u64,
    users_handlers: bool,
    pub(super) meter: Rc<Meter>,
}

impl Plan {
    pub(super) fn of(point: &Point<'_>, meter: Rc<Meter>) -> Plan {
        Plan {
            mode: point.mode,
            pattern: point.pattern,
            size: point.size,
            warmup: point.warmup,
            rounds: point.warmup + point.iterations,
            seed: point.cluster.seed,
            users_handlers: point.users_handlers,
            meter,
        }
    }

    /// Checks the bytes of the reply in a round.
    pub(super) fn check_reply(&self, back: &Buffer, pattern: &[u8], round: u64) -> Result<(), Error> {
        let found = back.read(0, self.size);
        let Some(at) = first_difference(&found, pattern) else { return Ok(()) };
        let who = if self.users_handlers { "the handlers" } else { "the card" };
        Err(Error::Program(format!(
            "the reply of round {round} is wrong from byte {at} on: {:#04x} instead of {:#04x}; {who} sent \
             back other bytes than those received, or to another offset (seed {})",
            found[at], pattern[at], self.seed
        )))
    }

    /// Runs the program of a rank. The rank pings, answers, or does both.
    async fn run(
        self,
        host: Host,
        ping: Option<Direction>,
        ponger: Ponger,
        result: Rc<RefCell<Measured>>,
    ) -> Result<(), Error> {
        let mut pinger = match ping {
            None => None,
            Some(direction) => Some(Pinger::set_up(host.clone(), self.clone(), direction.target).await?),
        };
        ponger.append(&host, self.mode, self.rounds).await?;
        host.barrier().await;
        for round in 0..self.rounds {
            if self.pattern.is_concurrent() && round > 0 {
                host.barrier().await;
            }
            if let Some(pinger) = &mut pinger {
                pinger.ping().await?;
            }
            if self.mode == Mode::Rdma {
                ponger.answer(&host, round).await?;
            }
            if let Some(pinger) = &mut pinger {
                let measured = pinger.reply(round).await?;
                if let Some((took, path)) = measured {
                    result.borrow_mut().add(took, &path, host.now());
                }
                if round + 1 == self.warmup {
                    self.meter.warm();
                }
            }
            if self.mode == Mode::Portals4 {
                ponger.prepare(&host, round, self.rounds).await?;
            }
        }
        Ok(())
    }
}

impl Measured {
    pub(super) fn add(&mut self, took: Duration, path: &Path, now: Time) {
        self.round_trips.push(took);
        let explained: Duration = path.stages().map(|(_, duration)| duration).sum();
        if path.at() == now && explained <= took {
            for (stage, duration) in path.stages() {
                *self.stages.entry(stage).or_default() += duration;
            }
            self.unaccounted += took - explained;
            self.strays += u64::from(explained < took);
        } else {
            self.unaccounted += took;
            self.strays += 1;
        }
    }
}

/// Returns the options of a match entry that counts its messages.
fn counted() -> MeOptions {
    MeOptions::OP_PUT
        | MeOptions::EVENT_COMM_DISABLE
        | MeOptions::EVENT_LINK_DISABLE
        | MeOptions::EVENT_CT_COMM
}

fn bind(portals: &Portals, buffer: &Buffer) -> Result<MdHandle, Error> {
    let options = MdOptions::EVENT_SEND_DISABLE;
    portals.md_bind(Md { start: buffer.address(), length: buffer.len(), options, ..Md::default() })
}

/// A rank that sends pings.
struct Pinger {
    host: Host,
    portals: Portals,
    plan: Plan,
    out: Buffer,
    back: Buffer,
    ping: PutRequest,
    /// Counts the bytes of replies, because a reply may consist of several messages. Counts messages if the size is 0.
    replies: CtHandle,
    rng: nicety_kernel::Rng,
    pattern: Vec<u8>,
    begun: Time,
}

impl Pinger {
    async fn set_up(host: Host, plan: Plan, target: u32) -> Result<Pinger, Error> {
        let (portals, size) = (host.portals()?, plan.size);
        let (out, back) = (host.alloc(size)?, host.alloc(size)?);
        let replies = portals.ct_alloc()?;
        let bytes = if size > 0 { MeOptions::EVENT_CT_BYTES } else { MeOptions::empty() };
        let me = Me {
            start: back.address(),
            length: size,
            match_bits: PONG,
            options: counted() | bytes,
            ct: Some(replies),
            ..Me::default()
        };
        let appending = portals.me_append(PT, me, List::Priority).await?;
        portals.appended(appending).await?;
        let ping = PutRequest::new(bind(&portals, &out)?, size, NodeId(target), PT, PING);
        let (rng, begun) = (host.rng("ping-pong payload"), host.now());
        Ok(Pinger {
            host,
            portals,
            plan,
            out,
            back,
            ping,
            replies,
            rng,
            pattern: vec![0; size as usize],
            begun,
        })
    }

    async fn ping(&mut self) -> Result<(), Error> {
        self.rng.fill(&mut self.pattern);
        self.out.write(0, &self.pattern);
        self.begun = self.host.now();
        self.host.restart_path();
        self.portals.put(&self.ping).await
    }

    /// Waits for the reply of a round, and checks it. Returns the duration and the path of the round trip; `None` if it belongs
    /// to the warm-up.
    async fn reply(&self, round: u64) -> Result<Option<(Duration, Path)>, Error> {
        self.portals.ct_wait(self.replies, (round + 1) * self.plan.size.max(1)).await?;
        let took = self.host.now().since(self.begun);
        self.plan.check_reply(&self.back, &self.pattern, round)?;
        Ok((round >= self.plan.warmup).then(|| (took, self.host.path())))
    }
}

/// The side of a rank that answers pings.
struct Ponger {
    peers: Vec<Peer>,
    /// The event queue from which the host learns the source of each ping, if it answers several ranks.
    arrivals: Option<EqHandle>,
}

/// A rank to which this rank sends answers.
struct Peer {
    rank: u32,
    me: Me,
    pong: PutRequest,
    pings: CtHandle,
}

impl Ponger {
    /// Allocates host memory and descriptors, and attaches handlers if the mode has them. This takes no virtual time.
    fn set_up(host: &Host, point: &Point<'_>, ranks: &[u32]) -> Result<Ponger, Error> {
        let portals = host.portals()?;
        let arrivals = match ranks.len() {
            2.. if point.mode == Mode::Rdma => Some(portals.eq_alloc(ranks.len() as u32)?),
            _ => None,
        };
        portals.pt_alloc(Some(PT), arrivals)?;
        let peer = |&rank: &u32| {
            let memory = host.alloc(point.size)?;
            let pings = portals.ct_alloc()?;
            let handlers = match point.handlers(host.rank()) {
                None => None,
                Some(handlers) => Some(portals.attach(handlers, &initial_state(&portals, rank), None)?),
            };
            let options = match arrivals {
                None => counted(),
                Some(_) => MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE,
            };
            let me = Me {
                start: memory.address(),
                length: point.size,
                match_bits: PING,
                source: Source::Rank(NodeId(rank)),
                options,
                ct: Some(pings),
                handlers,
                ..Me::default()
            };
            let pong = PutRequest::new(bind(&portals, &memory)?, point.size, NodeId(rank), PT, PONG);
            Ok(Peer { rank, me, pong, pings })
        };
        Ok(Ponger { peers: ranks.iter().map(peer).collect::<Result<_, Error>>()?, arrivals })
    }

    /// Appends the match entries. If the card sends replies by triggered puts, also posts the first of these.
    async fn append(&self, host: &Host, mode: Mode, rounds: u64) -> Result<(), Error> {
        let portals = host.portals()?;
        for peer in &self.peers {
            let appending = portals.me_append(PT, peer.me, List::Priority).await?;
            portals.appended(appending).await?;
            if mode == Mode::Portals4 {
                for round in 0..rounds.min(AHEAD) {
                    portals.triggered_put(peer.pong, peer.pings, round + 1).await?;
                }
            }
        }
        Ok(())
    }

    /// Answers the pings of a round on the host's CPU, in the order of their arrival.
    async fn answer(&self, host: &Host, round: u64) -> Result<(), Error> {
        let portals = host.portals()?;
        for peer in &self.peers {
            let peer = match self.arrivals {
                None => {
                    portals.ct_wait(peer.pings, round + 1).await?;
                    peer
                }
                Some(eq) => {
                    let ping = |event: &nicety_portals::Event| event.kind == EventKind::Put;
                    let event = portals.eq_wait(eq, ping, || "the pings of a round".to_string()).await?;
                    let of = self.peers.iter().find(|peer| peer.rank == event.initiator.0);
                    of.expect("only peers have a match entry")
                }
            };
            portals.put(&peer.pong).await?;
        }
        Ok(())
    }

    /// When the pings of this round have arrived, posts the triggered put of a later round.
    async fn prepare(&self, host: &Host, round: u64, rounds: u64) -> Result<(), Error> {
        if round + AHEAD < rounds {
            let portals = host.portals()?;
            for peer in &self.peers {
                portals.ct_wait(peer.pings, round + 1).await?;
                portals.triggered_put(peer.pong, peer.pings, round + AHEAD + 1).await?;
            }
        }
        Ok(())
    }
}

/// Returns the bytes of a `pingpong_t` of pingpong.h.
fn initial_state(portals: &Portals, peer: u32) -> [u8; 24] {
    let mut state = [0; 24];
    state[..8].copy_from_slice(&PONG.to_le_bytes());
    state[8..12].copy_from_slice(&peer.to_le_bytes());
    state[12..16].copy_from_slice(&(portals.packet_payload() as u32).to_le_bytes());
    state
}
