//! Runs Python coroutines as programs of hosts. A run takes place in the calling OS thread. This thread holds Python's
//! lock, but releases it for a moment every few milliseconds.

use super::calls::Calls;
use super::debugging::DebugSession;
use super::running::{Isa, Run, Running, Watch};
use super::thread::{Coroutine, End};
use crate::calls::{print_line, tell_large, text};
use crate::capture;
use crate::errors::{RunError, broken, guarded, raised};
use crate::tables::Recording;
use nicety::cards::{self, Card};
use nicety::commands::{Loaded, Program, drive};
use nicety::report::RunReport;
use nicety::{Allowed, Cluster, ClusterConfig, Error, Topology};
use nicety_line_rate::processes as checks;
use nicety_line_rate::profile::processes;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    /// The cluster that was built last in this OS thread. The first run of its simulation uses it.
    static BUILT: RefCell<Option<Built>> = const { RefCell::new(None) };
}

/// The number of simulations that were constructed so far.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// A built cluster before its run. It belongs to the OS thread that built it.
struct Built {
    /// The number of the simulation for which the cluster was built.
    simulation: u64,
    cluster: Cluster,
    watch: Arc<Watch>,
}

impl Built {
    /// Removes and returns the stored cluster, if it was built for this simulation.
    fn take(simulation: u64) -> Option<Built> {
        BUILT.with_borrow_mut(|built| built.take_if(|built| built.simulation == simulation))
    }
}

/// A cluster of hosts with Python coroutines as their programs.
#[pyclass(frozen)]
pub struct Simulation {
    number: u64,
    config: ClusterConfig,
    /// The text about the effects of faults in the last run.
    fault_notes: Mutex<String>,
    /// The findings of the last run, as JSON.
    checked: Mutex<Option<String>>,
}

/// The report of a run as JSON, the recording, the values that the programs returned, and the rows of a profile as JSON.
type Ended = (String, Recording, Vec<Py<PyAny>>, Option<String>);

#[pymethods]
impl Simulation {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python names them, and gives most a default")]
    #[pyo3(signature = (nodes, nics, topology, seed, overrides, shards, noise=None, recording="summary", recorded_rows=None, faults=None, uids=Vec::new(), flow_control=None, traffic=Vec::new()))]
    fn new(
        nodes: u32,
        nics: Vec<String>,
        topology: &str,
        seed: u64,
        overrides: Vec<String>,
        shards: usize,
        noise: Option<&str>,
        recording: &str,
        recorded_rows: Option<usize>,
        faults: Option<&str>,
        uids: Vec<u32>,
        flow_control: Option<&str>,
        traffic: Vec<String>,
    ) -> PyResult<Self> {
        let watch = Watch::new();
        let built = guarded(|| {
            let default = ClusterConfig::of(cards::load_all(&nics, &overrides)?);
            let config = ClusterConfig {
                nodes,
                recording: recording.parse().map_err(Error::Input)?,
                recorded_rows: recorded_rows.unwrap_or(default.recorded_rows),
                topology: topology.parse::<Topology>()?,
                noise: noise.map(str::parse).transpose()?,
                flow_control: flow_control.map(nicety::flow::parse).transpose()?.unwrap_or_default(),
                faults: faults.map(nicety::faults::parse).transpose()?.unwrap_or_default(),
                uids,
                traffic,
                seed,
                shards,
                log: Arc::new(print_line),
                large: tell_large,
                // The Python package decides which failures are errors.
                allowed: Allowed::ALL,
                // The Python package reads the times of stages only from recordings.
                breakdown: false,
                ..default
            };
            // The cluster is built here, so that its errors are raised before any program exists.
            let cluster =
                Cluster::new(ClusterConfig { interrupt: Some(watch.interrupt()), ..config.clone() })?;
            Ok((config, cluster))
        });
        if let Some(error) = watch.raised() {
            return Err(error);
        }
        let ((config, cluster), number) = (built?, COUNT.fetch_add(1, Ordering::Relaxed));
        drop(BUILT.replace(Some(Built { simulation: number, cluster, watch })));
        Ok(Simulation { number, config, fault_notes: Mutex::default(), checked: Mutex::default() })
    }

