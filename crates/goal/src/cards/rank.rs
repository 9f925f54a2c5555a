//! A rank on its host. An operation becomes free when its dependencies are met; then it begins, and later ends.

use crate::check::named;
use crate::schedule::{ANY, Kind, Op, Rank, Schedule};
use crate::spans::Spans;
use nicety::{Buffer, Duration, Error, Host, Later, PendingRecv, Tasks};
use nicety_types::Path;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// The future that posts a message.
pub(super) type Posting = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// The messages of a rank, if cards execute them.
pub(super) trait CardMessages {
    /// Posts a send or a receive of a rank. Operations that depend on its end continue after its event.
    fn post(self: Rc<Self>, rank: Rc<Running>, host: Host, number: u32, op: Op) -> Posting;

    /// Describes the first message that the card has dropped, if any.
    fn dropped(&self) -> Option<String>;
}

/// A rank on its host.
pub(super) struct Running {
    schedule: Arc<Schedule>,
    rank: u32,
    pub(super) tasks: Tasks,
    /// The source memory of all messages. `into` is the destination memory of all messages.
    pub(super) out: Buffer,
    into: Buffer,
    /// For each operation, the number of dependencies that are not met.
    remaining: RefCell<Vec<u32>>,
    rooms: Rooms,
    /// The CPUs, by their numbers in the schedule.
    cpus: RefCell<Vec<Cpu>>,
    /// The card's messages, if cards execute them.
    pub(super) card: OnceCell<Rc<dyn CardMessages>>,
    /// Whether a receive is being posted. A rank posts one receive at a time, because receives of one source and tag must take
    /// messages in the order of posting.
    is_posting: Cell<bool>,
    /// Receives that wait to be posted. Each has the critical path to the time at which it became free.
    to_post: RefCell<VecDeque<(u32, Path)>>,
    spans: RefCell<Spans>,
    /// Sends and receives, in the order in which they began.
    order: RefCell<Vec<u32>>,
    /// The source and tag of each message that a wildcard receive took. The key is the number of the receive.
    pub(super) taken: RefCell<BTreeMap<u32, (u32, u32)>>,
    /// The critical path to the end of the rank, once it has ended.
    path: RefCell<Option<Path>>,
    /// The number of operations that have ended, over all ranks of this part.
    ended: Rc<Cell<u64>>,
}

/// The result of a rank so far.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    /// The start and the end of each operation, by number.
    pub(super) spans: Spans,
    /// Sends and receives, in the order in which they began. Times do not give this order, since several may begin at one time.
    pub(super) order: Vec<u32>,
    /// The source and tag of each message that a wildcard receive took. The key is the number of the receive.
    pub(super) taken: BTreeMap<u32, (u32, u32)>,
    /// The critical path to the end of the rank, if it has ended.
    pub(super) path: Option<Path>,
    /// Describes the first message that the card has dropped, if any.
    pub(super) dropped: Option<String>,
}

impl State {
    /// Returns the end of the rank's last operation, in picoseconds.
    pub(super) fn finish_ps(&self) -> u64 {
        self.spans.last_end().unwrap_or(0)
    }
}

/// A CPU of the schedule.
#[derive(Default)]
struct Cpu {
    computes: bool,
    /// Free operations that wait until the CPU's calculation ends.
    waiting: VecDeque<u32>,
}

/// The buffer length of receives. It is the length of the longest receive that may take the same messages. The reason is that a
/// library may let a short message overtake a long one that was sent just before. The schedule allows either receive to take it.
enum Rooms {
    /// If the rank has wildcard receives, all receives have the same length.
    Same(u64),
    /// Without wildcard receives, the length depends on the source and the tag.
    Each(FxHashMap<(u32, u32), u64>),
}

impl Rooms {
    fn of(ops: &[Op]) -> Rooms {
        let receives = ops.iter().filter(|op| op.kind == Kind::Recv);
        if receives.clone().any(|op| op.peer == ANY || op.tag == ANY) {
            return Rooms::Same(receives.map(|op| op.size).max().unwrap_or(0));
        }
        let mut rooms = FxHashMap::default();
        for op in receives {
            let room: &mut u64 = rooms.entry((op.peer, op.tag)).or_default();
            *room = op.size.max(*room);
        }
        Rooms::Each(rooms)
    }

    fn room(&self, op: &Op) -> u64 {
        match self {
            Rooms::Same(room) => *room,
            Rooms::Each(rooms) => rooms.get(&(op.peer, op.tag)).copied().unwrap_or(op.size),
        }
    }
}

