//! A program on a card under a debugger: one run of the request's packets, and its repetitions on ways back in time.

use super::check::{FRAMES, equal_frames, handlers_of};
use super::meter::CARD;
use super::request::Request;
use super::rig::Rig;
use super::tested::{OnHost, Tested};
use nicety::{Environment, Error, failure_lines};
use nicety_debug::{End, Listener, Session};
use nicety_nic_processors::HandlerStatistics;
use serde::Serialize;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The result of a debugging session.
#[derive(Clone, Debug, Serialize)]
pub struct DebugReport {
    /// The card.
    pub nic: String,
    /// The seed of the run.
    pub seed: u64,
    /// The end of the session: `complete`, `killed`, or `lost` where the connection was lost.
    pub end: &'static str,
    /// The reason of a lost connection.
    pub lost: Option<String>,
    /// Stops of the debugger.
    pub stops: u64,
    /// The runs of the simulation: one, and those of ways back.
    pub simulations: u64,
    /// Statistics of the handlers in the last run.
    #[serde(flatten)]
    pub handlers: HandlerStatistics,
    /// Failures of handlers in the last run, a line each.
    pub failures: Vec<String>,
}

/// Runs a program under a debugger that connects to `port` of the loopback interface, 0 for any free one. Calls
/// `listening` with the port. The program's key among the compiled ones is its card.
///
/// # Errors
/// Invalid input, such as several cards or a port in use; the run's error.
pub fn debug(
    request: &Request,
    environment: &Environment<'_>,
    port: u16,
    listening: &dyn Fn(u16),
) -> Result<DebugReport, Error> {
    let (cards, packet_sizes) = request.resolve()?.with_processors()?;
    let [(nic, card)] = &cards[..] else {
        return Err(Error::Input(format!(
            "--nic: a debugger runs on one card, but {} cards are named",
            cards.len()
        )));
    };
    let packet_bytes = match packet_sizes[..] {
        [first] => first,
        // Without a size, the smallest one that a check has.
        [first, ..] if request.packet_sizes.is_none() => first,
        _ => {
            return Err(Error::Input(
                "--packet-sizes: a debugger runs packets of one size; name one size".into(),
            ));
        }
    };
    if request.sensitivity {
        return Err(Error::Input("--sensitivity: a debugger makes one run; leave it out".into()));
    }
    let handlers = handlers_of(request, environment, nic, card)?;
    let rig = Rig {
        request,
        environment,
        card,
        handlers: &handlers,
        packet_bytes,
        place: nic,
        profiler: None,
        rough: true,
    };
    let listener = Listener::open(port).map_err(|error| Error::Input(error.to_string()))?;
    let flag = environment.interrupt.clone();
    let interrupted = move || flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
    let session = Rc::new(Session::new(Box::new(interrupted.clone())));
    let result = rig.under(&session);
    if !session.repeats() {
        let nothing = || Error::Program("no handler ran, so there is nothing to debug".into());
        return Err(result.err().unwrap_or_else(nothing));
    }
    listening(listener.port());
    let wire = listener
        .accept(&interrupted)
        .map_err(|error| Error::Program(format!("no debugger connected: {error}")))?;
    session.connect(wire.ok_or(Error::Interrupted)?);
    let quiet = rig.quiet();
    let mut simulations = 1;
    let mut result = rig.under(&session);
    while session.repeats() {
        simulations += 1;
        // The first run has printed the output of handlers.
        result = Rig { environment: &quiet, ..rig }.under(&session);
    }
    let failed = !matches!(&result, Ok((_, failures)) if failures.is_empty());
    let (end, stops) = session.finish(failed.into());
    let (end, lost, (handlers, failures)) = match (end, result) {
        (End::Interrupted, _) => return Err(Error::Interrupted),
        (End::Killed, _) => ("killed", None, <_>::default()),
        (End::Complete, result) => ("complete", None, result?),
        (End::Lost(why), result) => ("lost", Some(why), result?),
    };
    Ok(DebugReport {
        nic: nic.clone(),
        seed: request.seed,
        end,
        lost,
        stops,
        simulations,
        handlers,
        failures,
    })
}

impl Rig<'_> {
    /// Makes one run with a debugger. Returns the statistics of its handlers, and the lines of their failures.
    fn under(&self, session: &Rc<Session>) -> Result<(HandlerStatistics, Vec<String>), Error> {
        let tested = Tested::of(self.card)?;
        let expressions = match &self.request.traffic[..] {
            [] if self.request.has_frames(&tested) => {
                vec![equal_frames(self.request, self.packet_bytes, FRAMES)]
            }
            expressions => expressions.to_vec(),
        };
        let (stop, interrupt) = self.stop();
        // The memory lives as long as the run.
        let (mut cluster, _memory) = match expressions[..] {
            [] => {
                let (cluster, memory) = self.unmeasured_equal(&tested, self.request.messages(), interrupt)?;
                (cluster, Some(memory))
            }
            _ => self.unmeasured(&tested, &expressions, interrupt)?,
        };
        let card = OnHost::of(cluster.host(CARD.0), &tested)?;
        session.begins(stop.clone());
        card.processors().observed_by(session.clone());
        self.run(&mut cluster, card.processors(), stop)?;
        let failures = card.processors().failures();
        let lines = failure_lines(&failures).lines().map(str::to_owned).collect();
        Ok((card.processors().handler_statistics(), lines))
    }
}
