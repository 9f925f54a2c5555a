//! A process as the program of a host: its calls, carried out by the host's card.

use crate::channels::Goroutines;
use crate::completions::Completions;
use crate::memory;
use crate::pages::{Quiet, Reply, rank_or_any};
use crate::places::{Places, TAG_BITS};
use crate::portals::{self, Interface, op};
use crate::protocol::{ANY, Access, Call, Completion, Count, Kind, Receive, Send, done, flag};
use crate::rma::Rma;
use crate::schedule::Log;
use crate::spent::{Part, Spent};
use crate::turns::{Next, Turns};
use nicety::{Buffer, Duration, Error, Host, PendingRecv, Received, Tags, Tasks, Time};
use nicety_kernel::Either;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bits of a message's tag beside those of its program and its processes. The first bytes are for the receiver's completion.
const HAS_DATA: u64 = 1 << TAG_BITS;
const UNTAGGED: u64 = 1 << (TAG_BITS + 1);
/// Bytes of that.
const DATA_BYTES: u64 = 4;
/// Polls that cost what they cost; after so many in vain, the next one returns when something comes.
const POLLS: u32 = 16;
/// Receives that wait for the messages of one buffer for many.
const AT_ONCE: usize = 4;
/// The longest message of such a buffer.
const LONGEST_OF_MANY: u64 = 64 << 10;

/// What came of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) finish: Time,
    pub(crate) spent: Spent,
    pub(crate) sends: u64,
    pub(crate) bytes: u64,
    pub(crate) receives: u64,
    pub(crate) calls: u64,
}

pub(crate) struct Program {
    host: Host,
    turns: Rc<Turns>,
    rank: u32,
    places: Places,
    poll: Duration,
    tasks: Tasks,
    /// Buffers of the host by the logarithm of their size, to be used again.
    free: RefCell<BTreeMap<u32, Vec<Buffer>>>,
    ended: Rc<Completions>,
    /// Messages that a peek has claimed, by its context.
    claimed: RefCell<BTreeMap<u64, (Received, Buffer)>>,
    /// Receives that wait, by number.
    posted: RefCell<BTreeMap<u64, Posted>>,
    numbers: Cell<u64>,
    counts: RefCell<Counts>,
    portals: Interface,
    rma: Rma,
    goroutines: Rc<Goroutines>,
    /// Whether the process waits for the end of the run.
    waits_for_end: Cell<bool>,
}

/// A receive that waits.
struct Posted {
    receive: Receive,
    pending: PendingRecv,
    buffer: Buffer,
}

/// A buffer of a process for many messages.
struct Many {
    receive: Receive,
    /// Its operation of the schedule.
    op: Option<u32>,
    used: Cell<u64>,
    waiting: Cell<usize>,
}

/// Where a process is between its calls.
#[derive(Default)]
struct Course {
    /// Looks in vain, one after another.
    polls: u32,
    /// Receives from before all have started.
    early: Vec<Receive>,
    /// The part of what the process has spent since its last reply that has been looked at, and what of all is still to be charged.
    charged_ps: u64,
    owed_ps: u64,
    /// The same of the looks that it has counted itself.
    charged_looks: u32,
    owed_looks: u32,
    /// Since when it has only waited for the end of all others, and what it had spent until then.
    ends: Option<(Time, Spent)>,
}

/// A call that there is not, or that is not posted.
fn written_over(call: Call) -> Error {
    Error::Program(format!(
        "the process made call {call:?}, which there is not: it has written over memory that it shares with the simulation"
    ))
}

/// Several processes of a host have called what the card has once.
fn shared(call: Call) -> Error {
    let what = if matches!(call, Call::Portals(_)) { "a Portals interface" } else { "channels" };
    Error::Input(format!(
        "{what}: a host has it for one process; run one on each host, without ranks_per_node, or use MPI or libfabric"
    ))
}