impl Running {
    /// Creates a rank.
    ///
    /// # Errors
    /// When the host has no memory for the longest message.
    pub(super) fn new(
        schedule: Arc<Schedule>,
        host: &Host,
        ended: Rc<Cell<u64>>,
    ) -> Result<Rc<Running>, Error> {
        let ops = schedule.rank(host.rank()).ops;
        let longest = |kind: Kind| ops.iter().filter(|op| op.kind == kind).map(|op| op.size).max();
        let memory = |kind: Kind| host.alloc_phantom(longest(kind).unwrap_or(0));
        let cpus = ops.iter().map(|op| usize::from(op.cpu) + 1).max().unwrap_or(0);
        let (out, into) = (memory(Kind::Send)?, memory(Kind::Recv)?);
        let remaining = ops.iter().map(|op| op.dependencies).collect();
        let spans = Spans::new(ops.len());
        Ok(Rc::new(Running {
            rank: host.rank(),
            tasks: Tasks::new(host),
            rooms: Rooms::of(ops),
            out,
            into,
            remaining: RefCell::new(remaining),
            cpus: RefCell::new((0..cpus).map(|_| Cpu::default()).collect()),
            card: OnceCell::new(),
            is_posting: Cell::new(false),
            to_post: RefCell::default(),
            spans: RefCell::new(spans),
            order: RefCell::default(),
            taken: RefCell::default(),
            path: RefCell::default(),
            ended,
            schedule,
        }))
    }

    /// Runs the program of the rank's host.
    pub(super) async fn run(self: Rc<Running>, host: Host) -> Result<(), Error> {
        let ops = (0..).zip(self.rank().ops);
        let mut free: Vec<u32> =
            ops.filter(|(_, op)| op.dependencies == 0).map(|(number, _)| number).collect();
        self.in_order(&mut free);
        self.proceed(&host, free.into(), &host.path());
        self.tasks.ended(&host).await?;
        self.path.replace(Some(host.path()));
        Ok(())
    }

    /// Returns the result of the rank so far.
    pub(super) fn state(&self) -> State {
        State {
            spans: self.spans.borrow().clone(),
            order: self.order.borrow().clone(),
            taken: self.taken.borrow().clone(),
            path: self.path.borrow().clone(),
            dropped: self
                .card
                .get()
                .and_then(|card| card.dropped())
                .map(|text| format!("rank {}: {text}", self.rank)),
        }
    }

