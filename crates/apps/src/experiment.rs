//! Experiments with processes on a processor alone, or on a card with its host. They have no network.

use nicety::Error;
use nicety_fabric::{Port, Symbol};
use nicety_host::{Cpus, Memory, MemoryError};
use nicety_hpu::LoadError;
use nicety_kernel::{Config, Either, RunError, Sim, World, race};
use nicety_nic_nfp::{
    Card, ChannelError, Nfp, NfpSpec, Outcome, Outside, Program, ProgramError, Slot, Trapped,
};
use nicety_types::Recorder;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The failure of an experiment.
#[derive(Clone, Debug)]
pub enum ExperimentError {
    /// The request is impossible. The text has the problem and a correction.
    Input(String),
    /// The program does not fit, or does not have the requested function.
    Program(ProgramError),
    /// A process trapped.
    Trapped(Trapped),
    /// A process ended too early: its microengine, its context, and its return value.
    Ended(usize, usize, u32),
    /// The data do not fit a memory of the card.
    Memory(Outside),
    /// The data do not fit the host's memory.
    Host(MemoryError),
    /// A channel failed.
    Channel(ChannelError),
    /// The run itself ended too early.
    Run(RunError),
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExperimentError::Input(text) => f.write_str(text),
            ExperimentError::Program(error) => error.fmt(f),
            ExperimentError::Trapped(error) => error.fmt(f),
            ExperimentError::Ended(core, context, value) => write!(
                f,
                "microengine {core}, context {context}: the process ended too early, with {}",
                *value as i32
            ),
            ExperimentError::Memory(error) => error.fmt(f),
            ExperimentError::Host(error) => error.fmt(f),
            ExperimentError::Channel(error) => error.fmt(f),
            ExperimentError::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExperimentError {}

impl From<ProgramError> for ExperimentError {
    fn from(error: ProgramError) -> ExperimentError {
        ExperimentError::Program(error)
    }
}

impl From<LoadError> for ExperimentError {
    fn from(error: LoadError) -> ExperimentError {
        ExperimentError::Program(ProgramError::Image(error))
    }
}

impl From<Trapped> for ExperimentError {
    fn from(error: Trapped) -> ExperimentError {
        ExperimentError::Trapped(error)
    }
}

impl From<Outside> for ExperimentError {
    fn from(error: Outside) -> ExperimentError {
        ExperimentError::Memory(error)
    }
}

impl From<MemoryError> for ExperimentError {
    fn from(error: MemoryError) -> ExperimentError {
        ExperimentError::Host(error)
    }
}

impl From<ChannelError> for ExperimentError {
    fn from(error: ChannelError) -> ExperimentError {
        ExperimentError::Channel(error)
    }
}

impl From<ExperimentError> for Error {
    fn from(error: ExperimentError) -> Error {
        let text = error.to_string();
        match error {
            ExperimentError::Run(RunError::Interrupted { .. }) => Error::Interrupted,
            ExperimentError::Run(RunError::Deadlock { .. }) => Error::Deadlock(text),
            ExperimentError::Run(_) | ExperimentError::Ended(..) | ExperimentError::Channel(_) => {
                Error::Program(text)
            }
            ExperimentError::Trapped(_) => Error::HandlerTrap(text),
            ExperimentError::Input(_)
            | ExperimentError::Program(_)
            | ExperimentError::Memory(_)
            | ExperimentError::Host(_) => Error::Input(text),
        }
    }
}

/// Runs `steps` to their end on a new processor that has the compiled program `elf`. If another thread sets `interrupt`, the run
/// ends early.
pub(crate) fn run<T: 'static, F>(
    spec: &NfpSpec,
    elf: &[u8],
    interrupt: Option<Arc<AtomicBool>>,
    steps: impl FnOnce(Rc<Nfp>, Rc<Program>) -> F,
) -> Result<T, ExperimentError>
where
    F: Future<Output = Result<T, ExperimentError>> + 'static,
{
    let program = Program::load(elf, spec)?;
    simulate(interrupt, |sim| steps(Nfp::new(sim, spec), program))
}

/// A card with its host.
pub(crate) struct Bench {
    pub(crate) sim: Sim,
    pub(crate) card: Rc<Card>,
    pub(crate) memory: Rc<Memory>,
    pub(crate) program: Rc<Program>,
}

/// Runs `steps` on a new card with its host. Otherwise as [`run`].
pub(crate) fn run_with_host<T: 'static, F>(
    spec: &NfpSpec,
    elf: &[u8],
    interrupt: Option<Arc<AtomicBool>>,
    steps: impl FnOnce(Bench) -> F,
) -> Result<T, ExperimentError>
where
    F: Future<Output = Result<T, ExperimentError>> + 'static,
{
    let program = Program::load(elf, spec)?;
    simulate(interrupt, |sim| steps(Bench::new(sim, spec, program, (None, 1))))
}

