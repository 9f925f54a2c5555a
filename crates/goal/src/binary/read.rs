//! Reads the binary format. It does not trust the counts in the file, so memory grows only with the bytes read.

use super::{HEAD, MAGIC, NODE, ORIGIN};
use crate::error::{Place, ReadError};
use crate::schedule::{ANY, Builder, Kind, MOST_OPERATIONS, Op, Schedule};
use std::io::{self, Read};

/// Number of ranks or operations between two calls of `go_on`.
const LOOK_EVERY: u32 = 1 << 16;

struct Reader<'g, R> {
    source: R,
    at: u64,
    rank: Option<u32>,
    go_on: &'g mut dyn FnMut(u64) -> bool,
}

/// The numbers of operations that depend on an operation.
struct Counts {
    on_end: u32,
    on_start: u32,
}

type Outcome<T> = Result<T, ReadError>;

/// Reads a schedule from a buffered source. `go_on` is called regularly with the number of bytes read; if it returns false, reading ends.
///
/// # Errors
/// When the file is not GOAL, is truncated, has another byte order, or is inconsistent. When `go_on` returned false.
pub fn read(source: impl Read, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Schedule, ReadError> {
    let mut reader = Reader { source, at: 0, rank: None, go_on };
    let magic = u64::from_le_bytes(reader.take()?);
    if magic != MAGIC {
        reader.at = 0;
        return reader.wrong(match magic.swap_bytes() == MAGIC {
            true => "the file is from a machine with another byte order; convert it to text on that machine",
            false => "the file is no binary schedule: it does not begin with 4223",
        });
    }
    let ranks = reader.u32()?;
    let [cpus, nics] = reader.take()?;
    if ranks == 0 || ranks == ANY {
        return reader.wrong(format!("a schedule has 1 to {} ranks, not {ranks}", ANY - 1));
    }
    let mut blocks = Vec::new();
    let mut end = HEAD - ORIGIN + u64::from(ranks) * 16;
    for rank in 0..ranks {
        let (from, to) = (reader.u64()?, reader.u64()?);
        if from != end || to < from {
            return reader.wrong(format!(
                "the block of rank {rank} goes from {from} to {to}, but the block before it ends at {end}"
            ));
        }
        end = to;
        blocks.push(to - from);
        if rank % LOOK_EVERY == 0 {
            reader.look()?;
        }
    }
    let mut builder = Builder::new();
    for (rank, length) in (0..ranks).zip(blocks) {
        reader.rank = Some(rank);
        reader.block(length, ranks, cpus, nics, &mut builder)?;
    }
    reader.rank = None;
    match reader.source.read(&mut [0]) {
        Ok(0) => Ok(builder.finish()),
        Ok(_) => reader.wrong("the file has more bytes after the last rank"),
        Err(error) => Err(reader.unreadable(&error)),
    }
}

impl<R: Read> Reader<'_, R> {
    #[cold]
    fn error(&self, text: impl Into<String>) -> ReadError {
        ReadError::new(Place::Byte(self.at), self.rank, text)
    }

    #[cold]
    fn wrong<T>(&self, text: impl Into<String>) -> Outcome<T> {
        Err(self.error(text))
    }

    #[cold]
    fn unreadable(&self, error: &io::Error) -> ReadError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.error("the file is cut off here"),
            _ => self.error(format!("cannot read on ({error})")),
        }
    }

    fn look(&mut self) -> Outcome<()> {
        match (self.go_on)(self.at) {
            true => Ok(()),
            false => Err(ReadError { interrupted: true, ..self.error("interrupted") }),
        }
    }

    fn take<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(|error| self.unreadable(&error))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> Outcome<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Outcome<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn block(&mut self, length: u64, ranks: u32, cpus: u8, nics: u8, builder: &mut Builder) -> Outcome<()> {
        if length < 8 {
            return self.wrong(format!("a block has at least 8 bytes, not {length}"));
        }
        let (ops, roots) = (self.u32()?, self.u32()?);
        if roots > ops || ops > MOST_OPERATIONS {
            return self.wrong(format!(
                "{ops} operations, {roots} of them without dependencies; a rank has at most \
                 {MOST_OPERATIONS}"
            ));
        }
        let fixed = 8 + 4 * u64::from(roots) + NODE * u64::from(ops);
        let Some(edges) = length.checked_sub(fixed).filter(|rest| rest % 4 == 0).map(|rest| rest / 4) else {
            return self.wrong(format!("{ops} operations do not fit a block of {length} bytes"));
        };
        let (mut root_list, mut counts, mut dependencies) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..roots {
            root_list.push(self.u32()?);
        }
        let mut sum = 0;
        for number in 0..ops {
            let (op, count) = self.node(number, sum, ranks)?;
            if op.cpu > cpus || op.nic > nics {
                return self.wrong(format!(
                    "operation {number} has a CPU or an interface above the maximum that the file declares"
                ));
            }
            sum += u64::from(count.on_end) + u64::from(count.on_start);
            dependencies.push(op.dependencies);
            counts.push(count);
            builder.push(op);
            if number % LOOK_EVERY == 0 {
                self.look()?;
            }
        }
        if sum != edges {
            return self
                .wrong(format!("the operations have {sum} dependents, but the block has room for {edges}"));
        }
        for (number, count) in (0..ops).zip(&counts) {
            self.dependents(number, count.on_end, false, ops, builder)?;
            self.dependents(number, count.on_start, true, ops, builder)?;
        }
        self.check(&root_list, &dependencies, builder)?;
        builder.end_rank();
        Ok(())
    }

    fn node(&mut self, number: u32, sum: u64, ranks: u32) -> Outcome<(Op, Counts)> {
        let bytes: [u8; NODE as usize] = self.take()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let kind = match bytes[4] {
            1 => Kind::Send,
            2 => Kind::Recv,
            3 => Kind::Calc,
            other => {
                return self.wrong(format!(
                    "operation {number} is of type {other}; types are 1 (send), 2 (recv) and 3 (calc)"
                ));
            }
        };
        let size = u64::from_le_bytes(bytes[9..17].try_into().expect("eight bytes"));
        let (peer, tag) = (word(5), word(17));
        let is_known = peer < ranks || kind == Kind::Calc || (peer == ANY && kind == Kind::Recv);
        if !is_known {
            return self.wrong(format!(
                "operation {number}: there is no rank {peer}; the last one is {}",
                ranks - 1
            ));
        }
        let counts = Counts { on_end: word(23), on_start: word(31) };
        let (first, first_on_start) = (word(27), word(35));
        let begin = sum + u64::from(counts.on_end);
        if (counts.on_end > 0 && u64::from(first) != sum)
            || (counts.on_start > 0 && u64::from(first_on_start) != begin)
        {
            return self.wrong(format!(
                "operation {number}: its dependents do not follow those of the previous operation"
            ));
        }
        let (peer, tag) = if kind == Kind::Calc { (0, 0) } else { (peer, tag) };
        let mut op = Op::new(kind, size, peer, tag);
        (op.dependencies, op.cpu, op.nic) = (word(0), bytes[21], bytes[22]);
        Ok((op, counts))
    }

    fn dependents(
        &mut self,
        first: u32,
        count: u32,
        on_start: bool,
        ops: u32,
        builder: &mut Builder,
    ) -> Outcome<()> {
        for _ in 0..count {
            let then = self.u32()?;
            if then >= ops {
                return self.wrong(format!(
                    "operation {then} depends on operation {first}, but the rank has only {ops} operations"
                ));
            }
            if !builder.depend(first, then, on_start) {
                return self.wrong("too many dependencies: a rank has fewer than 2^31");
            }
        }
        Ok(())
    }

    /// Compares the dependency counts in the file with the dependencies that were read.
    fn check(&self, roots: &[u32], claimed: &[u32], builder: &Builder) -> Outcome<()> {
        let mut roots = roots.iter();
        for (number, (claimed, op)) in (0_u32..).zip(claimed.iter().zip(builder.rank_ops())) {
            if *claimed != op.dependencies {
                let there = op.dependencies;
                return self
                    .wrong(format!("operation {number} claims {claimed} dependencies, but has {there}"));
            }
            if op.dependencies == 0 && roots.next() != Some(&number) {
                return self.wrong(format!(
                    "operation {number} has no dependencies, but is not in its place in the list of roots"
                ));
            }
        }
        match roots.next() {
            None => Ok(()),
            Some(root) => self.wrong(format!(
                "the list of roots has operation {root}, which has dependencies, comes twice or does not \
                 exist"
            )),
        }
    }
}
