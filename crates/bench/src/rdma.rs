//! Latency and windows of puts between registered buffers, measured as in the papers on APEnet+.
//!
//! - In a ping-pong, each put is answered by a put of constant size (`pong_size`). So only the time of one direction depends on
//!   the message size. The latency is half of the round trip.
//! - All puts of a window have the same source buffer and the same destination buffer. The receiver answers only the last put,
//!   and the window ends with that answer. If the receiver drops packets (`flush_receive`), the window ends when the sender's
//!   card has read all bytes.
//!
//! In loop-back, a host puts data into its own memory, through its card.

use super::latency::{self, Measured};
use super::pattern::Direction;
use super::payload::first_difference;
use super::stream::{self, Shared};
use super::{Benchmark, Meter, Point, Row};
use nicety::apenet::{Notify, Operation};
use nicety::{Buffer, Cluster, Error, Host, Rdma};
use nicety_kernel::Rng;
use nicety_nic_apenet::ApenetSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of the answer to a window, and the default size of the answer to a ping.
pub(super) const ANSWER: u64 = 8;

/// The kind of memory at one end of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// The host's memory.
    #[default]
    Host,
    /// The memory of the host's graphics processor.
    Gpu,
}

/// The kind of addresses in puts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Addressing {
    /// Virtual addresses, which the card translates.
    #[default]
    Virtual,
    /// Physical addresses.
    Physical,
}

/// The way in which programs learn of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Notification {
    /// Programs poll for events.
    Poll,
    /// Interrupts notify programs.
    Interrupt,
}

/// The options of puts, with the values that were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Puts {
    /// Whether puts stay within one host, through its card.
    pub loopback: bool,
    /// The kind of memory from which messages are put.
    pub source: Memory,
    /// The kind of memory into which messages are put.
    pub sink: Memory,
    /// The kind of addresses.
    pub addressing: Addressing,
    /// Whether the receiver's card drops arriving packets.
    pub flush_receive: bool,
    /// The way in which programs learn of events; None if the card's specification decides.
    pub notify: Option<Notification>,
    /// Bytes of the answer in a ping-pong.
    pub pong_size_bytes: u64,
}

impl Puts {
    /// The receiving rank.
    const fn target(&self) -> u32 {
        if self.loopback { 0 } else { 1 }
    }

    /// Checks that the events of a window fit into the queues of its sender. The sender takes no events while it posts the
    /// window.
    pub(super) fn check_window(&self, nic: &str, spec: &ApenetSpec, window: u64) -> Result<(), Error> {
        // Each put causes an event when its buffer is free. In loop-back, each put also causes an event at the target, which is
        // the same host. Otherwise the answer to the last put causes one.
        let (of_each, further) = match (self.flush_receive, self.loopback) {
            (true, _) => (1, 0),
            (false, true) => (2, 0),
            (false, false) => (1, 1),
        };
        let events = window * of_each + further;
        let queues = [("events.entries", spec.events.entries), ("events.user", spec.events.user)];
        match queues.into_iter().find(|(_, places)| events > *places) {
            None => Ok(()),
            Some((field, places)) => Err(Error::Input(format!(
                "--window {window}: a window of puts causes {events} events, but an event queue of {nic} \
                 has room for {places} ({field}); write --window {} or less, or --set {field}={events}",
                (places.saturating_sub(further) / of_each).max(1)
            ))),
        }
    }

    fn set_up(&self, rdma: &Rdma) {
        rdma.set_physical(self.addressing == Addressing::Physical);
        match self.notify {
            Some(Notification::Poll) => rdma.set_notify(Notify::Poll),
            Some(Notification::Interrupt) => rdma.set_notify(Notify::Interrupt),
            None => {}
        }
    }
}

/// Allocates memory of a host, at least one byte.
fn memory(host: &Host, kind: Memory, bytes: u64) -> Result<Buffer, Error> {
    match kind {
        Memory::Host => host.alloc(bytes.max(1)),
        Memory::Gpu => host.gpu()?.alloc(bytes.max(1)),
    }
}

