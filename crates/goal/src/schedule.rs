//! Schedules in memory: the operations of each rank, and the dependencies between them. An operation takes 32 bytes, and a
//! dependency 4.

use std::fmt;

/// A wildcard for a source or a tag.
pub const ANY: u32 = u32::MAX;
/// Maximum number of operations of a rank, because their events are counted in 32 bits.
pub const MOST_OPERATIONS: u32 = 1 << 30;
/// A flag of a dependent. It means that the dependent waits for the start of the other operation, not for its end.
const ON_START: u32 = 1 << 31;

/// The kind of an operation. Operations that become free together start in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Send a message to `peer`.
    Send = 1,
    /// Receive a message from `peer`.
    Recv = 2,
    /// Compute for `size` nanoseconds.
    Calc = 3,
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    /// Bytes of a message, or nanoseconds of a calculation.
    pub size: u64,
    /// The rank at the other end; [`ANY`] for a receive from any rank.
    pub peer: u32,
    /// The message's tag; [`ANY`] matches every tag.
    pub tag: u32,
    /// The line number in the text from which the operation was read, from 1; 0 if there is no text.
    pub line: u32,
    /// The number of operations on which this one depends.
    pub dependencies: u32,
    /// The index of the operation's first dependent in the list of its rank.
    edges: u32,
    /// The kind.
    pub kind: Kind,
    /// The CPU that the operation takes.
    pub cpu: u8,
    /// The network interface that a message takes.
    pub nic: u8,
    /// Whether another operation depends on the start of this one.
    has_start: bool,
}

impl Op {
    /// Returns an operation on CPU 0 and interface 0, on which no operation depends.
    pub fn new(kind: Kind, size: u64, peer: u32, tag: u32) -> Op {
        Op { size, peer, tag, line: 0, dependencies: 0, edges: 0, kind, cpu: 0, nic: 0, has_start: false }
    }

    /// Returns the same operation on a CPU.
    #[must_use]
    pub fn on_cpu(self, cpu: u8) -> Op {
        Op { cpu, ..self }
    }

    /// Returns whether another operation depends on the start of this one.
    #[inline]
    pub fn starts_others(&self) -> bool {
        self.has_start
    }
}

impl fmt::Display for Op {
    /// Writes the operation as in the text format, without a label.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: u32| if value == ANY { -1 } else { i64::from(value) };
        match self.kind {
            Kind::Send => write!(f, "send {}b to {}", self.size, number(self.peer))?,
            Kind::Recv => write!(f, "recv {}b from {}", self.size, number(self.peer))?,
            Kind::Calc => write!(f, "calc {}", self.size)?,
        }
        if self.tag != 0 && self.kind != Kind::Calc {
            write!(f, " tag {}", number(self.tag))?;
        }
        if self.cpu != 0 {
            write!(f, " cpu {}", self.cpu)?;
        }
        if self.nic != 0 && self.kind != Kind::Calc {
            write!(f, " nic {}", self.nic)?;
        }
        Ok(())
    }
}

/// An operation that depends on another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dependent(u32);

impl Dependent {
    /// Returns the number of the dependent operation in its rank.
    #[inline]
    pub fn op(self) -> u32 {
        self.0 & !ON_START
    }

    /// Returns whether the dependent waits for the start of the other operation, not for its end.
    #[inline]
    pub fn on_start(self) -> bool {
        self.0 & ON_START != 0
    }
}

/// For a rank, the index of its first operation and the index of its first dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Beginning {
    op: usize,
    edge: usize,
}

/// The operations of all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// One element for each rank, and a last element with the ends of the last rank.
    ranks: Vec<Beginning>,
    ops: Vec<Op>,
    edges: Vec<Dependent>,
}

/// One rank of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct Rank<'s> {
    /// The operations of the rank.
    pub ops: &'s [Op],
    edges: &'s [Dependent],
}

impl<'s> Rank<'s> {
    /// Returns the dependents of an operation: first those that wait for its end, then those that wait for its start.
    #[inline]
    pub fn dependents(&self, op: usize) -> &'s [Dependent] {
        let end = self.ops.get(op + 1).map_or(self.edges.len(), |next| next.edges as usize);
        &self.edges[self.ops[op].edges as usize..end]
    }

    /// Returns the number of dependencies between the operations of the rank.
    pub fn edges(&self) -> usize {
        self.edges.len()
    }
}