    fn rank(&self) -> Rank<'_> {
        self.schedule.rank(self.rank)
    }

    /// Sorts operations that become free together by kind: first receives, because programs post these first, then sends, then
    /// calculations.
    fn in_order(&self, free: &mut [u32]) {
        let ops = self.rank().ops;
        free.sort_by_key(|op| match ops[*op as usize].kind {
            Kind::Recv => 0,
            Kind::Send => 1,
            Kind::Calc => 2,
        });
    }

    /// Begins free operations, and operations that become free as a result. `path` is the critical path to this instant.
    fn proceed(self: &Rc<Running>, host: &Host, mut free: VecDeque<u32>, path: &Path) {
        while let Some(number) = free.pop_front() {
            let op = self.rank().ops[number as usize];
            if self.has_to_wait(number, op) {
                continue;
            }
            self.spans.borrow_mut().begin(number as usize, host.now().ps());
            if op.kind != Kind::Calc {
                self.order.borrow_mut().push(number);
            }
            if op.starts_others() {
                free.extend(self.met(number, true));
            }
            if op.kind == Kind::Calc && op.size == 0 {
                free.extend(self.end(number, op, host));
                continue;
            }
            if op.kind == Kind::Recv && self.is_posting.replace(true) {
                self.to_post.borrow_mut().push_back((number, path.clone()));
            } else {
                self.start(host, number, path.clone());
            }
        }
    }

    fn start(self: &Rc<Running>, host: &Host, number: u32, path: Path) {
        let (own, op) = (self.clone(), self.rank().ops[number as usize]);
        // A program posts its receives before it sends. So the library's work for these receives comes first.
        let posts = match op.kind {
            Kind::Send if self.is_posting.get() => 1 + self.to_post.borrow().len(),
            _ => 0,
        };
        self.tasks.start(host, op.cpu.into(), path, move |host| async move {
            for _ in 0..posts {
                host.yield_now().await;
            }
            own.execute(host, number, op).await
        });
    }

    /// Returns whether the operation has to wait because its CPU computes. If not, a calculation occupies the CPU.
    fn has_to_wait(&self, number: u32, op: Op) -> bool {
        let cpu = &mut self.cpus.borrow_mut()[usize::from(op.cpu)];
        if cpu.computes {
            cpu.waiting.push_back(number);
            return true;
        }
        cpu.computes = op.kind == Kind::Calc;
        false
    }

    /// Executes an operation from start to end.
    async fn execute(self: Rc<Running>, host: Host, number: u32, op: Op) -> Result<Option<Later>, Error> {
        if let (Some(card), Kind::Send | Kind::Recv) = (self.card.get(), op.kind) {
            card.clone().post(self, host, number, op).await?;
            return Ok(None);
        }
        let done = match op.kind {
            Kind::Calc => Box::pin(self.compute(&host, op)).await,
            Kind::Send => Box::pin(self.send(&host, op)).await,
            Kind::Recv => {
                let posted = Box::pin(self.post(&host, op)).await;
                let pending = posted.map_err(|error| error.inside(&named(number, &op)))?;
                // A receive may wait for long, and a rank may have many receives. So a waiting receive keeps no task.
                let own = self.clone();
                let go_on = move |host, pending| own.receive(host, number, op, pending);
                return match self.tasks.start_when_received(&host, pending, go_on) {
                    Ok(later) => Ok(Some(later)),
                    Err(pending) => Box::pin(self.receive(host, number, op, pending)).await,
                };
            }
        };
        done.map_err(|error| error.inside(&named(number, &op)))?;
        self.completed(number, op, &host);
        Ok(None)
    }

    /// Ends an operation, and begins the operations that become free.
    pub(super) fn completed(self: &Rc<Running>, number: u32, op: Op, host: &Host) {
        let free = self.end(number, op, host);
        self.proceed(host, free, &host.path());
    }

    async fn compute(&self, host: &Host, op: Op) -> Result<(), Error> {
        let duration = Duration::from_ps(op.size.saturating_mul(1000));
        host.compute(host.duration(duration, 0)?).await;
        Ok(())
    }

    async fn send(&self, host: &Host, op: Op) -> Result<(), Error> {
        host.send(&self.out.slice(0, op.size)?, op.peer, op.tag.into()).await
    }

    async fn post(self: &Rc<Running>, host: &Host, op: Op) -> Result<PendingRecv, Error> {
        let named = |value: u32| (value != ANY).then_some(value);
        let posted = host.post_recv(&self.room(&op)?, named(op.peer), named(op.tag).map(u64::from)).await?;
        self.posted(host);
        Ok(posted)
    }

    /// Waits for the message of a posted receive, and ends the receive.
    async fn receive(
        self: Rc<Running>,
        host: Host,
        number: u32,
        op: Op,
        posted: PendingRecv,
    ) -> Result<Option<Later>, Error> {
        let received = host.received(posted).await.map_err(|error| error.inside(&named(number, &op)))?;
        if op.peer == ANY || op.tag == ANY {
            self.taken.borrow_mut().insert(number, (received.source, received.tag as u32));
        }
        self.completed(number, op, &host);
        Ok(None)
    }

    /// Returns the destination memory of a receive.
    pub(super) fn room(&self, op: &Op) -> Result<Buffer, Error> {
        self.into.slice(0, self.rooms.room(op))
    }

    /// Ends the posting of a receive, and posts the next one.
    pub(super) fn posted(self: &Rc<Running>, host: &Host) {
        let next = self.to_post.borrow_mut().pop_front();
        match next {
            Some((next, path)) => self.start(host, next, path),
            None => self.is_posting.set(false),
        }
    }

    /// Ends an operation, and returns the operations that become free. Those that waited for its CPU come first.
    fn end(&self, number: u32, op: Op, host: &Host) -> VecDeque<u32> {
        self.spans.borrow_mut().end(number as usize, host.now().ps());
        self.ended.set(self.ended.get() + 1);
        let mut free = VecDeque::new();
        if op.kind == Kind::Calc {
            let cpu = &mut self.cpus.borrow_mut()[usize::from(op.cpu)];
            cpu.computes = false;
            free = std::mem::take(&mut cpu.waiting);
        }
        free.extend(self.met(number, false));
        free
    }

    /// Marks dependencies on the start or the end of an operation as met. Returns the operations that become free.
    fn met(&self, number: u32, on_start: bool) -> Vec<u32> {
        let mut remaining = self.remaining.borrow_mut();
        let mut free = Vec::new();
        for dependent in self.rank().dependents(number as usize) {
            if dependent.on_start() == on_start {
                let left = &mut remaining[dependent.op() as usize];
                *left -= 1;
                if *left == 0 {
                    free.push(dependent.op());
                }
            }
        }
        if free.len() > 1 {
            self.in_order(&mut free);
        }
        free
    }
}