impl Program {
    /// The program of the next rank, which is on this host.
    pub(crate) fn new(
        host: &Host,
        (turns, places): (&Rc<Turns>, Places),
        poll: Duration,
        log: Option<Rc<Log>>,
    ) -> Rc<Program> {
        let rank = turns.add(host);
        let ended = Completions::new(rank, turns, log);
        let portals = Interface::new(host, turns, poll, POLLS);
        Rc::new(Program {
            host: host.clone(),
            turns: turns.clone(),
            rank,
            places,
            poll,
            tasks: Tasks::new(host),
            free: RefCell::default(),
            claimed: RefCell::default(),
            posted: RefCell::default(),
            numbers: Cell::new(0),
            counts: RefCell::default(),
            rma: Rma::new(host, &ended, portals.notes()),
            ended,
            portals,
            goroutines: Goroutines::new(host, turns),
            waits_for_end: Cell::new(false),
        })
    }

    pub(crate) fn counts(&self) -> Counts {
        let (counts, moved) = (self.counts.borrow().clone(), self.portals.moved());
        let channels = self.goroutines.moved();
        Counts {
            sends: counts.sends + moved.operations + channels.sends,
            bytes: counts.bytes + moved.bytes + channels.bytes,
            // Of messages of MPI the card has matched each, too.
            receives: counts.receives.max(moved.matched) + channels.receives,
            calls: counts.calls + channels.calls,
            ..counts
        }
    }

    /// The run is over: a process that has waited for that ends. An error where the card could not reach its memory.
    pub(crate) fn over(&self) -> Result<(), Error> {
        if self.waits_for_end.take() {
            self.turns.reply(self.rank, &Reply { now_ps: self.host.now().ps(), ..Reply::default() });
        }
        self.portals.missed().map_or(Ok(()), Err)
    }

    /// Runs until the process closes the network.
    pub(crate) async fn run(self: Rc<Self>) -> Result<(), Error> {
        self.host.match_in_library()?;
        let mut course = Course::default();
        let ended = self.clone().serve(&mut course).await;
        self.turns.ended(self.rank);
        self.turns.lap(self.rank, Part::Calls);
        let mut counts = self.counts.borrow_mut();
        (counts.finish, counts.spent) = course.ends.unwrap_or_else(|| self.now());
        ended
    }

    /// The time, and what the process has spent it with.
    fn now(&self) -> (Time, Spent) {
        (self.host.now(), self.turns.spent(self.rank))
    }

    async fn serve(self: Rc<Self>, course: &mut Course) -> Result<(), Error> {
        self.turns.back(self.rank).await?;
        loop {
            let next = self.turns.next(self.rank)?;
            self.note_looks(course);
            while let Some((call, spent)) = self.turns.post(self.rank)? {
                if !call.is_post() {
                    return Err(written_over(call));
                }
                self.carry_out(call, spent, course).await?;
                self.turns.pages.take(self.rank);
            }
            let (call, spent) = match next {
                Next::Call(call, spent) => (call, spent),
                Next::Outside { ends } => {
                    course.ends = course.ends.or_else(|| ends.then(|| self.now()));
                    self.turns.back(self.rank).await?;
                    continue;
                }
            };
            let (result, completions) = self.carry_out(call, spent, course).await?;
            if call == Call::Portals(op::FINI) {
                // Its memory is there until no message can come any more.
                self.waits_for_end.set(true);
                return Ok(());
            }
            if let Call::Channels(op) = call {
                return self.goroutines.clone().serve(op).await;
            }
            (course.charged_ps, course.charged_looks) = (0, 0);
            let now_ps = self.host.now().ps() + course.owed_ps;
            self.ended.tell();
            let quiet = self.quiet(course);
            self.turns.reply(self.rank, &Reply { now_ps, result, completions: &completions, quiet });
            if call == Call::End {
                return Ok(());
            }
        }
    }

    /// Notes the looks that the process has counted itself since its last reply.
    fn note_looks(&self, course: &mut Course) {
        let looks = self.turns.pages.looks(self.rank);
        let more = looks.saturating_sub(std::mem::replace(&mut course.charged_looks, looks)).min(POLLS);
        course.owed_looks += more;
        course.polls = course.polls.saturating_add(more);
        self.counts.borrow_mut().calls += u64::from(more);
    }