    /// Runs programs to their end. Each item is a host and the coroutine that is its program. The active capture of
    /// this thread gets the packets. With `profile`, the processes of the cards are profiled. With `check`, they are checked
    /// in the interleaving of this number, and up to this number of instructions of a card. With `debug`, those of a rank are
    /// debugged. A run that the session abandons, or that goes beyond its instructions, raises `KeyboardInterrupt`.
    #[pyo3(signature = (programs, profile=false, check=None, debug=None))]
    fn run(
        &self,
        py: Python<'_>,
        programs: Vec<(PyRef<'_, Calls>, Py<PyAny>)>,
        profile: bool,
        check: Option<(u64, Option<u64>)>,
        debug: Option<(PyRef<'_, DebugSession>, u32)>,
    ) -> PyResult<Ended> {
        let built = Built::take(self.number);
        let watch = built.as_ref().map_or_else(Watch::new, |built| built.watch.clone());
        let run = Rc::new(Run::new(watch.clone(), self.isas(), self.interfaces()));
        let begun = programs.into_iter().map(|(calls, coroutine)| {
            let number = run.begin(coroutine.clone_ref(py));
            (calls.0.clone(), coroutine, number, End::default())
        });
        let begun: Vec<_> = begun.collect();
        let ends: Vec<End> = begun.iter().map(|(.., end)| end.clone()).collect();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let cut = check.and_then(|(_, instructions)| instructions);
            let cut = cut.map(|instructions| checks::Cut { instructions, stop: Arc::default() });
            let stop = match &debug {
                Some((session, _)) => Some(session.0.begins()),
                None => cut.as_ref().map(|cut| cut.stop.clone()),
            };
            let mut cluster = match (built, capture::current()) {
                (Some(built), None) if stop.is_none() => built.cluster,
                (built, capture) => {
                    drop(built);
                    let interrupt = Some(watch.interrupt_or(stop));
                    Cluster::new(ClusterConfig { interrupt, capture, ..self.config.clone() })?
                }
            };
            if profile {
                processes::profile(&cluster, self.config.nodes)?;
            }
            let (ranks, seed) = (self.config.nodes, self.config.seed);
            let cards = check
                .map(|(schedule, _)| checks::check(&cluster, ranks, seed, schedule, cut.as_ref()))
                .transpose()?;
            if let Some((session, rank)) = &debug {
                session.0.observe(&cluster, *rank)?;
            }
            let loaded = Loaded::default();
            for (host, coroutine, number, end) in begun {
                host.begin();
                let (rank, run, loaded) = (host.rank, run.clone(), loaded.clone());
                cluster.program(rank, |on| {
                    let program = Program::new(on, loaded);
                    let running = Rc::new(Running { host, program: program.clone(), run });
                    drive(program, Box::new(Coroutine::first(running, coroutine, number, end)))
                });
            }
            let ended = cluster.run();
            if let Some(cards) = cards {
                let found = text(&cards.finish());
                *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            }
            let rows = match profile {
                true => Some(processes::rows(&self.config.cards, &cluster, self.config.nodes)?),
                false => None,
            };
            *self.fault_notes.lock().unwrap_or_else(PoisonError::into_inner) = cluster.fault_notes();
            Ok::<_, Error>((ended?, rows))
        }));
        run.close(py);
        if let Some(error) = watch.raised() {
            return Err(error);
        }
        match ended {
            Err(panic) => Err(broken(&*panic)),
            Ok(Err(error)) => Err(exception_of(py, &run, &error)),
            Ok(Ok((ended, rows))) => {
                let rows = rows.map(|rows| text(&rows));
                let text = py.detach(|| text(&RunReport::of(&ended)));
                let results = ends.iter().map(|end| match end.take() {
                    Some(Ok(result)) => result,
                    _ => py.None(),
                });
                Ok((text, Recording(ended.recording), results.collect(), rows))
            }
        }
    }

    /// Returns the findings of the last run, as JSON, if it was checked. A run that failed has them too.
    fn checked(&self) -> Option<String> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns a text about the effects of faults and full buffers on packets, at the end of the run. If the cards have
    /// reliable transport, the text names only failed links and nodes. The text begins with a new line, or is empty.
    fn fault_notes(&self) -> String {
        self.fault_notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // The cluster exists only in the OS thread that built it. If that thread is ending, the cluster no longer
        // exists.
        let own = |built: &mut Built| built.simulation == self.number;
        let built = BUILT.try_with(|built| built.borrow_mut().take_if(own));
        drop(built);
    }
}

impl Simulation {
    /// Returns the instruction sets of the cards' programs.
    fn isas(&self) -> Vec<Isa> {
        let isa = |card: &Card| {
            card.spec.isa().map(str::to_owned).ok_or_else(|| {
                let name = &card.listing.name;
                format!("card {name} runs no programs of its own, so there is nothing to compile for")
            })
        };
        self.config.cards.iter().map(isa).collect()
    }

    /// Returns the names of the interfaces of handlers on the cards.
    fn interfaces(&self) -> Vec<&'static str> {
        self.config.cards.iter().map(|card| card.spec.interface()).collect()
    }
}

/// Returns the exception for a failed run. If a thread raised an exception that no other thread has taken before the
/// run stopped, that exception is the reason for the failure.
fn exception_of(py: Python<'_>, run: &Run, error: &Error) -> PyErr {
    let error = raised(error);
    if !error.is_instance_of::<RunError>(py) {
        return error;
    }
    match run.first_failure() {
        None => error,
        Some(failure) => {
            failure.set_cause(py, Some(error));
            failure
        }
    }
}
