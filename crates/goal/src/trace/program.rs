//! A rank of a schedule. It is constructed from a trace, call by call.

use super::collective::{self, Call, World};
use super::line::{Comm, Fault, Fields};
use crate::schedule::{ANY, Builder, Kind, Op};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Maximum number of operations of a rank that is made from a trace.
const MOST: u64 = 1 << 28;
/// The high byte of MPICH's communicator handles: predefined and derived ones. Other MPIs use addresses, or small numbers in
/// Fortran.
const MPICH: [u64; 3] = [0x44, 0x84, 0xc4];

/// Calls with an effect that a trace does not show, by name. Also the number of times that a clock went backwards.
#[derive(Debug, Default)]
pub struct AmbiguousCalls {
    /// Calls such as `MPI_Test`, which may or may not have ended a request.
    pub calls: BTreeMap<String, u64>,
    /// Calls that began before the previous call ended, by the clock of the trace.
    pub backwards: u64,
    /// The number of all calls.
    pub total: u64,
}

/// An operation for which the program has not yet waited.
#[derive(Clone, Copy, Debug)]
struct Request {
    op: u32,
    /// The number of requests that were made earlier.
    number: u64,
}

pub(super) struct Program<'b> {
    builder: &'b mut Builder,
    world: &'b mut World,
    pub(super) unsaid: &'b mut AmbiguousCalls,
    rank: u32,
    ranks: u32,
    /// The number of the line that is being read.
    pub(super) line: u32,
    /// The operations on which the next operation depends. Each has whether only its start is needed.
    last: Vec<(u32, bool)>,
    /// The end time of the last communicating call.
    ended: Option<u64>,
    state: State,
    requests: FxHashMap<u64, Request>,
    posted: u64,
    /// Whether a request takes four bytes. This is known once the address of a request is not a multiple of eight.
    is_narrow: bool,
    collectives: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Running,
    Finalized,
}