    /// The looks that a process may count itself: they find nothing.
    fn quiet(&self, course: &Course) -> Quiet {
        if self.ended.is_woken() || !self.turns.have_started() || course.owed_ps > 0 {
            return Quiet::default();
        }
        Quiet { until_ps: self.host.quiet_until().ps(), looks: POLLS.saturating_sub(course.polls) }
    }

    /// Carries out a call, before which the process has spent so much on its own since its last reply: the result, and completions.
    async fn carry_out(
        self: &Rc<Self>,
        call: Call,
        spent_ps: u64,
        course: &mut Course,
    ) -> Result<(i64, Vec<Completion>), Error> {
        if !matches!(call, Call::Back | Call::Posted) {
            self.counts.borrow_mut().calls += 1;
        }
        if !matches!(call, Call::Back | Call::Posted | Call::End) {
            course.ends = None;
        }
        course.owed_ps += spent_ps.saturating_sub(std::mem::replace(&mut course.charged_ps, spent_ps));
        if !self.turns.have_started() {
            match call {
                Call::Receive(receive) => course.early.push(receive),
                Call::Back | Call::Posted => {}
                _ => self.turns.starts(self.rank).await,
            }
            if !self.turns.have_started() {
                return Ok((0, Vec::new()));
            }
        }
        for receive in course.early.drain(..) {
            self.post_receive(receive).await?;
        }
        let looks = std::mem::take(&mut course.owed_looks);
        if looks > 0 {
            self.host.compute(self.poll * u64::from(looks)).await;
            self.turns.lap(self.rank, Part::Looks);
        }
        let owed = std::mem::take(&mut course.owed_ps);
        if owed > 0 {
            self.ended.logged(|log| log.computes(self.rank, owed));
            self.host.compute(Duration::from_ps(owed)).await;
            self.turns.lap(self.rank, Part::Computes);
        }
        if !call.is_look() {
            course.polls = 0;
        }
        let mut completions = Vec::new();
        let result = match call {
            Call::Send(send) => self.send(send)?,
            Call::Receive(receive) if receive.flags & flag::CLAIM != 0 => self.take_claimed(receive)?,
            Call::Receive(receive) => self.post_receive(receive).await?,
            Call::Poll { most } => {
                self.looks(course, || self.ended.is_woken()).await;
                completions = self.ended.take(most);
                0
            }
            Call::Wait { most, ps } => {
                self.wait(ps, || self.ended.is_woken()).await;
                self.turns.lap(self.rank, Part::Waits);
                completions = self.ended.take(most);
                0
            }
            Call::Count(Count { kinds, done, failed, ps }) => {
                let has = || self.ended.has_counted(kinds, done, failed);
                match ps {
                    0 => self.looks(course, || has() || self.ended.is_woken()).await,
                    // It may be let go on where nothing else is left to happen.
                    ANY => {
                        while !has() {
                            self.wait(ps, has).await;
                        }
                    }
                    _ => self.wait(ps, has).await,
                }
                self.turns.lap(self.rank, if ps == 0 { Part::Looks } else { Part::Waits });
                0
            }
            Call::Write(access) => {
                self.accesses(&access);
                self.rma.write(self.turns.pages.process(self.rank), access).await?;
                0
            }
            Call::Read(access) => {
                self.accesses(&access);
                self.rma.read(self.turns.pages.process(self.rank), access).await?;
                0
            }
            Call::Atomic(access, operation) => {
                self.accesses(&access);
                self.rma.atomic(self.turns.pages.process(self.rank), access, operation).await?;
                0
            }
            Call::Register(memory) => self.rma.register(self.turns.pages.process(self.rank), memory).await?,
            Call::Deregister { number } => self.rma.deregister(number).await?,
            Call::Peek(peek) => self.peek(peek).await?,
            Call::Cancel { context } => self.cancel(context).await?,
            Call::Sleep { ps } => {
                self.ended.logged(|log| log.computes(self.rank, ps));
                self.host.pause(Duration::from_ps(ps)).await;
                self.turns.lap(self.rank, Part::Sleeps);
                0
            }
            Call::Portals(_) | Call::Channels(_) if self.places.are_shared() => return Err(shared(call)),
            Call::Portals(op::CT_AWAIT) => self.await_count().await?,
            Call::Portals(op) => self.portals.call(op).await?,
            // The first call of a process that has goroutines, which have their own course.
            Call::Channels(_) | Call::Back | Call::Posted | Call::End => 0,
            Call::Unknown(_) => return Err(written_over(call)),
        };
        self.turns.lap(self.rank, Part::Calls);
        match self.ended.failure() {
            Some(error) => Err(error),
            None => Ok((result, completions)),
        }
    }