/// The buffers of both hosts. The programs of both hosts know all addresses before a run begins.
#[derive(Clone)]
struct Ends {
    out: Buffer,
    sink: Buffer,
    /// The buffer from which the answer is put. `back` is its destination.
    answer: Buffer,
    back: Buffer,
}

impl Ends {
    fn new(sender: &Host, receiver: &Host, puts: &Puts, size: u64, answer: u64) -> Result<Ends, Error> {
        Ok(Ends {
            out: memory(sender, puts.source, size)?,
            sink: memory(receiver, puts.sink, size)?,
            answer: memory(receiver, Memory::Host, answer)?,
            back: memory(sender, Memory::Host, answer)?,
        })
    }
}

/// The two ends of a measurement, and the numbers of its rounds.
#[derive(Clone)]
struct Rounds {
    puts: Puts,
    ends: Ends,
    meter: Rc<Meter>,
    size: u64,
    window: u64,
    warmup: u64,
    rounds: u64,
}

impl Rounds {
    fn new(cluster: &Cluster, point: &Point<'_>, puts: &Puts, answer: u64) -> Result<Rounds, Error> {
        Ok(Rounds {
            puts: *puts,
            ends: Ends::new(cluster.host(0), cluster.host(puts.target()), puts, point.size, answer)?,
            meter: Meter::new(cluster),
            size: point.size,
            window: point.window,
            warmup: point.warmup,
            rounds: point.warmup + point.iterations,
        })
    }

    /// Sets up the target host of the puts: registers its buffers.
    async fn set_up_target(&self, rdma: &Rdma) -> Result<(), Error> {
        self.puts.set_up(rdma);
        rdma.register(&self.ends.sink).await?;
        rdma.register(&self.ends.answer).await?;
        Ok(())
    }

    /// Sets up the host that sends the puts: registers its buffers.
    async fn set_up_sender(&self, rdma: &Rdma) -> Result<(), Error> {
        self.puts.set_up(rdma);
        rdma.register(&self.ends.out).await?;
        rdma.register(&self.ends.back).await?;
        Ok(())
    }

    /// Puts the first `bytes` bytes of the answer to the sender.
    async fn put_answer(&self, rdma: &Rdma, bytes: u64) -> Result<Operation, Error> {
        rdma.put(&self.ends.answer.slice(0, bytes)?, 0, self.ends.back.address(), 0).await
    }

    /// Puts the message to the target.
    async fn put(&self, rdma: &Rdma) -> Result<Operation, Error> {
        let out = self.ends.out.slice(0, self.size)?;
        rdma.put(&out, self.puts.target(), self.ends.sink.address(), 0).await
    }

    /// Answers every message of a ping-pong.
    async fn pong(self, host: Host) -> Result<(), Error> {
        let rdma = host.rdma()?;
        self.set_up_target(&rdma).await?;
        host.barrier().await;
        for _ in 0..self.rounds {
            rdma.received().await?;
            let posted = self.put_answer(&rdma, self.puts.pong_size_bytes).await?;
            rdma.wait(posted).await?;
        }
        Ok(())
    }

    /// Sends the messages of a ping-pong, and measures the round trips.
    async fn ping(self, host: Host, measured: Rc<RefCell<Measured>>) -> Result<(), Error> {
        let rdma = host.rdma()?;
        self.set_up_sender(&rdma).await?;
        if self.puts.loopback {
            rdma.register(&self.ends.sink).await?;
            rdma.register(&self.ends.answer).await?;
        }
        let (mut rng, mut bytes) = (host.rng("ping-pong payload"), vec![0; self.size as usize]);
        host.barrier().await;
        for round in 0..self.rounds {
            rng.fill(&mut bytes);
            self.ends.out.write(0, &bytes);
            let begun = host.now();
            host.restart_path();
            let mut posted = vec![self.put(&rdma).await?];
            if self.puts.loopback {
                rdma.received().await?;
                posted.push(self.put_answer(&rdma, self.puts.pong_size_bytes).await?);
            }
            rdma.received().await?;
            let (now, path) = (host.now(), host.path());
            if round >= self.warmup {
                measured.borrow_mut().add(now.since(begun), &path, now);
            }
            if round + 1 == self.warmup {
                self.meter.warm();
            }
            for put in posted {
                rdma.wait(put).await?;
            }
            check(&self.ends.sink, &bytes, round)?;
        }
        Ok(())
    }

