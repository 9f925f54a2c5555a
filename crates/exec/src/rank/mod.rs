//! A process as the program of a host. The host's card executes the calls of the process.

mod looks;
mod receives;
mod stand_ins;
mod untagged;
mod window;

use crate::channels::Goroutines;
use crate::completions::Completions;
use crate::memory;
use crate::pages::{Quiet, Reply};
use crate::places::{DATA_BYTES, HAS_DATA, Places, UNTAGGED};
use crate::portals::{self, Interface, op};
use crate::protocol::{ANY, Access, Call, Completion, Count, Kind, Receive, Send, done, flag};
use crate::rma::Rma;
use crate::schedule::Log;
use crate::spent::{Looks, Part, Spent};
use crate::turns::{CompletionData, Next, Turns};
use nicety::{Buffer, Duration, Error, Host, PendingRecv, Received, Tasks, Time};
use nicety_kernel::Either;
use stand_ins::{StandIn, StandIns};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use untagged::Untagged;
use window::Window;

/// Number of cores that the library of a process may need at a time. If fewer are free, looks of the process may compete with the
/// library for a core.
const LIBRARY_CORES: usize = 4;

/// The counts of a process.
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
    pub(crate) rank: u32,
    pub(crate) places: Places,
    pub(crate) window: Window,
    poll: Duration,
    tasks: Tasks,
    stand_ins: StandIns,
    ended: Rc<Completions>,
    /// Messages that probes have claimed. The key is the context of the probe.
    claimed: RefCell<BTreeMap<u64, (ArrivedMessage, StandIn)>>,
    /// The last probe, if it failed and the process has only looked since then.
    peeks: RefCell<Option<Receive>>,
    /// Sends that have not ended, by their numbers.
    sending: RefCell<BTreeMap<u64, Send>>,
    /// Posted receives, by their numbers.
    posted: RefCell<BTreeMap<u64, Posted>>,
    untagged: Untagged,
    /// Receives that wait for a free match entry of the card.
    queued: RefCell<VecDeque<Receive>>,
    numbers: Cell<u64>,
    counts: RefCell<Counts>,
    portals: Interface,
    rma: Rma,
    goroutines: Rc<Goroutines>,
    /// Whether the process waits until the run ends.
    waits_for_end: Cell<bool>,
}

/// A posted receive.
struct Posted {
    receive: Receive,
    pending: PendingRecv,
    memory: Held,
}

/// Memory of a receive. It is given back when the message has been copied, or the receive is cancelled.
type Held = Rc<Cell<Option<StandIn>>>;

/// An arrived message, and the data that its sender added for the completion.
#[derive(Clone, Copy)]
struct ArrivedMessage {
    received: Received,
    with: Option<CompletionData>,
}

/// A failed probe. It has the probe's start, and the time until which no event was expected then. `period` is the time since the
/// start of the previous probe, and `calls` counts calls.
struct Probing {
    begun: Time,
    quiet_until: Time,
    period: Duration,
    calls: u64,
}

/// The state of a process that lasts from call to call.
#[derive(Default)]
struct Course {
    /// The start of the process's failed looks, and the start of its failed probes.
    polls_since: Option<Time>,
    peeks_since: Option<Time>,
    /// The last failed probe.
    probing: Option<Probing>,
    /// Receives that the process posted before all processes had started.
    early: Vec<Receive>,
    /// The process's own time since its last reply, as far as it was added to `owed_ps`. `owed_ps` is the time that the host
    /// must still compute.
    charged_ps: u64,
    owed_ps: u64,
    /// The same two numbers for the looks that the process has counted by itself.
    charged_looks: Looks,
    owed_looks: Looks,
    /// The quiet time and number of looks that the last reply gave the process.
    quiet: Quiet,
    /// The start of the process's wait for the end of all others, and the division of its time until then.
    ends: Option<(Time, Spent)>,
}

/// Returns the error of an unknown call, or of one that may not be posted.
fn written_over(call: Call) -> Error {
    Error::Program(format!(
        "the process made the invalid call {call:?}: it has overwritten memory that it shares with the \
         simulation"
    ))
}

/// Returns the error if several processes of a host use a resource that the card has only once.
fn shared(call: Call) -> Error {
    let what = if matches!(call, Call::Portals(_)) { "a Portals interface" } else { "channels" };
    Error::Input(format!(
        "{what}: only one process of a host can use this interface; run one process on each host, without \
         ranks_per_node, or use MPI or libfabric"
    ))
}