    /// A look for something: after many in vain the next one lasts until it finds something, or nothing else is left to happen.
    async fn looks(&self, course: &mut Course, finds: impl Fn() -> bool) {
        self.host.compute(self.poll).await;
        self.turns.lap(self.rank, Part::Looks);
        if !finds() && course.polls >= POLLS {
            self.turns.polls(self.rank, || self.waiting(), &finds).await;
        }
        course.polls = if finds() { 0 } else { course.polls.saturating_add(1) };
    }

    /// An access to registered memory begins.
    fn accesses(&self, access: &Access) {
        self.ended.logged(Log::accesses);
        let mut counts = self.counts.borrow_mut();
        counts.sends += 1;
        counts.bytes += if access.flags & flag::PARTS == 0 { access.bytes } else { 0 };
    }

    /// What a process that polls waits for.
    fn waiting(&self) -> String {
        let posted = self.posted.borrow();
        let mut text = "a completion: it polls, and has posted ".to_owned();
        match self.rma.pending() {
            0 => {}
            1 => text += "an access to registered memory, and ",
            several => text += &format!("{several} accesses to registered memory, and "),
        }
        match posted.len() {
            0 => text += "no receive",
            1 => text += "a receive of ",
            several => text += &format!("{several} receives, first of "),
        }
        if let Some(Posted { receive, .. }) = posted.values().next() {
            let from = rank_or_any(receive.from).map_or("any rank".to_owned(), |rank| format!("rank {rank}"));
            text += &format!("{} bytes from {from}", receive.bytes);
            if receive.flags & flag::UNTAGGED == 0 {
                text += &format!(", {}", Tags { bits: receive.tag, ignore: receive.ignore }.what());
            }
        }
        text
    }

    /// Waits for a count, or until there is a completion for the process.
    async fn await_count(&self) -> Result<i64, Error> {
        let signal = self.turns.signal(self.rank);
        let come = signal.wait_until(|| self.ended.is_woken());
        match nicety_kernel::race(self.portals.call(op::CT_AWAIT), come).await {
            Either::Left(code) => code,
            Either::Right(()) => Ok(portals::not_reached()),
        }
    }

    async fn wait(&self, ps: u64, finds: impl Fn() -> bool) {
        let signal = self.turns.signal(self.rank);
        if ps == ANY {
            return self.turns.polls(self.rank, || self.waiting(), finds).await;
        }
        let come = signal.wait_until(&finds);
        nicety_kernel::race(come, self.host.pause(Duration::from_ps(ps))).await;
    }

    /// Starts what goes on beside the process; what fails there ends the process's program.
    fn start<F>(self: &Rc<Self>, task: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let own = self.clone();
        self.tasks.start(&self.host, self.host.thread(), self.host.path(), |host| {
            let task = task(host);
            async move {
                if let Err(error) = task.await {
                    own.ended.fail(error);
                }
                Ok(None)
            }
        });
    }

    /// A buffer of the host.
    fn buffer(&self, bytes: u64) -> Result<Buffer, Error> {
        let class = bytes.max(64).next_power_of_two().ilog2();
        let free = self.free.borrow_mut().get_mut(&class).and_then(Vec::pop);
        free.map_or_else(|| self.host.alloc(1 << class), Ok)
    }

    fn give_back(&self, buffer: Buffer) {
        let class = buffer.len().ilog2();
        self.free.borrow_mut().entry(class).or_default().push(buffer);
    }

