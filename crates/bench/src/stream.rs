//! Windows of messages, from the first post to the last completion.

use super::figures::Spread;
use super::pattern::Direction;
use super::payload::{Difference, Payload};
use super::{Benchmark, Flow, Meter, Mode, Pattern, Point, Row, fairness};
use nicety::{Buffer, Cluster, Duration, Error, Host, Portals, Time};
use nicety_portals::{CtHandle, EqHandle, EventKind, List, Md, MdOptions, Me, MeOptions, PutRequest, Source};
use nicety_types::NodeId;
use std::cell::RefCell;
use std::rc::Rc;

const PT: u32 = 1;
const DATA: u64 = 1;

/// The windows of one direction.
#[derive(Default)]
pub(super) struct Windows {
    /// For each window, the time at which its first message was posted.
    pub(super) begun: Vec<Time>,
    /// For each window, the time at which the receiving host noticed its last message.
    pub(super) ended: Vec<Time>,
    /// The bytes that the messages of the last window had.
    pub(super) sent: Payload,
}

pub(super) type Shared = Rc<RefCell<Windows>>;

impl Windows {
    /// Checks the bytes of a window at their destination.
    pub(super) fn check(&self, memory: &Buffer, round: u64) -> Result<(), Error> {
        match self.sent.difference(memory) {
            None => Ok(()),
            Some(Difference { at, found, expected }) => Err(Error::Program(format!(
                "window {round} left wrong bytes in the receiver's memory from byte {at} on: {found:#04x} instead of {expected:#04x}"
            ))),
        }
    }

    fn measured(&self, warmup: u64) -> impl Iterator<Item = (Time, Time)> + '_ {
        self.begun.iter().copied().zip(self.ended.iter().copied()).skip(warmup as usize)
    }
}

pub(super) fn measure(point: &Point<'_>, benchmark: Benchmark) -> Result<Row, Error> {
    let mut cluster = point.cluster()?;
    let meter = Meter::new(&cluster);
    let flows = flows(point);
    puts(&mut cluster, point, &flows, &meter)?;
    point.run(&mut cluster)?;
    row(point, benchmark, &meter, &flows)
}

/// Returns the directions of a point's pattern. None of them has windows yet.
pub(super) fn flows(point: &Point<'_>) -> Vec<(Direction, Shared)> {
    point.pattern.directions().into_iter().map(|direction| (direction, Shared::default())).collect()
}

/// Returns the row of a point from the windows of all directions.
pub(super) fn row(
    point: &Point<'_>,
    benchmark: Benchmark,
    meter: &Meter,
    flows: &[(Direction, Shared)],
) -> Result<Row, Error> {
    let windows: Vec<_> = flows.iter().map(|(_, windows)| windows.borrow()).collect();
    let mut times: Vec<(Time, Time)> = windows[0].measured(point.warmup).collect();
    for other in &windows[1..] {
        for (whole, (begun, ended)) in times.iter_mut().zip(other.measured(point.warmup)) {
            *whole = (whole.0.min(begun), whole.1.max(ended));
        }
    }
    let took = |(begun, ended): (Time, Time)| ended.since(begun);
    let total: Duration = times.iter().copied().map(took).sum();
    let spread = Spread::of(times.iter().copied().map(took), 1);
    let of_one = point.iterations * point.window;
    let rate = |messages: u64, time: Duration| {
        let (messages, seconds) = (messages as f64, time.ps() as f64 / 1e12);
        match benchmark {
            Benchmark::Bandwidth => (Some(messages * point.size as f64 / seconds), None),
            _ => (None, Some(messages / seconds)),
        }
    };
    let flow = |((direction, _), windows): (&(Direction, Shared), &std::cell::Ref<'_, Windows>)| {
        let time = windows.measured(point.warmup).map(took).sum();
        let (bandwidth_bytes_per_s, messages_per_s) = rate(of_one, time);
        let Direction { source, target } = *direction;
        Flow { source, target, bandwidth_bytes_per_s, messages_per_s, ..Flow::default() }
    };
    let each: Vec<Flow> = flows.iter().zip(&windows).map(flow).collect();
    let (bandwidth_bytes_per_s, messages_per_s) = rate(of_one * each.len() as u64, total);
    let rates = each.iter().filter_map(|flow| flow.bandwidth_bytes_per_s.or(flow.messages_per_s));
    Ok(Row {
        window: Some(point.window),
        window_ns: Some(spread.mean),
        bandwidth_bytes_per_s,
        messages_per_s,
        fairness: matches!(point.pattern, Pattern::Incast(_)).then(|| fairness(rates)),
        flows: point.pattern.is_concurrent().then_some(each),
        ..point.row(&spread, meter)
    })
}

/// Adds a program to every rank that sends windows of puts.
fn puts(
    cluster: &mut Cluster,
    point: &Point<'_>,
    flows: &[(Direction, Shared)],
    meter: &Rc<Meter>,
) -> Result<(), Error> {
    for rank in 0..point.pattern.nodes() {
        let incoming: Vec<_> = flows.iter().filter(|(d, _)| d.target == rank).cloned().collect();
        let outgoing = flows.iter().find(|(d, _)| d.source == rank).cloned();
        let (size, window, warmup) = (point.size, point.window, point.warmup);
        let rounds = warmup + point.iterations;
        let receiver = Receiver::set_up(cluster.host(rank), point, incoming)?;
        let meter = meter.clone();
        cluster.program(rank, move |host| async move {
            let mut sender = match outgoing {
                None => None,
                Some((direction, windows)) => {
                    Some(Sender::set_up(host.clone(), size, window, direction.target, windows)?)
                }
            };
            receiver.append(&host).await?;
            for round in 0..rounds {
                // All ranks have finished the previous window before this window begins.
                host.barrier().await;
                if let Some(sender) = &mut sender {
                    sender.send().await?;
                }
                receiver.receive(&host, round).await?;
                if round + 1 == warmup && receiver.is_used() {
                    meter.warm();
                }
            }
            Ok(())
        });
    }
    Ok(())
}

