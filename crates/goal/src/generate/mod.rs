//! Schedules of communication patterns.
//!
//! Receives are posted as early as the pattern allows. A send waits for the data that it passes on. Calculations take CPU 0 of
//! each rank, and so do messages. In training steps, messages take CPU 1, so that they overlap with calculations on CPU 0.

pub(crate) mod collectives;
pub(crate) mod exchanges;
mod training;

use crate::schedule::{Builder, Kind, Op, Schedule};

/// A pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Rank 0 sends a message to all ranks, along a binomial tree.
    BinomialBroadcast,
    /// All ranks send to rank 0 along a binomial tree. Each rank with children computes.
    BinomialReduce,
    /// A barrier in a logarithmic number of rounds. At the end, each rank has a message that depends on all other ranks.
    Dissemination,
    /// An allreduce by recursive doubling. If the number of ranks is no power of two, each rank beyond gives its vector to
    /// another rank.
    RecursiveDoubling,
    /// An allreduce around a ring: a reduce-scatter, then an allgather.
    RingAllreduce,
    /// Each rank sends to all ranks, one partner after another.
    PairwiseAlltoall,
    /// Each rank sends to all ranks at once.
    LinearAlltoall,
    /// All ranks send to rank 0 at once.
    Gather,
    /// Rank 0 sends a part of its data to each rank, one after another.
    Scatter,
    /// Each rank exchanges faces with its neighbours in a grid of two dimensions.
    Halo2d,
    /// Each rank exchanges faces with its neighbours in a grid of three dimensions.
    Halo3d,
    /// A message goes from rank to rank, and each rank computes.
    Pipeline,
    /// Training steps. The gradients of a layer are reduced around a ring of all ranks while the next layer computes.
    DataParallel,
    /// Training steps. Each layer sends tokens to experts on all ranks, and gets them back.
    MixtureOfExperts,
}

impl Pattern {
    /// All patterns, with their names.
    pub const ALL: [(&'static str, Pattern); 14] = [
        ("binomial-broadcast", Pattern::BinomialBroadcast),
        ("binomial-reduce", Pattern::BinomialReduce),
        ("dissemination", Pattern::Dissemination),
        ("recursive-doubling", Pattern::RecursiveDoubling),
        ("ring-allreduce", Pattern::RingAllreduce),
        ("pairwise-alltoall", Pattern::PairwiseAlltoall),
        ("linear-alltoall", Pattern::LinearAlltoall),
        ("gather", Pattern::Gather),
        ("scatter", Pattern::Scatter),
        ("halo-2d", Pattern::Halo2d),
        ("halo-3d", Pattern::Halo3d),
        ("pipeline", Pattern::Pipeline),
        ("data-parallel", Pattern::DataParallel),
        ("mixture-of-experts", Pattern::MixtureOfExperts),
    ];

    /// Returns whether the pattern is a training step, which has layers.
    pub const fn has_layers(self) -> bool {
        matches!(self, Pattern::DataParallel | Pattern::MixtureOfExperts)
    }

    /// Returns whether ranks calculate in the pattern.
    pub const fn has_calculations(self) -> bool {
        let is_reduction =
            matches!(self, Pattern::BinomialReduce | Pattern::RecursiveDoubling | Pattern::RingAllreduce);
        let is_local = matches!(self, Pattern::Halo2d | Pattern::Halo3d | Pattern::Pipeline);
        is_reduction || is_local || self.has_layers()
    }
}

/// The size of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of ranks, at least one.
    pub ranks: u32,
    /// Number of bytes. It is the size of the message, of the reduced vector, of a face, or of the data for each rank in an
    /// alltoall. For a training step, it is the size of all gradients, and also of the tokens that a rank sends to all experts
    /// together.
    pub size: u64,
    /// Number of repetitions. Each rank begins the next one when it has ended its part of the previous one.
    pub iterations: u32,
    /// Duration of a calculation in nanoseconds, if the pattern has calculations.
    pub compute_ns: u64,
    /// Number of layers in a training step.
    pub layers: u32,
}

impl Shape {
    /// Estimates the number of operations of a pattern over all ranks. The estimate is between half and twice the true number.
    pub fn operations(&self, pattern: Pattern) -> u128 {
        let (ranks, layers) = (u128::from(self.ranks), u128::from(self.layers));
        let rounds = u128::from(self.ranks.max(2).ilog2());
        let ring = 3 * ranks * ranks;
        let once = match pattern {
            Pattern::BinomialBroadcast | Pattern::BinomialReduce | Pattern::Pipeline => 2 * ranks,
            Pattern::Gather | Pattern::Scatter => 2 * ranks,
            Pattern::Dissemination | Pattern::RecursiveDoubling => 2 * ranks * rounds,
            Pattern::PairwiseAlltoall | Pattern::LinearAlltoall => 2 * ranks * ranks,
            Pattern::Halo2d => 8 * ranks,
            Pattern::Halo3d => 12 * ranks,
            Pattern::RingAllreduce => ring,
            Pattern::DataParallel => layers * ring,
            Pattern::MixtureOfExperts => layers * 8 * ranks * ranks + ring,
        };
        once * u128::from(self.iterations)
    }
}