    fn process(&self) -> Result<u32, Error> {
        let none = || Error::Program(format!("rank {} has no process", self.rank));
        self.turns.pages.process(self.rank).ok_or_else(none)
    }

    fn unreadable(what: &str, address: u64, bytes: u64, error: &std::io::Error) -> Error {
        Error::Program(format!(
            "{bytes} bytes at {address:#x} of the process, {what}, cannot be reached: {error}; the simulation reads and \
             writes the memory of its processes (ptrace(2) says what may forbid it)"
        ))
    }

    fn send(self: &Rc<Self>, send: Send) -> Result<i64, Error> {
        let head = if send.flags & flag::DATA != 0 { DATA_BYTES } else { 0 };
        let mut bytes = vec![0; (head + send.bytes) as usize];
        bytes[..head as usize].copy_from_slice(&(send.data as u32).to_le_bytes()[..head as usize]);
        memory::read(self.process()?, send.address, &mut bytes[head as usize..])
            .map_err(|error| Program::unreadable("to be sent", send.address, send.bytes, &error))?;
        let buffer = self.buffer(bytes.len() as u64)?;
        let part = buffer.slice(0, bytes.len() as u64)?;
        if !bytes.is_empty() {
            part.write(0, &bytes);
        }
        let to = send.to as u32;
        let mut tag = self.places.between(self.rank, to, send.tag);
        tag |= if head > 0 { HAS_DATA } else { 0 };
        tag |= if send.flags & flag::UNTAGGED != 0 { UNTAGGED } else { 0 };
        if head > 0 {
            self.turns.sent((self.rank, to, tag), send.data as u32);
        }
        {
            let mut counts = self.counts.borrow_mut();
            counts.sends += 1;
            counts.bytes += send.bytes;
        }
        let op = self.ended.logged(|log| log.sends((self.rank, to), tag, bytes.len() as u64));
        let own = self.clone();
        self.start(|host| async move {
            host.send(&part, own.places.host(to), tag).await?;
            own.give_back(buffer);
            own.ended.count(Kind::Send, true);
            if send.flags & flag::COMPLETION != 0 && send.flags & flag::INJECT == 0 {
                let completion = Completion {
                    context: send.context,
                    flags: if send.flags & flag::UNTAGGED != 0 { done::UNTAGGED } else { 0 },
                    bytes: send.bytes,
                    tag: send.tag,
                    source: ANY,
                    ..Completion::default()
                };
                own.ended.complete(completion, op);
            }
            Ok(())
        });
        Ok(0)
    }

    /// The host and the tags of the messages that a receive takes.
    fn wanted(&self, receive: &Receive) -> (Option<u32>, Tags) {
        let from = rank_or_any(receive.from);
        let tags = match receive.flags & flag::UNTAGGED {
            0 => Tags {
                bits: self.places.own(receive.tag),
                ignore: self.places.own(receive.ignore) | HAS_DATA,
            },
            _ => Tags { bits: UNTAGGED, ignore: HAS_DATA },
        };
        (from.map(|rank| self.places.host(rank)), self.places.wanted(from, self.rank, tags))
    }

    /// A message, whose source is a rank.
    const fn of_rank(&self, received: Received) -> Received {
        Received { source: self.places.source(received.source, received.tag), ..received }
    }

    /// Posts a receive of so many bytes, on the host.
    async fn post(&self, host: &Host, receive: &Receive, room: u64) -> Result<(Buffer, PendingRecv), Error> {
        let buffer = self.buffer(room + DATA_BYTES)?;
        let part = buffer.slice(0, room + DATA_BYTES)?;
        let (from, tags) = self.wanted(receive);
        let pending = host.post_recv_matching(&part, from, tags).await?;
        Ok((buffer, pending))
    }