/// The side of a rank that sends.
struct Sender {
    host: Host,
    portals: Portals,
    out: Buffer,
    put: PutRequest,
    window: u64,
    rng: nicety_kernel::Rng,
    windows: Shared,
}

impl Sender {
    fn set_up(host: Host, size: u64, window: u64, to: u32, windows: Shared) -> Result<Sender, Error> {
        let (portals, out) = (host.portals()?, host.alloc(size)?);
        let options = MdOptions::EVENT_SEND_DISABLE;
        let md = portals.md_bind(Md { start: out.address(), length: size, options, ..Md::default() })?;
        let rng = host.rng("stream payload");
        let put = PutRequest::new(md, size, NodeId(to), PT, DATA);
        Ok(Sender { host, portals, out, put, window, rng, windows })
    }

    /// Posts a window.
    async fn send(&mut self) -> Result<(), Error> {
        {
            let mut windows = self.windows.borrow_mut();
            windows.sent = Payload::write(&mut self.rng, &self.out);
            windows.begun.push(self.host.now());
        }
        for _ in 0..self.window {
            self.portals.put(&self.put).await?;
        }
        Ok(())
    }
}

/// The side of a rank that receives.
struct Receiver {
    flows: Vec<Incoming>,
    /// In mode rdma, the queue from which the host polls an event for every message. In the other modes, a counter for each
    /// sender replaces it.
    events: Option<EqHandle>,
    window: u64,
}

/// The messages that arrive from one sender.
struct Incoming {
    source: u32,
    me: Me,
    memory: Buffer,
    counter: CtHandle,
    windows: Shared,
}

impl Receiver {
    fn set_up(host: &Host, point: &Point<'_>, flows: Vec<(Direction, Shared)>) -> Result<Receiver, Error> {
        let portals = host.portals()?;
        let messages = point.window * flows.len() as u64;
        let events = match point.mode {
            Mode::Rdma if messages > 0 => {
                Some(portals.eq_alloc(u32::try_from(messages).unwrap_or(u32::MAX))?)
            }
            _ => None,
        };
        portals.pt_alloc(Some(PT), events)?;
        let incoming = |(direction, windows): (Direction, Shared)| {
            let memory = host.alloc(point.size)?;
            let counter = portals.ct_alloc()?;
            let handlers = match point.handlers(host.rank()) {
                None => None,
                Some(handlers) => Some(portals.attach(handlers, &[], None)?),
            };
            let options = MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE;
            let counted = MeOptions::EVENT_COMM_DISABLE | MeOptions::EVENT_CT_COMM;
            let me = Me {
                start: memory.address(),
                length: point.size,
                match_bits: DATA,
                source: Source::Rank(NodeId(direction.source)),
                options: if events.is_some() { options } else { options | counted },
                ct: events.is_none().then_some(counter),
                handlers,
                ..Me::default()
            };
            Ok(Incoming { source: direction.source, me, memory, counter, windows })
        };
        let flows = flows.into_iter().map(incoming).collect::<Result<_, Error>>()?;
        Ok(Receiver { flows, events, window: point.window })
    }

    const fn is_used(&self) -> bool {
        !self.flows.is_empty()
    }

    async fn append(&self, host: &Host) -> Result<(), Error> {
        let portals = host.portals()?;
        for flow in &self.flows {
            let appending = portals.me_append(PT, flow.me, List::Priority).await?;
            portals.appended(appending).await?;
        }
        Ok(())
    }

    /// Waits for a window from every sender, and checks the bytes of its last message.
    async fn receive(&self, host: &Host, round: u64) -> Result<(), Error> {
        let portals = host.portals()?;
        match self.events {
            Some(eq) => self.poll(host, eq).await?,
            None => {
                for flow in &self.flows {
                    portals.ct_wait(flow.counter, (round + 1) * self.window).await?;
                }
                for flow in &self.flows {
                    // With one sender, a window ends when the host has noticed its last message. With several senders, the host
                    // waits for one after another, so the time of the notice is not the end. Then the window ends when the
                    // counter changed.
                    let seen = portals.ct_changed(flow.counter).filter(|_| self.flows.len() > 1);
                    flow.windows.borrow_mut().ended.push(seen.unwrap_or(host.now()));
                }
            }
        }
        self.flows.iter().try_for_each(|flow| flow.windows.borrow().check(&flow.memory, round))
    }

    async fn poll(&self, host: &Host, eq: EqHandle) -> Result<(), Error> {
        let portals = host.portals()?;
        let mut left = vec![self.window; self.flows.len()];
        for _ in 0..self.window * self.flows.len() as u64 {
            let put = |event: &nicety_portals::Event| event.kind == EventKind::Put;
            let event = portals.eq_wait(eq, put, || "the messages of a window".to_string()).await?;
            let flow = self.flows.iter().position(|flow| flow.source == event.initiator.0);
            let flow = flow.expect("only senders have a match entry");
            left[flow] -= 1;
            if left[flow] == 0 {
                self.flows[flow].windows.borrow_mut().ended.push(host.now());
            }
        }
        Ok(())
    }
}