/// Generates a schedule. `go_on` is called for each rank; if it returns false, the result is `None`.
pub fn generate(pattern: Pattern, shape: &Shape, go_on: &mut dyn FnMut(u32) -> bool) -> Option<Schedule> {
    let mut builder = Builder::new();
    let grid = exchanges::Grid::of(shape.ranks, if pattern == Pattern::Halo2d { 2 } else { 3 });
    for rank in 0..shape.ranks {
        if !go_on(rank) {
            return None;
        }
        let mut program = Program::new(&mut builder, *shape, rank);
        for iteration in 0..shape.iterations {
            if iteration > 0 {
                program.join();
            }
            match pattern {
                Pattern::BinomialBroadcast => collectives::broadcast(&mut program),
                Pattern::BinomialReduce => collectives::reduce(&mut program),
                Pattern::Dissemination => collectives::dissemination(&mut program),
                Pattern::RecursiveDoubling => collectives::recursive_doubling(&mut program),
                Pattern::RingAllreduce => {
                    collectives::allreduce_ring(&mut program, shape.size, shape.compute_ns, 0, None)
                }
                Pattern::PairwiseAlltoall => exchanges::pairwise(&mut program),
                Pattern::LinearAlltoall => exchanges::linear(&mut program, &|_| (shape.size, shape.size), 0),
                Pattern::Gather => exchanges::gather(&mut program, &|_| shape.size),
                Pattern::Scatter => exchanges::scatter(&mut program, &|_| shape.size),
                Pattern::Halo2d | Pattern::Halo3d => exchanges::halo(&mut program, &grid),
                Pattern::Pipeline => exchanges::pipeline(&mut program),
                Pattern::DataParallel => training::data_parallel(&mut program),
                Pattern::MixtureOfExperts => training::mixture_of_experts(&mut program),
            }
        }
        builder.end_rank();
    }
    Some(builder.finish())
}

/// Returns the bytes of part `number`, if a vector is divided into `parts` parts that are as equal as possible.
fn part(size: u64, parts: u32, number: u32) -> u64 {
    size / u64::from(parts) + u64::from(u64::from(number) < size % u64::from(parts))
}

/// The operations of one rank of a pattern, under construction.
pub(crate) struct Program<'b> {
    builder: &'b mut Builder,
    shape: Shape,
    /// The number of the rank, counted from the root.
    rank: u32,
    /// The rank of the schedule that is rank 0 of the pattern.
    root: u32,
    /// The first tag of the pattern. A pattern with several tags uses this one and those after it.
    tag: u32,
    /// The CPU that messages take.
    cpu: u8,
    /// The operation after which the current part of the pattern begins, if any.
    before: Vec<u32>,
    /// The number of operations that the rank had before the pattern.
    base: u32,
    /// For each operation of the pattern, whether another operation depends on it.
    has_next: Vec<bool>,
    /// The index of the first operation of the current part.
    first: usize,
}

impl<'b> Program<'b> {
    fn new(builder: &'b mut Builder, shape: Shape, rank: u32) -> Program<'b> {
        let base = builder.ops();
        let (before, has_next) = (Vec::new(), Vec::new());
        Program { builder, shape, rank, root: 0, tag: 0, cpu: 0, before, base, has_next, first: 0 }
    }

    /// Returns the program of a pattern with another root. Its tags begin at `tag`, and it begins after the operations `before`.
    pub(crate) fn rooted(
        builder: &'b mut Builder,
        shape: Shape,
        rank: u32,
        root: u32,
        tag: u32,
        before: Vec<u32>,
    ) -> Program<'b> {
        let from_root = (u64::from(rank) + u64::from(shape.ranks) - u64::from(root)) % u64::from(shape.ranks);
        Program { root, tag, before, ..Program::new(builder, shape, from_root as u32) }
    }

    /// Returns the rank of the schedule for a rank of the pattern.
    pub(crate) fn actual(&self, number: u32) -> u32 {
        ((u64::from(number) + u64::from(self.root)) % u64::from(self.shape.ranks)) as u32
    }
}

impl Program<'_> {
    /// Adds an operation that depends on the operations `after`. If `after` is empty, it begins with the current part of the
    /// pattern.
    fn add(&mut self, op: Op, after: &[u32]) -> u32 {
        let number = self.builder.push(op).expect("shapes are checked before");
        let after = if after.is_empty() { &self.before } else { after };
        for first in after {
            self.builder.depend(*first, number, false);
            if let Some(own) = first.checked_sub(self.base) {
                self.has_next[own as usize] = true;
            }
        }
        self.has_next.push(false);
        number
    }

    fn send(&mut self, size: u64, to: u32, tag: u32, after: &[u32]) -> u32 {
        let op = Op::new(Kind::Send, size, self.actual(to), self.tag + tag);
        self.add(op.on_cpu(self.cpu), after)
    }

    fn recv(&mut self, size: u64, from: u32, tag: u32) -> u32 {
        let op = Op::new(Kind::Recv, size, self.actual(from), self.tag + tag);
        self.add(op.on_cpu(self.cpu), &[])
    }

    /// Adds a calculation, and returns it. If its duration is 0, returns `after`.
    fn calc(&mut self, ns: u64, after: &[u32]) -> Vec<u32> {
        match ns {
            0 => after.to_vec(),
            ns => vec![self.add(Op::new(Kind::Calc, ns, 0, 0), after)],
        }
    }

    /// Returns the operations of the current part on which no other operation depends.
    pub(crate) fn ends(&self) -> Vec<u32> {
        let ends = (self.first..self.has_next.len()).filter(|op| !self.has_next[*op]);
        ends.map(|op| self.base + op as u32).collect()
    }

    /// Begins a new part of the pattern. It starts when all operations so far have ended.
    fn join(&mut self) {
        let ends = self.ends();
        self.before = match ends.len() {
            0 => return,
            1 => ends,
            _ => vec![self.add(Op::new(Kind::Calc, 0, 0, 0), &ends)],
        };
        self.first = (self.before[0] - self.base) as usize;
    }
}
