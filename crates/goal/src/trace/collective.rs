//! The messages of collective calls. They follow the patterns of [`generate`](crate::generate).

use super::line::{Comm, Fault, Fields};
use crate::generate::collectives::{
    allreduce_ring, broadcast, dissemination, recursive_doubling, reduce, ring,
};
use crate::generate::exchanges::{gather, linear, pipeline, scatter};
use crate::generate::{Program, Shape};
use crate::schedule::Builder;

/// Minimum bytes of an allreduce around a ring. A smaller allreduce uses recursive doubling.
const RING_FROM: u64 = 64 << 10;
/// The first tag of collective calls. Tags of programs are below, because they are not negative.
const FIRST_TAG: u32 = 1 << 31;
/// Number of tags for each call. No pattern needs more.
const TAGS: u32 = 4;
/// Number of collective calls after which tags repeat.
const ROUND: u32 = (u32::MAX - FIRST_TAG) / TAGS;

/// The collective calls. Each has its name, its number of fields, and the index of its communicator's field.
const CALLS: [(&str, usize, usize); 16] = [
    ("Barrier", 4, 2),
    ("Bcast", 8, 6),
    ("Reduce", 10, 8),
    ("Allreduce", 9, 7),
    ("Scan", 9, 7),
    ("Exscan", 9, 7),
    ("Reduce_scatter", 10, 8),
    ("Reduce_scatter_block", 9, 7),
    ("Gather", 11, 9),
    ("Gatherv", 14, 12),
    ("Scatter", 11, 9),
    ("Scatterv", 14, 12),
    ("Allgather", 10, 8),
    ("Allgatherv", 13, 11),
    ("Alltoall", 10, 8),
    ("Alltoallv", 16, 14),
];
/// Calls that create a communicator from the one in their first field. They also synchronise its ranks.
const MAKE: [&str; 7] = [
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_idup",
    "Comm_split",
    "Comm_create",
    "Cart_create",
    "Graph_create",
];

/// A collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The name of the call, without `MPI_` and without the `I` of non-blocking calls.
    pub(super) name: &'static str,
    /// The index of the field with the communicator.
    pub(super) comm: usize,
    /// The index of the field with the request, if the call is non-blocking.
    pub(super) request: Option<usize>,
}

impl Call {
    /// Returns the collective call in a line; `None` for any other call.
    ///
    /// # Errors
    /// When the line has another number of fields.
    pub(super) fn of(line: &Fields<'_>) -> Result<Option<Call>, Fault> {
        if let Some(name) = MAKE.iter().find(|name| **name == line.name) {
            return Ok(Some(Call { name, comm: 2, request: None }));
        }
        let known = |name: &str| CALLS.iter().find(|(known, ..)| *known == name);
        if let Some((name, fields, comm)) = known(line.name) {
            line.expect(*fields)?;
            return Ok(Some(Call { name, comm: *comm, request: None }));
        }
        // MPI_Iallreduce is MPI_Allreduce with a request after the communicator.
        let Some(rest) = line.name.strip_prefix('I') else { return Ok(None) };
        let waits = CALLS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(rest));
        let Some((name, fields, comm)) = waits.filter(|(name, ..)| name[1..] == rest[1..]) else {
            return Ok(None);
        };
        line.expect(fields + 1)?;
        Ok(Some(Call { name, comm: *comm, request: Some(comm + 1) }))
    }
}

/// Bytes for each rank.
enum Sizes {
    Each(u64),
    List(Vec<u64>),
}

impl Sizes {
    fn of(&self, rank: u32) -> u64 {
        match self {
            Sizes::Each(bytes) => *bytes,
            Sizes::List(list) => list[rank as usize],
        }
    }

    fn sum(&self, ranks: u32) -> u64 {
        match self {
            Sizes::Each(bytes) => bytes.saturating_mul(u64::from(ranks)),
            Sizes::List(list) => list.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
        }
    }
}

/// The bytes that a collective call moves.
enum Moved {
    /// The same number of bytes for all ranks.
    One(u64),
    /// A number of bytes from each rank, or for each rank.
    Parts(Sizes),
    /// The bytes for each rank, and the bytes from each rank.
    Both(Sizes, Sizes),
}

