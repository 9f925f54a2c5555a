//! Latency and windows of `send` and `recv`, on a card of any design. Receives are posted before their messages are sent. On a
//! card with virtual network interfaces, each transfer method between process and card is a mode of its own.

use super::latency::{self, Measured};
use super::pattern::Direction;
use super::payload::{Payload, first_difference};
use super::stream::{self, Shared};
use super::{Benchmark, Meter, Mode, Pattern, Point, Row};
use nicety::cards::Card;
use nicety::{Buffer, Error, Host, PendingRecv, Time};
use nicety_kernel::Rng;
use nicety_nic_qnix::{Operation, QnixSpec, TransferMethod};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const PING: u64 = 1;
const PONG: u64 = 2;
const DATA: u64 = 3;
/// Number of receives that are posted ahead of their pings.
const AHEAD: u64 = 2;

/// `send` and `recv` in one mode.
#[derive(Clone)]
struct Messages {
    host: Host,
    mode: Mode,
}

impl Messages {
    /// Returns a buffer in the memory that the mode's messages need.
    fn buffer(&self, size: u64) -> Result<Buffer, Error> {
        match self.mode {
            Mode::Pio | Mode::Dma => self.host.vni()?.pool_buffer(size),
            _ => self.host.alloc(size),
        }
    }

    /// Returns the transfer method of the mode; `None` if the mode does not prescribe one.
    fn how(&self) -> Option<TransferMethod> {
        self.mode.how()
    }

    async fn send(&self, buffer: &Buffer, to: u32, tag: u64) -> Result<(), Error> {
        match self.how() {
            Some(how) => self.host.vni()?.send(buffer, to, tag, how).await,
            None => self.host.send(buffer, to, tag).await,
        }
    }

    /// Posts a send. Returns `None` if the design's sends are complete when they return.
    async fn post_send(&self, buffer: &Buffer, to: u32, tag: u64) -> Result<Option<Operation>, Error> {
        let Ok(vni) = self.host.vni() else {
            self.send(buffer, to, tag).await?;
            return Ok(None);
        };
        let how = self.how().unwrap_or_default();
        Ok(Some(vni.post_send(buffer, to, tag, how).await?))
    }

    async fn post_recv(&self, buffer: &Buffer, from: u32, tag: u64) -> Result<PendingRecv, Error> {
        // Receives never use programmed I/O. Mode pio differs from mode dma only in the direction to the card.
        match self.how() {
            Some(TransferMethod::Pio) => {
                self.host.vni()?.post_recv(buffer, Some(from), Some(tag), TransferMethod::Pool).await
            }
            Some(how) => self.host.vni()?.post_recv(buffer, Some(from), Some(tag), how).await,
            None => self.host.post_recv(buffer, Some(from), Some(tag)).await,
        }
    }
}

/// Measures half a round trip.
pub(super) fn ping_pong(point: &Point<'_>) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let meter = Meter::new(&cluster);
    let directions = point.pattern.directions();
    let mut results = Vec::new();
    for rank in 0..point.pattern.nodes() {
        let peers: Vec<u32> = directions.iter().filter(|d| d.target == rank).map(|d| d.source).collect();
        let target = directions.iter().find(|d| d.source == rank).map(|d| d.target);
        let result = Rc::new(RefCell::new(Measured::default()));
        if target.is_some() {
            results.push(result.clone());
        }
        let rounds = Rounds {
            size: point.size,
            warmup: point.warmup,
            rounds: point.warmup + point.iterations,
            pattern: point.pattern,
            seed: point.cluster.seed,
            meter: meter.clone(),
            result,
        };
        let mode = point.mode;
        cluster.program(rank, move |host| rounds.run(Messages { host, mode }, target, peers));
    }
    point.run(&mut cluster)?;
    latency::row(point, &meter, &directions, &results)
}

/// A rank's role in the rounds of a ping-pong.
struct Rounds {
    size: u64,
    warmup: u64,
    rounds: u64,
    pattern: Pattern,
    seed: u64,
    meter: Rc<Meter>,
    result: Rc<RefCell<Measured>>,
}

