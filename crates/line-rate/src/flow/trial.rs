//! One run: frames at a rate, through the contexts.

use super::Given;
use crate::request::{refused, traffic_of};
use nicety::Error;
use nicety::Interrupt;
use nicety::nfp::ContextCounters;
use nicety::nfp::xdp::{Arrival, Ended, Ran, Work, XdpCard, XdpError, XdpProgram};
use nicety_ebpf::verdict;
use nicety_kernel::RunError;
use nicety_traffic::{DueTime, Stream};
use nicety_types::{Duration, Histogram, Time};
use std::collections::BTreeMap;

/// The figures of a run.
pub(super) struct Trial {
    /// The rate, relative to the traffic's.
    pub(super) times: f64,
    pub(super) offered: u64,
    pub(super) offered_bytes: u64,
    /// The time of the frames at their rate, and on the wire.
    lasts: Duration,
    wire: Duration,
    pub(super) lost: u64,
    waiting: u64,
    /// Most frames that may wait at the end.
    room: u64,
    pub(super) verdicts: BTreeMap<&'static str, u64>,
    pub(super) latency: Histogram,
    end: Duration,
    pub(super) contexts: ContextCounters,
    work: Vec<Work>,
    pub(super) variables: Vec<u8>,
}

impl Trial {
    pub(super) fn taken(&self) -> u64 {
        self.offered - self.lost
    }

    /// Frames a second of the wire.
    pub(super) fn offered_pps(&self) -> f64 {
        self.offered as f64 * 1e12 / self.lasts.ps().max(1) as f64
    }

    /// Frames a second with a verdict.
    pub(super) fn taken_pps(&self) -> f64 {
        self.taken() as f64 * 1e12 / self.span().ps().max(1) as f64
    }

    /// Until the last frame's end.
    fn span(&self) -> Duration {
        self.end.max(self.lasts)
    }

    /// The fraction of the run for which each part was busy.
    pub(super) fn loads(&self) -> impl Iterator<Item = (&str, f64)> {
        let span = self.span().ps().max(1) as f64;
        let of = move |busy: Duration, units: u64| busy.ps() as f64 / span / units.max(1) as f64;
        let work = self.work.iter().map(move |work| (work.part.as_str(), of(work.busy, work.units)));
        work.chain([("link, in", of(self.wire, 1))])
    }

    /// Whether no frame was lost, each part's work takes no longer than the frames, and no backlog grew. At the end, at most half of
    /// the room for frames is in use, and at most a two-hundredth of the frames are there.
    pub(super) fn keeps_up(&self) -> bool {
        let most = (self.room / 2).min(self.offered / 200) + 2;
        let fits = |work: &Work| work.busy.ps() / work.units.max(1) <= self.span().ps();
        self.lost == 0 && self.waiting <= most && self.work.iter().all(fits) && self.work_out_fits()
    }

    /// Whether the ways out carry their frames in the time of the frames that come.
    fn work_out_fits(&self) -> bool {
        let out = self.work.iter().filter(|work| ["link, out", "bus to host"].contains(&work.part.as_str()));
        out.into_iter().all(|work| work.busy <= self.lasts)
    }
}

/// Opens the traffic.
///
/// # Errors
/// It is wrong for the card.
pub(super) fn stream(given: &Given<'_>) -> Result<Stream, Error> {
    let longest = given.spec.xdp.map_or(0, |xdp| xdp.longest);
    traffic_of(given.traffic)?.open(given.seed, longest).map_err(|error| refused(&error))
}

/// Frames of the traffic at `times` its rate.
struct Offered {
    frames: Vec<Arrival>,
    bytes: u64,
    lasts: Duration,
    wire: Duration,
}

fn offered(given: &Given<'_>, times: f64) -> Result<Offered, Error> {
    let Some(xdp) = given.spec.xdp else { return Err(given.wrong(&XdpError::NoFirmware)) };
    let mut stream = stream(given)?;
    let mut all = Offered { frames: Vec::new(), bytes: 0, lasts: Duration::ZERO, wire: Duration::ZERO };
    let slower = |ps: u64| if times == 1.0 { ps } else { (ps as f64 / times).round() as u64 };
    let (mut frame, mut wire_free) = (Vec::new(), 0);
    while let Some(due) = stream.next_frame(&mut frame).map_err(|error| refused(&error))? {
        let interval = xdp.gap.cover(frame.len() as u64 + xdp.header).ps();
        let (begins, lasts) = match due {
            DueTime::Wire => {
                let at = slower(all.wire.ps());
                (at.max(wire_free), slower(all.wire.ps() + interval))
            }
            DueTime::At { at, lasts } => (slower(at).max(wire_free), slower(lasts)),
        };
        wire_free = begins + interval;
        all.bytes += frame.len() as u64;
        all.wire += Duration::from_ps(interval);
        all.lasts = Duration::from_ps(lasts.max(wire_free));
        all.frames.push(Arrival { at: Time::from_ps(wire_free), bytes: frame.clone() });
    }
    let rate = traffic_of(given.traffic)?.rate;
    if let Some(why) = rate.above_the_wire(all.frames.len() as u64, all.bytes, all.wire.ns() / 1e9) {
        return Err(Error::Input(format!("--traffic: {why}")));
    }
    Ok(all)
}

/// Sends the traffic at `times` its rate.
///
/// # Errors
/// A trap of the program, wrong traffic, or an interrupt.
pub(super) fn run(given: &Given<'_>, program: &XdpProgram, times: f64) -> Result<Trial, Error> {
    let Offered { frames, bytes, lasts, wire } = offered(given, times)?;
    let count = frames.len() as u64;
    let interrupt = given.environment.interrupt.clone().map(Interrupt::from);
    let card = XdpCard::new(given.spec, program, interrupt).map_err(|error| given.wrong(&error))?;
    let ran = card.run(frames, false).map_err(|error| failed(given, error))?;
    let Ran { ended, lost, waiting, end, contexts, work, variables } = ran;
    let (mut verdicts, mut latency) = (BTreeMap::new(), Histogram::default());
    for Ended { verdict: value, arrived, at, .. } in &ended {
        *verdicts.entry(name_of(*value)).or_default() += 1;
        latency.add(at.since(*arrived).ps());
    }
    let room = given.spec.xdp.map_or(0, |xdp| xdp.queue + xdp.buffers * given.spec.islands()) as u64;
    let end = end.since(Time::ZERO);
    Ok(Trial {
        times,
        offered: count,
        offered_bytes: bytes,
        lasts,
        wire,
        lost,
        waiting,
        room,
        verdicts,
        latency,
        end,
        contexts,
        work,
        variables,
    })
}

/// The name of a verdict on this card: the driver's code ends with XDP_ABORTED for a redirect, and for other numbers.
fn name_of(value: u32) -> &'static str {
    match verdict(value) {
        Some("XDP_REDIRECT") | None => "XDP_ABORTED",
        Some(name) => name,
    }
}

fn failed(given: &Given<'_>, error: XdpError) -> Error {
    match error {
        XdpError::Trapped(_) => Error::HandlerTrap(format!("{}: {error}", given.nic)),
        XdpError::Run(RunError::Interrupted { .. }) => Error::Interrupted,
        _ => given.wrong(&error),
    }
}
