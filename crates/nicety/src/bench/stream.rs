//! Windows of messages one way, from the first post to the last completion.

use super::{Benchmark, Mode, Point, Row};
use crate::host::{Buffer, Host};
use crate::{Duration, Error, Time};
use nicety_portals::{CtHandle, EqHandle, EventKind, List, Md, MdOptions, Me, MeOptions, PutRequest};
use nicety_types::NodeId;
use std::cell::RefCell;
use std::rc::Rc;

const PT: u32 = 1;
const DATA: u64 = 1;
const READY: u64 = 2;

/// Times of the windows: when the first message was posted, when the last one's completion was noticed.
#[derive(Default)]
struct Windows {
    begun: Vec<Time>,
    ended: Vec<Time>,
    /// What the last window carried, and what came.
    sent: Vec<Vec<u8>>,
}

pub(super) fn measure(point: &Point<'_>, benchmark: Benchmark) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let windows = Rc::new(RefCell::new(Windows::default()));
    let (size, window, rounds) = (point.size, point.window, point.warmup + point.iterations);

    let shared = windows.clone();
    cluster.program(0, move |host| send_windows(host, size, window, rounds, shared));
    let receiver = Receiver::set_up(cluster.host(1), point)?;
    let shared = windows.clone();
    cluster.program(1, move |host| receiver.receive_windows(host, rounds, shared));
    cluster.run()?;

    let windows = windows.borrow();
    let measured = windows.begun.iter().zip(&windows.ended).skip(point.warmup as usize);
    let total: Duration = measured.map(|(begun, ended)| ended.since(*begun)).sum();
    let messages = (point.iterations * window) as f64;
    let seconds = total.ps() as f64 / 1e12;
    let mut row = Row {
        mode: point.mode.name(),
        size_bytes: size,
        iterations: point.iterations,
        window: Some(window),
        verified: true,
        ..Row::default()
    };
    match benchmark {
        Benchmark::Bandwidth => row.bandwidth_bytes_per_s = Some(messages * size as f64 / seconds),
        _ => row.messages_per_s = Some(messages / seconds),
    }
    Ok(row)
}

/// Rank 0: posts a window, then waits until the receiver is ready for the next.
async fn send_windows(
    host: Host,
    size: u64,
    window: u64,
    rounds: u64,
    windows: Rc<RefCell<Windows>>,
) -> Result<(), Error> {
    let (out, none) = (host.alloc(size)?, host.alloc(0)?);
    let ready = host.ct_alloc()?;
    host.pt_alloc(Some(PT), None)?;
    let me = Me {
        start: none.address(),
        match_bits: READY,
        options: options(true),
        ct: Some(ready),
        ..Me::default()
    };
    let appending = host.me_append(PT, me, List::Priority).await?;
    host.appended(appending).await?;
    let put = PutRequest::new(descriptor(&host, &out)?, size, NodeId(1), PT, DATA);
    let mut rng = host.rng("stream payload");
    let mut pattern = vec![0; size as usize];
    host.barrier().await;
    for round in 0..rounds {
        rng.fill(&mut pattern);
        out.write(0, &pattern);
        {
            let mut windows = windows.borrow_mut();
            windows.begun.push(host.now());
            windows.sent.push(pattern.clone());
        }
        for _ in 0..window {
            host.put(&put).await?;
        }
        host.ct_wait(ready, round + 1).await?;
    }
    Ok(())
}

/// Options of a match entry that is only counted, or that leaves full events.
fn options(counted: bool) -> MeOptions {
    let options = MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE;
    options | if counted { MeOptions::EVENT_COMM_DISABLE | MeOptions::EVENT_CT_COMM } else { MeOptions::empty() }
}

fn descriptor(host: &Host, buffer: &Buffer) -> Result<nicety_portals::MdHandle, Error> {
    let options = MdOptions::EVENT_SEND_DISABLE;
    host.md_bind(Md { start: buffer.address(), length: buffer.len(), options, ..Md::default() })
}

/// Rank 1.
struct Receiver {
    me: Me,
    memory: Buffer,
    completions: Completions,
    window: u64,
}

/// How the receiving host learns of completions: RDMA polls an event of every message, the others one counter.
#[derive(Clone, Copy)]
enum Completions {
    Events(EqHandle),
    Counter(CtHandle),
}

impl Receiver {
    fn set_up(host: &Host, point: &Point<'_>) -> Result<Receiver, Error> {
        let memory = host.alloc(point.size)?;
        let completions = match point.mode {
            Mode::Rdma => Completions::Events(host.eq_alloc(u32::try_from(point.window).unwrap_or(u32::MAX))?),
            _ => Completions::Counter(host.ct_alloc()?),
        };
        let (eq, ct) = match completions {
            Completions::Events(eq) => (Some(eq), None),
            Completions::Counter(ct) => (None, Some(ct)),
        };
        host.pt_alloc(Some(PT), eq)?;
        let handlers = match point.handlers {
            None => None,
            Some(handlers) => Some(host.attach(handlers, &[], None)?),
        };
        let me = Me {
            start: memory.address(),
            length: point.size,
            match_bits: DATA,
            options: options(ct.is_some()),
            ct,
            handlers,
            ..Me::default()
        };
        Ok(Receiver { me, memory, completions, window: point.window })
    }

    async fn receive_windows(
        self,
        host: Host,
        rounds: u64,
        windows: Rc<RefCell<Windows>>,
    ) -> Result<(), Error> {
        let appending = host.me_append(PT, self.me, List::Priority).await?;
        host.appended(appending).await?;
        let none = host.alloc(0)?;
        let ready = PutRequest::new(descriptor(&host, &none)?, 0, NodeId(0), PT, READY);
        host.barrier().await;
        for round in 0..rounds {
            match self.completions {
                Completions::Counter(ct) => {
                    host.ct_wait(ct, (round + 1) * self.window).await?;
                }
                Completions::Events(eq) => {
                    for _ in 0..self.window {
                        let put = |event: &nicety_portals::Event| event.kind == EventKind::Put;
                        host.eq_wait(eq, put, || "the messages of a window".to_string()).await?;
                    }
                }
            }
            windows.borrow_mut().ended.push(host.now());
            self.check(round, &windows.borrow().sent[round as usize])?;
            host.put(&ready).await?;
        }
        Ok(())
    }

    fn check(&self, round: u64, expected: &[u8]) -> Result<(), Error> {
        let found = self.memory.read(0, self.memory.len());
        match found.iter().zip(expected).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(at) => Err(Error::Program(format!(
                "window {round} left wrong bytes in the receiver's memory from byte {at} on: {:#04x} instead of {:#04x}",
                found[at], expected[at]
            ))),
        }
    }
}