    /// Answers every window.
    async fn sink(self, host: Host) -> Result<(), Error> {
        let rdma = host.rdma()?;
        rdma.set_flushed(self.puts.flush_receive);
        self.set_up_target(&rdma).await?;
        host.barrier().await;
        for _ in 0..if self.puts.flush_receive { 0 } else { self.rounds } {
            for _ in 0..self.window {
                rdma.received().await?;
            }
            let posted = self.put_answer(&rdma, ANSWER).await?;
            rdma.wait(posted).await?;
        }
        Ok(())
    }

    /// Sends windows, and records their times.
    async fn source(self, host: Host, windows: Shared) -> Result<(), Error> {
        let rdma = host.rdma()?;
        let Puts { loopback, flush_receive, .. } = self.puts;
        if loopback {
            rdma.set_flushed(flush_receive);
        }
        self.set_up_sender(&rdma).await?;
        if loopback {
            rdma.register(&self.ends.sink).await?;
        }
        let mut rng: Rng = host.rng("window payload");
        let mut bytes = vec![0; self.size as usize];
        host.barrier().await;
        for round in 0..self.rounds {
            rng.fill(&mut bytes);
            self.ends.out.write(0, &bytes);
            windows.borrow_mut().begun.push(host.now());
            let mut posted = Vec::with_capacity(self.window as usize);
            for _ in 0..self.window {
                posted.push(self.put(&rdma).await?);
            }
            if flush_receive {
                for put in posted.drain(..) {
                    rdma.wait(put).await?;
                }
            } else {
                for _ in 0..if loopback { self.window } else { 1 } {
                    rdma.received().await?;
                }
            }
            windows.borrow_mut().ended.push(host.now());
            if round + 1 == self.warmup {
                self.meter.warm();
            }
            for put in posted {
                rdma.wait(put).await?;
            }
            if !flush_receive {
                check(&self.ends.sink, &bytes, round)?;
            }
        }
        Ok(())
    }
}

/// Measures half a round trip.
pub(super) fn ping_pong(point: &Point<'_>, puts: &Puts) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let rounds = Rounds::new(&cluster, point, puts, puts.pong_size_bytes)?;
    let result = Rc::new(RefCell::new(Measured::default()));
    if !puts.loopback {
        let own = rounds.clone();
        cluster.program(1, |host| own.pong(host));
    }
    let (own, measured) = (rounds.clone(), result.clone());
    cluster.program(0, |host| own.ping(host, measured));
    point.run(&mut cluster)?;
    latency::row(point, &rounds.meter, &[direction(puts)], &[result])
}

/// Measures a window of puts.
pub(super) fn windows(point: &Point<'_>, puts: &Puts, benchmark: Benchmark) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let rounds = Rounds::new(&cluster, point, puts, ANSWER)?;
    let flow = Shared::default();
    if !puts.loopback {
        let own = rounds.clone();
        cluster.program(1, |host| own.sink(host));
    }
    let (own, windows) = (rounds.clone(), flow.clone());
    cluster.program(0, |host| own.source(host, windows));
    point.run(&mut cluster)?;
    let row = stream::row(point, benchmark, &rounds.meter, &[(direction(puts), flow)])?;
    // The receiver dropped the bytes, so they were not checked.
    Ok(Row { verified: row.verified && !puts.flush_receive, ..row })
}

const fn direction(puts: &Puts) -> Direction {
    Direction { source: 0, target: puts.target() }
}

/// Checks the received bytes of a round. The programs of hosts cannot do this, because it reads the memory of the other host.
fn check(sink: &Buffer, sent: &[u8], round: u64) -> Result<(), Error> {
    let found = sink.read(0, sent.len() as u64);
    match first_difference(&found, sent) {
        None => Ok(()),
        Some(at) => Err(Error::Program(format!(
            "round {round} left wrong bytes in the receiver's memory from byte {at} on: {:#04x} instead of {:#04x}",
            found[at], sent[at]
        ))),
    }
}
