//! Running processes on a processor by itself: no host, no network.

use super::{Fault, Nfp, NfpSpec, Outside, Program, ProgramError};
use nicety_hpu::LoadError;
use nicety_kernel::{Config, RunError, World};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Why an experiment failed.
#[derive(Clone, Debug)]
pub enum ExperimentError {
    /// What was asked for cannot be: what is wrong, and what to write.
    Input(String),
    /// The program does not fit, or has no such function.
    Program(ProgramError),
    /// A process was stopped.
    Fault(Fault),
    /// The data do not fit a memory.
    Memory(Outside),
    /// The run itself ended early.
    Run(RunError),
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExperimentError::Input(text) => f.write_str(text),
            ExperimentError::Program(error) => error.fmt(f),
            ExperimentError::Fault(error) => error.fmt(f),
            ExperimentError::Memory(error) => error.fmt(f),
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

impl From<Fault> for ExperimentError {
    fn from(error: Fault) -> ExperimentError {
        ExperimentError::Fault(error)
    }
}

impl From<Outside> for ExperimentError {
    fn from(error: Outside) -> ExperimentError {
        ExperimentError::Memory(error)
    }
}

/// Runs `steps` on a fresh processor with the compiled program `elf`, to the end. Set by somebody else, `interrupt`
/// ends it early.
pub(super) fn run<T: 'static, F>(
    spec: &NfpSpec,
    elf: &[u8],
    interrupt: Option<Arc<AtomicBool>>,
    steps: impl FnOnce(Rc<Nfp>, Rc<Program>) -> F,
) -> Result<T, ExperimentError>
where
    F: Future<Output = Result<T, ExperimentError>> + 'static,
{
    let program = Program::load(elf, spec)?;
    let mut world: World<()> = World::new(Config { interrupt, ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    let steps = steps(Nfp::new(&sim, spec), program);
    let result = Rc::new(RefCell::new(None));
    let kept = result.clone();
    sim.spawn_program("card", async move {
        let done = steps.await;
        kept.replace(Some(done));
    });
    world.run().map_err(ExperimentError::Run)?;
    result.take().expect("the program has ended")
}

/// The parts of `count` things that each of `parts` gets: their first and how many, the larger parts first.
pub(super) fn shares(count: usize, parts: usize) -> impl Iterator<Item = (usize, usize)> {
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