impl<'b> Program<'b> {
    pub(super) fn new(
        builder: &'b mut Builder,
        world: &'b mut World,
        unsaid: &'b mut AmbiguousCalls,
        rank: u32,
        ranks: u32,
    ) -> Program<'b> {
        Program {
            builder,
            world,
            unsaid,
            rank,
            ranks,
            line: 0,
            last: Vec::new(),
            ended: None,
            state: State::Before,
            requests: FxHashMap::default(),
            posted: 0,
            is_narrow: false,
            collectives: 0,
        }
    }

    pub(super) fn init(&mut self, call: &Fields<'_>) -> Result<(), Fault> {
        if self.state != State::Before {
            return Err(Fault::new(0, "MPI_Init is called twice"));
        }
        self.state = State::Running;
        self.ended = call.end()?;
        Ok(())
    }

    pub(super) fn finalize(&mut self, call: &Fields<'_>) -> Result<(), Fault> {
        self.compute(call)?;
        self.state = State::Finalized;
        self.world.agree_on_end(self.collectives).map_err(|text| Fault::new(0, text))
    }

    pub(super) fn finish(&self) -> Result<(), Fault> {
        match self.state {
            State::Finalized => Ok(()),
            _ => Err(Fault::new(0, "the trace ends before MPI_Finalize; it is cut off")),
        }
    }

    /// Refuses a call before `MPI_Init` or after `MPI_Finalize`.
    pub(super) fn check_running(&self, call: &Fields<'_>) -> Result<(), Fault> {
        match self.state {
            State::Running => Ok(()),
            State::Before => Err(Fault::new(0, format!("MPI_{} comes before MPI_Init", call.name))),
            State::Finalized => Err(Fault::new(0, format!("MPI_{} comes after MPI_Finalize", call.name))),
        }
    }

    /// Adds a calculation for the time from the end of the last communicating call to the start of this one.
    pub(super) fn compute(&mut self, call: &Fields<'_>) -> Result<(), Fault> {
        let (Some(begin), Some(ended)) = (call.begin()?, self.ended) else { return Ok(()) };
        if begin < ended {
            self.unsaid.backwards += 1;
        } else if begin > ended {
            let op = self.add(Op::new(Kind::Calc, begin - ended, 0, 0))?;
            self.last = vec![(op, false)];
        }
        Ok(())
    }

    /// Lets the next calculation begin at the end of a call.
    pub(super) fn go_on(&mut self, call: &Fields<'_>) -> Result<(), Fault> {
        self.ended = call.end()?.or(self.ended);
        Ok(())
    }

    /// Adds an operation that depends on the current dependencies.
    fn add(&mut self, mut op: Op) -> Result<u32, Fault> {
        // A collective call adds at most 8 operations for each rank.
        if u64::from(self.builder.ops()) + 8 * u64::from(self.ranks) > MOST {
            return Err(Fault::new(0, format!("the schedule of this trace exceeds {MOST} operations")));
        }
        op.line = self.line;
        let number = self.builder.push(op).expect("fewer than the most");
        for (first, on_start) in &self.last {
            self.builder.depend(*first, number, *on_start);
        }
        Ok(number)
    }

    /// Refuses communicators with ranks that cannot be known. Accepts MPI_COMM_WORLD, MPI_COMM_SELF, and communicators with the
    /// same ranks as these.
    fn check_comm(&self, comm: Comm, field: usize, call: &Fields<'_>) -> Result<(), Fault> {
        if (comm.rank, comm.ranks) == (self.rank, self.ranks) || comm.ranks == 1 {
            return Ok(());
        }
        let (own, all, rank, ranks) = (self.rank, self.ranks, comm.rank, comm.ranks);
        let text = if ranks > all {
            format!(
                "this program has {ranks} ranks, but there are traces of only {all}; name the traces of all \
                 ranks"
            )
        } else if ranks < all {
            format!(
                "a communicator of {ranks} of the {all} ranks: a trace does not say which ranks these are"
            )
        } else {
            format!(
                "rank {own} is rank {rank} in a communicator of all {ranks} ranks: a trace does not give \
                 the order of these ranks"
            )
        };
        Err(Fault::new(call.at(field), text))
    }

    /// Returns the rank of a peer in MPI_COMM_WORLD; `None` for MPI_PROC_NULL.
    fn peer(
        &self,
        field: usize,
        comm: Comm,
        call: &Fields<'_>,
        is_source: bool,
    ) -> Result<Option<u32>, Fault> {
        let number = call.number(field)?;
        let is_mpich = comm.handle >> 32 == 0 && MPICH.contains(&(comm.handle >> 24));
        let (nobody, any) = if is_mpich { (-1, -2) } else { (-2, -1) };
        if number == nobody {
            return Ok(None);
        }
        if number == any && is_source {
            return Ok(Some(ANY));
        }
        match u32::try_from(number).ok().filter(|peer| *peer < comm.ranks) {
            Some(_) if comm.ranks == 1 => Ok(Some(self.rank)),
            Some(peer) => Ok(Some(peer)),
            None => Err(call.fault(field, &format!("a rank below {}", comm.ranks))),
        }
    }

    fn tag(&self, field: usize, call: &Fields<'_>, is_source: bool) -> Result<u32, Fault> {
        match call.number(field)? {
            -1 if is_source => Ok(ANY),
            tag => i32::try_from(tag)
                .ok()
                .filter(|tag| *tag >= 0)
                .map(|tag| tag as u32)
                .ok_or_else(|| call.fault(field, "a tag from 0 to 2^31 - 1")),
        }
    }

    /// Returns the message of a call; `None` for MPI_PROC_NULL. The fields from `first` on are its count, datatype, peer and tag.
    pub(super) fn message(
        &mut self,
        kind: Kind,
        call: &Fields<'_>,
        first: usize,
        comm: usize,
    ) -> Result<Option<Op>, Fault> {
        self.message_of(kind, call, (first, first + 1), first + 2, comm)
    }

    /// As `message`, but peer and tag are in other fields.
    pub(super) fn message_of(
        &mut self,
        kind: Kind,
        call: &Fields<'_>,
        (count, datatype): (usize, usize),
        peer: usize,
        comm: usize,
    ) -> Result<Option<Op>, Fault> {
        let is_source = kind == Kind::Recv;
        let among = call.comm(comm)?;
        self.check_comm(among, comm, call)?;
        let bytes = call.bytes(count, datatype)?;
        let Some(other) = self.peer(peer, among, call, is_source)? else { return Ok(None) };
        Ok(Some(Op::new(kind, bytes, other, self.tag(peer + 1, call, is_source)?)))
    }

    /// Adds messages. The program waits until they have ended.
    pub(super) fn wait_for(&mut self, messages: &[Option<Op>]) -> Result<(), Fault> {
        let mut ends = Vec::new();
        for op in messages.iter().flatten() {
            ends.push((self.add(*op)?, false));
        }
        if !ends.is_empty() {
            self.last = ends;
        }
        Ok(())
    }

    /// Adds the message of a request. The program continues when the message has started.
    pub(super) fn post(
        &mut self,
        message: Option<Op>,
        request: usize,
        call: &Fields<'_>,
    ) -> Result<(), Fault> {
        let address = call.address(request)?;
        let Some(op) = message else {
            self.requests.remove(&address);
            return Ok(());
        };
        let op = self.add(op)?;
        self.last = vec![(op, true)];
        self.remember(address, op);
        Ok(())
    }

    fn remember(&mut self, address: u64, op: u32) {
        self.is_narrow |= !address.is_multiple_of(8);
        self.requests.insert(address, Request { op, number: self.posted });
        self.posted += 1;
    }

    pub(super) fn forget(&mut self, address: u64) {
        self.requests.remove(&address);
    }

    /// Returns the pending requests in a list.
    fn listed(&self, count: u64, first: u64) -> Vec<(u64, Request)> {
        let step = if self.is_narrow { 4 } else { 8 };
        // Returns all pending requests in the list, even if `count` is larger than their number.
        let end = first.saturating_add(count.saturating_mul(step));
        let within = |address: &u64| (first..end).contains(address) && (address - first).is_multiple_of(step);
        if count < self.requests.len() as u64 {
            let addresses = (0..count).map(|number| first.saturating_add(number * step));
            return addresses.filter_map(|address| Some((address, *self.requests.get(&address)?))).collect();
        }
        let mut found: Vec<(u64, Request)> =
            self.requests.iter().filter(|(address, _)| within(address)).map(|(a, r)| (*a, *r)).collect();
        found.sort_unstable_by_key(|(address, _)| *address);
        found
    }

    /// Waits for all requests in a list, or only for the one that was posted first.
    pub(super) fn wait(&mut self, count: u64, first: u64, all: bool) {
        let mut found = self.listed(count, first);
        if !all {
            found.sort_unstable_by_key(|(_, request)| request.number);
            found.truncate(1);
        }
        for (address, request) in found {
            self.requests.remove(&address);
            // The end of a request comes after its start, so the dependency on the start is not needed.
            self.last.retain(|last| *last != (request.op, true));
            self.last.push((request.op, false));
        }
    }

    /// Joins all operations on which the next one depends into a single operation.
    fn join(&mut self) -> Result<Vec<u32>, Fault> {
        match self.last[..] {
            [] => Ok(Vec::new()),
            [(op, false)] => Ok(vec![op]),
            _ => {
                let op = self.add(Op::new(Kind::Calc, 0, 0, 0))?;
                self.last = vec![(op, false)];
                Ok(vec![op])
            }
        }
    }

    pub(super) fn collective(&mut self, call: Call, line: &Fields<'_>) -> Result<(), Fault> {
        let comm = line.comm(call.comm)?;
        self.check_comm(comm, call.comm, line)?;
        let root = collective::root(call, line, comm)?;
        let number = self.collectives;
        if comm.ranks == self.ranks {
            let agreed = self.world.agree(self.rank, number, (call.name, root), self.line);
            agreed.map_err(|text| Fault::new(0, text))?;
            self.collectives += 1;
        }
        let before = self.join()?;
        let ends = collective::build(self.builder, (call, number), line, comm, root, before)?;
        let Some(request) = call.request else {
            if !ends.is_empty() {
                self.last = ends.into_iter().map(|op| (op, false)).collect();
            }
            return Ok(());
        };
        let address = line.address(request)?;
        let start = std::mem::replace(&mut self.last, ends.into_iter().map(|op| (op, false)).collect());
        if self.last.is_empty() {
            self.last = start;
            self.forget(address);
            return Ok(());
        }
        let end = self.join()?[0];
        self.remember(address, end);
        self.last = start;
        Ok(())
    }
}