    /// Brings what came into the process: its completion.
    fn bring(
        &self,
        received: Received,
        buffer: &Buffer,
        receive: &Receive,
        (address, room): (u64, u64),
    ) -> Result<Completion, Error> {
        let head = if received.tag & HAS_DATA != 0 { DATA_BYTES } else { 0 };
        let sent = received.length - head.min(received.length);
        let bytes = sent.min(room);
        let mut data = 0;
        if head > 0 {
            data = u32::from_le_bytes(buffer.read(0, DATA_BYTES).try_into().expect("four bytes")).into();
        }
        if bytes > 0 {
            memory::write(self.process()?, address, &buffer.read(head, bytes))
                .map_err(|error| Program::unreadable("to be received into", address, bytes, &error))?;
        }
        self.counts.borrow_mut().receives += 1;
        self.ended.count(Kind::Recv, sent <= room);
        let flags = done::RECV
            | if head > 0 { done::DATA } else { 0 }
            | if receive.flags & flag::UNTAGGED != 0 { done::UNTAGGED } else { 0 };
        Ok(Completion {
            context: receive.context,
            flags,
            error: if sent > room { TRUNCATED } else { 0 },
            bytes,
            address,
            data,
            tag: self.places.own(received.tag),
            source: received.source.into(),
            cut: sent - bytes,
        })
    }

    async fn post_receive(self: &Rc<Self>, receive: Receive) -> Result<i64, Error> {
        match receive.flags & flag::MULTI {
            0 => self.receive(receive).await,
            _ => Ok(self.receive_many(receive)),
        }
    }

    async fn receive(self: &Rc<Self>, receive: Receive) -> Result<i64, Error> {
        let (buffer, pending) = self.post(&self.host, &receive, receive.bytes).await?;
        let number = self.numbers.replace(self.numbers.get() + 1);
        let posted = Posted { receive, pending: pending.clone(), buffer: buffer.clone() };
        self.posted.borrow_mut().insert(number, posted);
        let op = self.ended.logged(|log| log.posts(self.rank));
        let own = self.clone();
        self.start(|host| async move {
            let received = own.arrived(&host, pending, op).await?;
            own.posted.borrow_mut().remove(&number);
            let place = (receive.address, receive.bytes);
            let completion = own.bring(received, &buffer, &receive, place)?;
            own.give_back(buffer);
            if receive.flags & flag::COMPLETION != 0 || completion.error != 0 {
                own.ended.complete(completion, op);
            }
            Ok(())
        });
        Ok(0)
    }

    /// Waits for the message of a receive, which is this operation of the schedule.
    async fn arrived(&self, host: &Host, pending: PendingRecv, op: Option<u32>) -> Result<Received, Error> {
        let received = self.of_rank(host.arrived(pending).await?);
        if let Some(op) = op {
            self.ended
                .logged(|log| log.got((self.rank, op), (received.source, received.tag), received.length));
        }
        if received.tag & HAS_DATA != 0 {
            self.turns.received((received.source, self.rank, received.tag));
        }
        Ok(received)
    }

    /// Looks for an early message, which is there as before, claimed for who has looked, or gone.
    async fn peek(self: &Rc<Self>, peek: Receive) -> Result<i64, Error> {
        let (from, tags) = self.wanted(&peek);
        let Some(found) = self.host.probe(from, tags).await?.map(|found| self.of_rank(found)) else {
            let none = Completion {
                context: peek.context,
                flags: done::RECV,
                error: libc::ENOMSG,
                tag: peek.tag,
                source: ANY,
                ..Completion::default()
            };
            self.ended.complete(none, None);
            return Ok(0);
        };
        let head = if found.tag & HAS_DATA != 0 { DATA_BYTES } else { 0 };
        let mut completion = Completion {
            context: peek.context,
            flags: done::RECV,
            bytes: found.length - head.min(found.length),
            tag: self.places.own(found.tag),
            source: found.source.into(),
            ..Completion::default()
        };
        if head > 0 {
            completion.data = self.turns.data_of_first((found.source, self.rank, found.tag));
            completion.flags |= done::DATA;
        }
        let mut op = None;
        if peek.flags & (flag::CLAIM | flag::DISCARD) != 0 {
            // It is the first one of its source and tag, so that this receive takes it.
            let exactly = Receive { from: found.source.into(), tag: completion.tag, ignore: 0, ..peek };
            let (buffer, pending) = self.post(&self.host, &exactly, completion.bytes).await?;
            op = self.ended.logged(|log| log.posts(self.rank));
            let received = self.arrived(&self.host, pending, op).await?;
            if peek.flags & flag::DISCARD != 0 {
                self.give_back(buffer);
            } else {
                self.claimed.borrow_mut().insert(peek.context, (received, buffer));
            }
        }
        self.ended.complete(completion, op);
        Ok(0)
    }