impl Rounds {
    async fn run(self, messages: Messages, target: Option<u32>, peers: Vec<u32>) -> Result<(), Error> {
        let host = &messages.host;
        let mut pinger = match target {
            None => None,
            Some(target) => Some(Pinger::new(&messages, target, self.size)?),
        };
        let mut pongers = Vec::new();
        for rank in peers {
            let mut ponger =
                Ponger { rank, memory: messages.buffer(self.size)?, posted: VecDeque::new(), ahead: 0 };
            ponger.post(&messages, self.rounds.min(AHEAD)).await?;
            pongers.push(ponger);
        }
        if let Some(pinger) = &mut pinger {
            pinger.post(&messages).await?;
        }
        host.barrier().await;
        for round in 0..self.rounds {
            if self.pattern.is_concurrent() && round > 0 {
                host.barrier().await;
            }
            if let Some(pinger) = &mut pinger {
                pinger.ping(&messages).await?;
            }
            for ponger in &mut pongers {
                ponger.answer(&messages).await?;
            }
            if let Some(pinger) = &mut pinger {
                pinger.reply(&messages, round, self.seed).await?;
                let (now, path) = (host.now(), host.path());
                if round >= self.warmup {
                    self.result.borrow_mut().add(now.since(pinger.begun), &path, now);
                }
                if round + 1 == self.warmup {
                    self.meter.warm();
                }
            }
            // The receives of later rounds are posted here, where they are not on the critical path.
            for ponger in &mut pongers {
                ponger.post(&messages, self.rounds.min(round + 1 + AHEAD)).await?;
            }
            if let Some(pinger) = pinger.as_mut().filter(|_| round + 1 < self.rounds) {
                pinger.post(&messages).await?;
            }
        }
        Ok(())
    }
}

/// A rank that sends pings.
struct Pinger {
    target: u32,
    out: Buffer,
    back: Buffer,
    posted: Option<PendingRecv>,
    rng: Rng,
    pattern: Vec<u8>,
    begun: Time,
}

impl Pinger {
    fn new(messages: &Messages, target: u32, size: u64) -> Result<Pinger, Error> {
        let (out, back) = (messages.buffer(size)?, messages.buffer(size)?);
        let (rng, begun) = (messages.host.rng("ping-pong payload"), messages.host.now());
        Ok(Pinger { target, out, back, posted: None, rng, pattern: vec![0; size as usize], begun })
    }

    async fn post(&mut self, messages: &Messages) -> Result<(), Error> {
        self.posted = Some(messages.post_recv(&self.back, self.target, PONG).await?);
        Ok(())
    }

    async fn ping(&mut self, messages: &Messages) -> Result<(), Error> {
        self.rng.fill(&mut self.pattern);
        self.out.write(0, &self.pattern);
        self.begun = messages.host.now();
        messages.host.restart_path();
        messages.send(&self.out, self.target, PING).await
    }

    async fn reply(&mut self, messages: &Messages, round: u64, seed: u64) -> Result<(), Error> {
        if let Some(posted) = self.posted.take() {
            messages.host.received(posted).await?;
        }
        let found = self.back.read(0, self.back.len());
        let Some(at) = first_difference(&found, &self.pattern) else { return Ok(()) };
        Err(Error::Program(format!(
            "the reply of round {round} is wrong from byte {at} on: {:#04x} instead of {:#04x} (seed {seed})",
            found[at], self.pattern[at]
        )))
    }
}

/// A rank to which this rank sends answers, with the receives of its pings.
struct Ponger {
    rank: u32,
    memory: Buffer,
    posted: VecDeque<PendingRecv>,
    /// The number of receives posted so far.
    ahead: u64,
}

impl Ponger {
    /// Posts receives until `up_to` have been posted in total.
    async fn post(&mut self, messages: &Messages, up_to: u64) -> Result<(), Error> {
        while self.ahead < up_to {
            self.posted.push_back(messages.post_recv(&self.memory, self.rank, PING).await?);
            self.ahead += 1;
        }
        Ok(())
    }

    async fn answer(&mut self, messages: &Messages) -> Result<(), Error> {
        if let Some(posted) = self.posted.pop_front() {
            messages.host.received(posted).await?;
        }
        messages.send(&self.memory, self.rank, PONG).await
    }
}