impl Program {
    /// Creates the program of the next rank, which runs on this host.
    pub(crate) fn new(
        host: &Host,
        (turns, places): (&Rc<Turns>, Places),
        poll: Duration,
        log: Option<Rc<Log>>,
    ) -> Rc<Program> {
        let rank = turns.add(host);
        let ended = Completions::new(rank, turns, log);
        let portals = Interface::new(host, turns, poll);
        Rc::new(Program {
            host: host.clone(),
            turns: turns.clone(),
            rank,
            places,
            window: Window::new(host, places),
            poll,
            tasks: Tasks::new(host),
            stand_ins: StandIns::new(host),
            claimed: RefCell::default(),
            peeks: RefCell::default(),
            sending: RefCell::default(),
            posted: RefCell::default(),
            untagged: Untagged::default(),
            queued: RefCell::default(),
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
            // The card has also matched each message of MPI.
            receives: counts.receives.max(moved.matched) + channels.receives,
            calls: counts.calls + channels.calls,
            ..counts
        }
    }

    /// Ends a process that waits for the end of the run. Returns an error if the card could not access memory of the process.
    pub(crate) fn over(&self) -> Result<(), Error> {
        if self.waits_for_end.take() {
            self.turns.reply(self.rank, &Reply { now_ps: self.host.now().ps(), ..Reply::default() });
        }
        self.portals.missed().map_or(Ok(()), Err)
    }

    /// Serves the process until it closes the network.
    pub(crate) async fn run(self: Rc<Self>) -> Result<(), Error> {
        self.host.match_in_library(self.places.pairs())?;
        let mut course = Course::default();
        let ended = self.clone().serve(&mut course).await;
        self.turns.ended(self.rank);
        self.turns.lap(self.rank, Part::Calls);
        let mut counts = self.counts.borrow_mut();
        (counts.finish, counts.spent) = course.ends.unwrap_or_else(|| self.now());
        ended
    }

    /// Returns the virtual time, and the division of the process's time.
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
                // The memory of the process must exist until no message can arrive.
                self.waits_for_end.set(true);
                return Ok(());
            }
            if let Call::Channels(op) = call {
                return self.goroutines.clone().serve(op).await;
            }
            (course.charged_ps, course.charged_looks) = (0, Looks::default());
            let now_ps = self.host.now().ps().saturating_add(course.owed_ps);
            self.ended.tell(call.is_look());
            self.turns.runs(self.rank, self.ended.is_woken());
            let quiet = self.quiet(course);
            self.turns.pages.set_under_way(self.rank, self.under_way());
            course.quiet = quiet;
            self.turns.reply(self.rank, &Reply { now_ps, result, completions: &completions, quiet });
            if call == Call::End {
                return Ok(());
            }
        }
    }

    /// Returns the numbers of operations that have not ended: first sends and accesses, then receives.
    fn under_way(&self) -> [u32; 2] {
        let sends = self.sending.borrow().len() + self.rma.pending();
        let receives = self.posted.borrow().len() + self.queued.borrow().len();
        [sends, receives].map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Records the looks that the process has counted by itself since its last reply.
    fn note_looks(&self, course: &mut Course) {
        let looks = self.turns.pages.looks(self.rank).at_most(course.quiet.looks);
        let more = looks.beyond(std::mem::replace(&mut course.charged_looks, looks));
        course.owed_looks.add(more);
        if more.all > 0 {
            course.polls_since.get_or_insert_with(|| self.host.now());
        }
        self.counts.borrow_mut().calls += u64::from(more.all);
    }

    /// Returns the time and the number of looks that the process may count by itself, since these looks find nothing.
    fn quiet(&self, course: &Course) -> Quiet {
        if self.ended.is_woken() || !self.turns.have_started() || course.owed_ps > 0 {
            return Quiet::default();
        }
        let until = self.host.quiet_until();
        let looks = if until == Time::MAX { self.turns.looks_left() } else { u64::MAX };
        Quiet { until_ps: until.ps(), looks: u32::try_from(looks).unwrap_or(u32::MAX) }
    }

    /// Executes a call. `spent_ps` is the time that the process has taken by itself since its last reply. Returns the result, and
    /// completions.
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
        let more = spent_ps.saturating_sub(std::mem::replace(&mut course.charged_ps, spent_ps));
        course.owed_ps = course.owed_ps.saturating_add(more);
        if !self.turns.have_started() {
            match call {
                Call::Receive(receive) => course.early.push(receive),
                Call::Back | Call::Posted => {}
                _ => self.turns.starts(self.rank, call.is_look()).await,
            }
            if !self.turns.have_started() {
                // The number of these looks depends on the real time of the start.
                self.counts.borrow_mut().calls -= u64::from(call.is_look());
                return Ok((0, Vec::new()));
            }
        }
        let counted = self.catch_up(call, course).await?;
        let done = self.perform(call, (course, counted)).await?;
        self.turns.lap(self.rank, Part::Calls);
        match self.ended.failure() {
            Some(error) => Err(error),
            None => Ok(done),
        }
    }

    /// Executes what is due before a call: early receives, and the time and looks of the process itself. Returns the number of
    /// looks that the process has counted while nothing was in flight.
    async fn catch_up(self: &Rc<Self>, call: Call, course: &mut Course) -> Result<u64, Error> {
        for receive in course.early.drain(..) {
            self.post_receive(receive).await?;
        }
        let Looks { all: looks, of_waits } = std::mem::take(&mut course.owed_looks);
        if looks > 0 {
            self.computes_for_looks(self.poll * u64::from(looks), call.is_look()).await;
            // A call that waits ends with a look that the simulator executes, so its looks are the last ones.
            self.turns.lap_before(self.rank, Part::Looks, self.poll * u64::from(of_waits));
            self.turns.lap(self.rank, Part::Waits);
        }
        let owed = std::mem::take(&mut course.owed_ps);
        if owed > 0 {
            self.ended.logged(|log| log.computes(self.rank, owed));
            self.computes_for_looks(Duration::from_ps(owed), call.is_look()).await;
            self.turns.lap(self.rank, Part::Computes);
        }
        if !call.is_look() {
            (course.polls_since, course.peeks_since, course.probing) = (None, None, None);
            self.peeks.take();
        }
        match call {
            Call::Peek(_) => self.turns.card_looks(self.rank),
            _ if call.is_look() => self.turns.looks(self.rank),
            _ => {}
        }
        Ok(if course.quiet.until_ps == Time::MAX.ps() { looks.into() } else { 0 })
    }

    /// Executes a call, after `catch_up`. The process has counted `counted` looks by itself before.
    async fn perform(
        self: &Rc<Self>,
        call: Call,
        (course, counted): (&mut Course, u64),
    ) -> Result<(i64, Vec<Completion>), Error> {
        let mut completions = Vec::new();
        let result = match call {
            Call::Send(send) => self.send(send)?,
            Call::Receive(receive) if receive.flags & flag::CLAIM != 0 => self.take_claimed(receive)?,
            Call::Receive(receive) => self.post_receive(receive).await?,
            Call::Poll { most, follows, deferred } => {
                let finds = || self.ended.is_found();
                if !self.deferred_looks(course, deferred, finds).await {
                    self.looks((course, counted), finds, follows).await;
                }
                completions = self.ended.take_found(most);
                0
            }
            Call::Wait { most, ps } => {
                self.wait(ps, || self.ended.is_woken()).await;
                self.turns.lap(self.rank, Part::Waits);
                completions = self.ended.take(most);
                0
            }
            Call::Count(count) => {
                self.count(count, (course, counted)).await;
                0
            }
            Call::Write(access) => self.rma.write(self.accesses(&access), access).await.map(|()| 0)?,
            Call::Read(access) => self.rma.read(self.accesses(&access), access).await.map(|()| 0)?,
            Call::Atomic(access, operation) => {
                self.rma.atomic(self.accesses(&access), access, operation).await.map(|()| 0)?
            }
            Call::Register(memory) => self.rma.register(self.turns.pages.process(self.rank), memory).await?,
            Call::Deregister { number } => self.rma.deregister(number).await?,
            Call::Peek(peek) => self.peek(peek, course).await?,
            Call::Cancel { context } => self.cancel(context).await?,
            Call::Sleep { ps } => {
                self.ended.logged(|log| log.computes(self.rank, ps));
                self.turns.sleeps(self.rank);
                self.host.pause(Duration::from_ps(ps)).await;
                self.turns.lap(self.rank, Part::Sleeps);
                0
            }
            Call::Portals(_) | Call::Channels(_) if self.places.are_shared() => return Err(shared(call)),
            Call::Portals(op::CT_AWAIT) => self.await_count().await?,
            Call::Portals(op) => self.portals.call(op).await?,
            // The first call of a process with goroutines. Goroutines account for their time themselves.
            Call::Channels(_) | Call::Back | Call::Posted | Call::End => 0,
            Call::Unknown(_) => return Err(written_over(call)),
        };
        Ok((result, completions))
    }

    /// Executes a look at counters, or waits for them.
    async fn count(&self, count: Count, looks: (&mut Course, u64)) {
        let Count { kinds, done, failed, ps, follows } = count;
        let sum = (kinds, done, failed);
        let has = || self.ended.has_counted(sum);
        let finds = || self.ended.has_counted_before(sum) || self.ended.is_found();
        match ps {
            0 => return self.looks(looks, finds, follows).await,
            // The wait may end early, because no event is left.
            ANY => {
                while !has() {
                    self.wait(ps, has).await;
                }
            }
            _ => self.wait(ps, has).await,
        }
        self.turns.lap(self.rank, Part::Waits);
    }

    /// Records the start of an access to registered memory. Returns the id of the process.
    fn accesses(&self, access: &Access) -> Option<u32> {
        self.ended.logged(Log::accesses);
        let mut counts = self.counts.borrow_mut();
        counts.sends += 1;
        counts.bytes += if access.flags & flag::PARTS == 0 { access.bytes } else { 0 };
        self.turns.pages.process(self.rank)
    }

    /// Waits until a count is reached, or the process has a completion.
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
            return self.turns.polls((self.rank, self.host.now()), || self.waiting(), finds).await;
        }
        let come = signal.wait_until(&finds);
        nicety_kernel::race(come, self.host.pause(Duration::from_ps(ps))).await;
    }

    /// Starts a task that runs beside the process. Its failure ends the process's program.
    pub(crate) fn start<F>(self: &Rc<Self>, task: impl FnOnce(Host) -> F)
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

    /// Returns a byte of host memory, for messages of the library itself.
    pub(crate) fn byte(&self) -> Result<Buffer, Error> {
        Ok(self.stand_ins.any(1)?.part)
    }

    /// Sends a byte to a host, as a message of the library itself.
    pub(crate) async fn send_byte(&self, host: &Host, to: u32, tag: u64) -> Result<(), Error> {
        let stand_in = self.stand_ins.any(1)?;
        host.send(&stand_in.part, to, tag).await?;
        self.stand_ins.give_back(stand_in);
        Ok(())
    }

    fn process(&self) -> Result<u32, Error> {
        let none = || Error::Program(format!("rank {} has no process", self.rank));
        self.turns.pages.process(self.rank).ok_or_else(none)
    }

    fn unreachable(&self, what: &str, place: (u64, u64), error: &std::io::Error) -> Error {
        self.turns.unreachable(self.rank, what, place, error)
    }

    fn send(self: &Rc<Self>, send: Send) -> Result<i64, Error> {
        let has_data = send.flags & flag::DATA != 0;
        // The data goes in front of the message's bytes. A card that has pages carries the data of a long message in a field of
        // its own.
        let head = if has_data && !self.stand_ins.has_pages(send.bytes) { DATA_BYTES } else { 0 };
        let mut bytes = if send.flags & flag::INLINE == 0 {
            memory::bytes(self.process()?, head as usize, send.address, send.bytes)
                .map_err(|error| self.unreachable(", to be sent,", (send.address, send.bytes), &error))?
        } else {
            let bytes = self.turns.pages.posted_bytes(self.rank, head as usize, send.bytes);
            bytes.ok_or_else(|| written_over(Call::Send(send)))?
        };
        bytes[..head as usize].copy_from_slice(&(send.data as u32).to_le_bytes()[..head as usize]);
        let stand_in = self.stand_ins.of_send(send.address, &bytes)?;
        let to = send.to as u32;
        let mut tag = self.places.between(self.rank, to, send.tag);
        tag |= if has_data { HAS_DATA } else { 0 };
        tag |= if send.flags & flag::UNTAGGED != 0 { UNTAGGED } else { 0 };
        if has_data {
            let with = CompletionData { data: send.data as u32, head, length: bytes.len() as u64 };
            self.turns.sent((self.rank, to, tag), with);
        }
        {
            let mut counts = self.counts.borrow_mut();
            counts.sends += 1;
            counts.bytes += send.bytes;
        }
        let op = self.ended.logged(|log| log.sends((self.rank, to), tag, bytes.len() as u64));
        let number = self.numbers.replace(self.numbers.get() + 1);
        self.sending.borrow_mut().insert(number, send);
        let own = self.clone();
        self.start(|host| async move {
            own.may_send(&host, to).await?;
            host.send(&stand_in.part, own.places.host(to), tag).await?;
            own.window.sent();
            own.sending.borrow_mut().remove(&number);
            own.stand_ins.give_back(stand_in);
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
}