impl Schedule {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        (self.ranks.len() - 1) as u32
    }

    /// Returns a rank with its operations.
    #[inline]
    pub fn rank(&self, rank: u32) -> Rank<'_> {
        let (from, to) = (self.ranks[rank as usize], self.ranks[rank as usize + 1]);
        Rank { ops: &self.ops[from.op..to.op], edges: &self.edges[from.edge..to.edge] }
    }

    /// Returns all ranks in order.
    pub fn iter(&self) -> impl Iterator<Item = Rank<'_>> {
        (0..self.ranks()).map(|rank| self.rank(rank))
    }

    /// Returns all operations, rank by rank.
    #[inline]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Returns the index of a rank's first operation among all operations.
    #[inline]
    pub fn first_op(&self, rank: u32) -> usize {
        self.ranks[rank as usize].op
    }
}

/// A schedule under construction, one rank after another.
#[derive(Debug)]
pub struct Builder {
    made: Schedule,
    /// The dependencies in the current rank, in the order of the text. Each is an operation and its dependent.
    pairs: Vec<(u32, Dependent)>,
    cursor: Vec<u32>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Returns a schedule without ranks.
    pub fn new() -> Builder {
        let made = Schedule { ranks: vec![Beginning { op: 0, edge: 0 }], ops: Vec::new(), edges: Vec::new() };
        Builder { made, pairs: Vec::new(), cursor: Vec::new() }
    }

    /// Returns the number of complete ranks.
    pub fn ranks(&self) -> usize {
        self.made.ranks.len() - 1
    }

    /// Returns the number of operations of all ranks so far.
    pub fn total(&self) -> usize {
        self.made.ops.len()
    }

    fn first(&self) -> Beginning {
        *self.made.ranks.last().expect("the first one is there from the beginning")
    }

    /// Returns the number of operations of the current rank.
    pub fn ops(&self) -> u32 {
        (self.made.ops.len() - self.first().op) as u32
    }

    /// Returns the operations of the current rank.
    pub(crate) fn rank_ops(&self) -> &[Op] {
        &self.made.ops[self.first().op..]
    }

    /// Returns the line number of an operation in the current rank.
    pub(crate) fn line_of(&self, op: u32) -> u32 {
        self.made.ops[self.first().op + op as usize].line
    }

    /// Adds an operation to the current rank. Returns its number, or `None` if the rank already has [`MOST_OPERATIONS`].
    pub fn push(&mut self, op: Op) -> Option<u32> {
        let number = self.ops();
        (number < MOST_OPERATIONS).then(|| {
            self.made.ops.push(Op { dependencies: 0, edges: 0, has_start: false, ..op });
            number
        })
    }

    /// Lets operation `then` of the current rank depend on the end of operation `first`, or on its start if `on_start`. Returns
    /// false if the rank has too many dependencies.
    ///
    /// # Panics
    /// When the rank has no such operation.
    pub fn depend(&mut self, first: u32, then: u32, on_start: bool) -> bool {
        assert!(first < self.ops() && then < self.ops(), "operations of the rank");
        let base = self.first().op;
        self.made.ops[base + then as usize].dependencies += 1;
        self.pairs.push((first, Dependent(if on_start { then | ON_START } else { then })));
        self.pairs.len() < ON_START as usize
    }

    /// Ends the current rank.
    pub fn end_rank(&mut self) {
        let first = self.first();
        let (ops, edges) = (&mut self.made.ops[first.op..], &mut self.made.edges);
        self.cursor.clear();
        self.cursor.resize(ops.len(), 0);
        for (before, dependent) in &self.pairs {
            self.cursor[*before as usize] += 1;
            ops[*before as usize].has_start |= dependent.on_start();
        }
        let mut sum = 0;
        for (op, cursor) in ops.iter_mut().zip(&mut self.cursor) {
            op.edges = sum;
            sum += std::mem::replace(cursor, sum);
        }
        edges.resize(first.edge + self.pairs.len(), Dependent(0));
        let has_starts = self.pairs.iter().any(|(_, dependent)| dependent.on_start());
        for on_start in if has_starts { &[false, true][..] } else { &[false] } {
            for (before, dependent) in self.pairs.iter().filter(|(_, d)| d.on_start() == *on_start) {
                let at = &mut self.cursor[*before as usize];
                edges[first.edge + *at as usize] = *dependent;
                *at += 1;
            }
        }
        self.pairs.clear();
        self.made.ranks.push(Beginning { op: self.made.ops.len(), edge: self.made.edges.len() });
    }

    /// Returns the schedule.
    pub fn finish(mut self) -> Schedule {
        self.made.ranks.shrink_to_fit();
        self.made.ops.shrink_to_fit();
        self.made.edges.shrink_to_fit();
        self.made
    }
}