/// As [`run_with_host`]. The program `peer` runs on a node of another kind, at the other end of the card's link.
pub(crate) fn run_on_link<T: 'static, F, G>(
    spec: &NfpSpec,
    elf: &[u8],
    interrupt: Option<Arc<AtomicBool>>,
    steps: impl FnOnce(Bench) -> F,
    peer: impl FnOnce(Sim, Port) -> G,
) -> Result<T, ExperimentError>
where
    F: Future<Output = Result<T, ExperimentError>> + 'static,
    G: Future<Output = ()> + 'static,
{
    let program = Program::load(elf, spec)?;
    let mut world: World<Symbol> =
        World::new(Config { interrupt: interrupt.map(Into::into), ..Config::default() });
    let (card, other) = (world.add_node(), world.add_node());
    let (here, there) = nicety_fabric::pair(&mut world, card, other, spec.node.link);
    let (sim, beyond) = (world.sim(card), world.sim(other));
    beyond.spawn(peer(beyond.clone(), there));
    let steps = steps(Bench::new(&sim, spec, program, (Some(here), 2)));
    ended(&mut world, &sim, steps)
}

fn simulate<T: 'static, F>(
    interrupt: Option<Arc<AtomicBool>>,
    steps: impl FnOnce(&Sim) -> F,
) -> Result<T, ExperimentError>
where
    F: Future<Output = Result<T, ExperimentError>> + 'static,
{
    let mut world: World<()> =
        World::new(Config { interrupt: interrupt.map(Into::into), ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    let steps = steps(&sim);
    ended(&mut world, &sim, steps)
}

/// When no event is left, returns the result of the host's program.
fn ended<M: Send + 'static, T: 'static>(
    world: &mut World<M>,
    sim: &Sim,
    steps: impl Future<Output = Result<T, ExperimentError>> + 'static,
) -> Result<T, ExperimentError> {
    let result = Rc::new(RefCell::new(None));
    let kept = result.clone();
    sim.spawn_program("host", async move {
        let done = steps.await;
        kept.replace(Some(done));
    });
    world.run().map_err(ExperimentError::Run)?;
    result.take().expect("the program has ended")
}

impl Bench {
    /// Builds a card with this port. `port` also has the number of nodes.
    fn new(sim: &Sim, spec: &NfpSpec, program: Rc<Program>, port: (Option<Port>, u32)) -> Bench {
        let off = Recorder::off();
        let memory = Rc::new(Memory::new(spec.node.host.memory));
        let cpus = Rc::new(Cpus::new(sim, spec.node.host, &off));
        let card =
            Card::install(sim, Arc::new(spec.clone()), memory.clone(), &cpus, port, (&Slot::default(), &off));
        Bench { sim: sim.clone(), card, memory, program }
    }

    /// Awaits a future while the processes at `places` run. If a process fails, the wait ends with its error.
    pub(crate) async fn beside<T>(
        &self,
        places: &[(usize, usize)],
        steps: impl Future<Output = Result<T, ExperimentError>>,
    ) -> Result<T, ExperimentError> {
        let nfp = self.card.processor();
        let failure = || {
            places.iter().find_map(|&(core, context)| match nfp.outcome(core, context)? {
                Outcome::Trapped(trap) => Some(ExperimentError::Trapped(Trapped { core, context, trap })),
                Outcome::Returned(0) => None,
                Outcome::Returned(value) => Some(ExperimentError::Ended(core, context, value)),
            })
        };
        match race(steps, nfp.ended().wait_until(|| failure().is_some())).await {
            // A channel may fail because its process has ended. Then the error of the process is returned, because it gives the
            // cause. A process that fails after its answer also ends the wait with its error.
            Either::Left(done) => failure().map_or(done, Err),
            Either::Right(()) => Err(failure().expect("just seen")),
        }
    }
}

/// Divides `count` items into `parts` shares. Returns the first item and the number of items of each share. Larger shares come
/// first.
pub(crate) fn shares(count: usize, parts: usize) -> impl Iterator<Item = (usize, usize)> {
    let (each, more) = (count / parts, count % parts);
    (0..parts).map(move |part| (part * each + part.min(more), each + usize::from(part < more)))
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn shares_are_even_and_leave_nothing() {
        assert_eq!(shares(8, 3).collect::<Vec<_>>(), [(0, 3), (3, 3), (6, 2)]);
        assert_eq!(shares(2, 3).collect::<Vec<_>>(), [(0, 1), (1, 1), (2, 0)]);
    }
}