    /// Brings a claimed message into the process, or discards it.
    fn take_claimed(&self, receive: Receive) -> Result<i64, Error> {
        let Some((received, buffer)) = self.claimed.borrow_mut().remove(&receive.context) else {
            return Ok(-i64::from(libc::EINVAL));
        };
        let is_wanted = receive.flags & flag::DISCARD == 0;
        let room = if is_wanted { receive.bytes } else { 0 };
        let mut completion = self.bring(received, &buffer, &receive, (receive.address, room))?;
        if !is_wanted {
            (completion.error, completion.cut) = (0, 0);
        }
        self.give_back(buffer);
        self.ended.complete(completion, None);
        Ok(0)
    }

    /// A buffer for many messages: receives of its own, one behind the other, whose messages are brought into it.
    fn receive_many(self: &Rc<Self>, receive: Receive) -> i64 {
        let op = self.ended.logged(|log| log.posts_many(self.rank));
        let many = Rc::new(Many { receive, op, used: Cell::new(0), waiting: Cell::new(0) });
        for _ in 0..AT_ONCE {
            many.waiting.set(many.waiting.get() + 1);
            let (own, many) = (self.clone(), many.clone());
            self.start(|host| async move { own.take_many(&host, &many).await });
        }
        0
    }

    async fn take_many(&self, host: &Host, many: &Many) -> Result<(), Error> {
        let Many { receive, op: posted, used, waiting } = many;
        let longest = LONGEST_OF_MANY.min(receive.bytes / AT_ONCE as u64);
        loop {
            let (buffer, pending) = self.post(host, receive, longest).await?;
            let op = posted.and_then(|many| self.ended.logged(|log| log.posts_behind(self.rank, many)));
            let received = self.arrived(host, pending, op).await?;
            let left = receive.bytes - used.get();
            let mut completion =
                self.bring(received, &buffer, receive, (receive.address + used.get(), left))?;
            self.give_back(buffer);
            if completion.cut > 0 {
                return Err(Error::Program(format!(
                    "a message of {} bytes does not fit what is left of a buffer for many, {left} bytes",
                    completion.bytes + completion.cut
                )));
            }
            used.set(used.get() + completion.bytes);
            // What is left is for all receives that wait; the last of them gives the buffer back to the program.
            let left = receive.bytes - used.get();
            let is_full = left < waiting.get() as u64 * longest || left < receive.least;
            if is_full {
                waiting.set(waiting.get() - 1);
                if waiting.get() == 0 {
                    completion.flags |= done::USED_UP;
                }
            }
            self.ended.complete(completion, op);
            if is_full {
                return Ok(());
            }
        }
    }

    /// Gives up a receive for which nothing has come; what has come is received.
    async fn cancel(&self, context: u64) -> Result<i64, Error> {
        let find = |(number, own): (&u64, &Posted)| {
            (own.receive.context == context).then(|| (*number, own.pending.clone()))
        };
        let found = self.posted.borrow().iter().find_map(find);
        let Some((number, pending)) = found else { return Ok(0) };
        if self.host.cancel(pending).await?.is_some() {
            return Ok(0);
        }
        let Some(Posted { receive, buffer, .. }) = self.posted.borrow_mut().remove(&number) else {
            return Ok(0);
        };
        self.give_back(buffer);
        let given_up = Completion {
            context,
            flags: done::RECV,
            error: libc::ECANCELED,
            tag: receive.tag,
            source: ANY,
            ..Completion::default()
        };
        self.ended.complete(given_up, None);
        Ok(0)
    }
}

/// FI_ETRUNC of libfabric.
const TRUNCATED: i32 = 265;