/// The collective calls of rank 0. All other ranks must make the same calls.
#[derive(Debug, Default)]
pub struct World {
    /// For each call, its name, its root, and its line.
    calls: Vec<(&'static str, u32, u32)>,
}

impl World {
    /// Refuses a call that differs from the same call of rank 0.
    pub(super) fn agree(
        &mut self,
        rank: u32,
        number: usize,
        call: (&'static str, u32),
        line: u32,
    ) -> Result<(), String> {
        let said = |(name, root): (&str, u32)| match name {
            "Bcast" | "Reduce" | "Gather" | "Gatherv" | "Scatter" | "Scatterv" => {
                format!("MPI_{name} with root {root}")
            }
            _ => format!("MPI_{name}"),
        };
        match self.calls.get(number) {
            None if rank == 0 => self.calls.push((call.0, call.1, line)),
            None => {
                let most = self.calls.len();
                return Err(format!("this is collective call {}, but rank 0 makes only {most}", number + 1));
            }
            Some((name, root, _)) if (*name, *root) == call => {}
            Some((name, root, line)) => {
                return Err(format!(
                    "collective call {} is {}, but on rank 0 it is {} (its line {line})",
                    number + 1,
                    said(call),
                    said((name, *root))
                ));
            }
        }
        Ok(())
    }

    /// Refuses the end of a rank that made fewer calls than rank 0.
    pub(super) fn agree_on_end(&self, number: usize) -> Result<(), String> {
        match self.calls.get(number) {
            None => Ok(()),
            Some((name, _, line)) => Err(format!(
                "collective call {} is missing; on rank 0 it is MPI_{name} (its line {line})",
                number + 1
            )),
        }
    }
}

/// Returns the root of a call; 0 for a call without a root.
pub(super) fn root(call: Call, line: &Fields<'_>, comm: Comm) -> Result<u32, Fault> {
    let field = match call.name {
        "Bcast" => 5,
        "Reduce" => 7,
        "Gather" | "Scatter" => 8,
        "Gatherv" | "Scatterv" => 11,
        _ => return Ok(0),
    };
    let root = u32::try_from(line.count(field)?).ok().filter(|root| *root < comm.ranks);
    root.ok_or_else(|| line.fault(field, &format!("a root below {}", comm.ranks)))
}

/// Reads the sizes of a call's data. Counts that are valid only at the root are read only there.
fn moved(call: Call, line: &Fields<'_>, comm: Comm, root: u32) -> Result<Moved, Fault> {
    let is_root = comm.rank == root;
    let each = |count, datatype| Ok(Moved::Parts(Sizes::Each(line.bytes(count, datatype)?)));
    let list = |field, datatype| Ok(Sizes::List(line.list(field, datatype, comm.ranks)?));
    match call.name {
        "Bcast" => Ok(Moved::One(line.bytes(3, 4)?)),
        "Reduce" | "Allreduce" | "Scan" | "Exscan" => Ok(Moved::One(line.bytes(4, 5)?)),
        "Reduce_scatter_block" => each(4, 5),
        "Reduce_scatter" => Ok(Moved::Parts(list(5, 6)?)),
        // The receiver's counts are valid even if the other counts belong to MPI_IN_PLACE.
        "Gather" if is_root => each(6, 7),
        "Gather" | "Gatherv" if !is_root => each(3, 4),
        "Gatherv" => Ok(Moved::Parts(list(7, 10)?)),
        "Scatter" if is_root => each(3, 4),
        "Scatter" => each(6, 7),
        "Scatterv" if is_root => Ok(Moved::Parts(list(4, 7)?)),
        "Scatterv" => each(9, 10),
        "Allgather" => each(6, 7),
        "Allgatherv" => Ok(Moved::Parts(list(7, 10)?)),
        "Alltoall" => {
            let bytes = line.bytes(6, 7)?;
            Ok(Moved::Both(Sizes::Each(bytes), Sizes::Each(bytes)))
        }
        "Alltoallv" => Ok(Moved::Both(list(4, 7)?, list(10, 13)?)),
        // A message of a barrier has one byte.
        _ => Ok(Moved::One(1)),
    }
}

/// Adds the operations of a call after operation `after`. Returns the operations that end the call; the list is empty if the call
/// has no operation.
pub(super) fn build(
    builder: &mut Builder,
    (call, number): (Call, usize),
    line: &Fields<'_>,
    comm: Comm,
    root: u32,
    before: Vec<u32>,
) -> Result<Vec<u32>, Fault> {
    let moved = moved(call, line, comm, root)?;
    if comm.ranks == 1 {
        return Ok(Vec::new());
    }
    let bytes = match &moved {
        Moved::One(bytes) => *bytes,
        Moved::Parts(sizes) | Moved::Both(sizes, _) => sizes.sum(comm.ranks),
    };
    let tag = FIRST_TAG + (number % ROUND as usize) as u32 * TAGS;
    let shape = Shape { ranks: comm.ranks, size: bytes, iterations: 1, compute_ns: 0, layers: 1 };
    let mut program = Program::rooted(builder, shape, comm.rank, root, tag, before);
    let from_root = |number: u32| (number + root) % comm.ranks;
    let around = comm.ranks - 1;
    match (call.name, moved) {
        ("Bcast", _) => broadcast(&mut program),
        ("Reduce", _) => reduce(&mut program),
        ("Allreduce", _) if bytes < RING_FROM => recursive_doubling(&mut program),
        ("Allreduce", _) => allreduce_ring(&mut program, bytes, 0, 0, None),
        ("Scan" | "Exscan", _) => pipeline(&mut program),
        ("Reduce_scatter" | "Reduce_scatter_block", Moved::Parts(sizes)) => {
            // After the ring, each rank has the part after its own.
            ring(&mut program, &|part| sizes.of((part + around) % comm.ranks), 0..around, 0, 0, None);
        }
        ("Allgather" | "Allgatherv", Moved::Parts(sizes)) => {
            ring(
                &mut program,
                &|part| sizes.of((part + around) % comm.ranks),
                around..2 * around,
                0,
                0,
                None,
            );
        }
        ("Gather" | "Gatherv", Moved::Parts(sizes)) => {
            gather(&mut program, &|rank| sizes.of(from_root(rank)))
        }
        ("Scatter" | "Scatterv", Moved::Parts(sizes)) => {
            scatter(&mut program, &|rank| sizes.of(from_root(rank)))
        }
        (_, Moved::Both(to, from)) => linear(&mut program, &|rank| (to.of(rank), from.of(rank)), 0),
        _ => dissemination(&mut program),
    }
    Ok(program.ends())
}