/// Measures windows of messages.
pub(super) fn windows(point: &Point<'_>, benchmark: Benchmark) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let meter = Meter::new(&cluster);
    let flows: Vec<(Direction, Shared)> =
        point.pattern.directions().into_iter().map(|direction| (direction, Shared::default())).collect();
    for rank in 0..point.pattern.nodes() {
        let incoming: Vec<_> = flows.iter().filter(|(d, _)| d.target == rank).cloned().collect();
        let outgoing = flows.iter().find(|(d, _)| d.source == rank).cloned();
        let (mode, meter) = (point.mode, meter.clone());
        let (size, window, warmup) = (point.size, point.window, point.warmup);
        let rounds = warmup + point.iterations;
        let depth = depth(point);
        cluster.program(rank, move |host| async move {
            let messages = Messages { host: host.clone(), mode };
            let mut receivers = Vec::new();
            for (direction, windows) in incoming {
                let memory = messages.buffer(size)?;
                receivers.push((direction.source, memory, windows));
            }
            let mut sender = match outgoing {
                None => None,
                Some((direction, windows)) => {
                    let rng = host.rng("stream payload");
                    Some(Sender { to: direction.target, out: messages.buffer(size)?, rng, windows })
                }
            };
            for round in 0..rounds {
                exchange(&messages, &receivers, sender.as_mut(), (window, depth), round).await?;
                if round + 1 == warmup && !receivers.is_empty() {
                    meter.warm();
                }
            }
            Ok(())
        });
    }
    point.run(&mut cluster)?;
    stream::row(point, benchmark, &meter, &flows)
}

/// Sends and receives one window of messages, at most `depth` in flight.
async fn exchange(
    messages: &Messages,
    receivers: &[(u32, Buffer, Shared)],
    sender: Option<&mut Sender>,
    (window, depth): (u64, u64),
    round: u64,
) -> Result<(), Error> {
    let host = &messages.host;
    let mut posted = Vec::new();
    for (source, memory, _) in receivers {
        let mut first = VecDeque::new();
        for _ in 0..window.min(depth / receivers.len().max(1) as u64).max(1) {
            first.push_back(messages.post_recv(memory, *source, DATA).await?);
        }
        posted.push(first);
    }
    host.barrier().await;
    let own = async {
        match sender {
            Some(sender) => sender.send(messages, window, depth).await,
            None => Ok(()),
        }
    };
    // If a host both sends and receives, its sends and its receives are threads that share its CPU and its card.
    let threads: Vec<_> = receivers
        .iter()
        .zip(posted)
        .map(|((source, memory, windows), posted)| {
            let (messages, source, memory, windows) =
                (messages.clone(), *source, memory.clone(), windows.clone());
            host.spawn(move |host| async move {
                let messages = Messages { host, ..messages };
                receive(&messages, source, &memory, posted, window).await?;
                windows.borrow_mut().ended.push(messages.host.now());
                windows.borrow().check(&memory, round)
            })
        })
        .collect();
    own.await?;
    for thread in threads {
        thread.join().await?;
    }
    Ok(())
}

/// Returns the maximum number of messages in flight from one sender or to one receiver.
fn depth(point: &Point<'_>) -> u64 {
    let of_card = |card: &Card| {
        let spec = card.spec.of::<QnixSpec>().ok()?;
        let limit = u64::from(spec.limits.sends.min(spec.limits.receives));
        // A copied message takes a piece of the Buffer Pool, and a host may need pieces for both directions.
        let pieces = (spec.limits.pool / (2 * point.size.max(64).next_multiple_of(64))).max(1);
        Some(match point.mode {
            Mode::Copy | Mode::Auto => limit.min(pieces),
            _ => limit,
        })
    };
    point.cluster.cards.iter().filter_map(of_card).fold(point.window, u64::min)
}

struct Sender {
    to: u32,
    out: Buffer,
    rng: Rng,
    windows: Shared,
}

impl Sender {
    /// Posts the messages of a window, at most `depth` in flight.
    async fn send(&mut self, messages: &Messages, window: u64, depth: u64) -> Result<(), Error> {
        let host = &messages.host;
        {
            let mut windows = self.windows.borrow_mut();
            windows.sent = Payload::write(&mut self.rng, &self.out);
            windows.begun.push(host.now());
        }
        let mut posted: VecDeque<Operation> = VecDeque::new();
        for _ in 0..window {
            if posted.len() as u64 == depth
                && let Some(oldest) = posted.pop_front()
            {
                host.vni()?.sent(oldest).await?;
            }
            posted.extend(messages.post_send(&self.out, self.to, DATA).await?);
        }
        for oldest in posted {
            host.vni()?.sent(oldest).await?;
        }
        Ok(())
    }
}

/// Receives the messages of a window. Each message's receive is replaced by a new one, until all receives of the window are
/// posted.
async fn receive(
    messages: &Messages,
    source: u32,
    memory: &Buffer,
    mut posted: VecDeque<PendingRecv>,
    window: u64,
) -> Result<(), Error> {
    let mut ahead = posted.len() as u64;
    while let Some(oldest) = posted.pop_front() {
        messages.host.received(oldest).await?;
        if ahead < window {
            posted.push_back(messages.post_recv(memory, source, DATA).await?);
            ahead += 1;
        }
    }
    Ok(())
}
