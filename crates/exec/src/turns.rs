//! Whose turn it is: the processes, or the simulation between them.
//!
//! A process runs while virtual time stands still, and one after another: the simulation goes on when it has made its next call.
//! A process that is *outside*, because it starts, ends, or waits for something that is not simulated, does not hold up the
//! others; it comes back at an instant at which nothing else is left to happen, so that runs of one seed are alike.

use crate::cpu::{Looking, Together};
use crate::ends::{stopped, written_over};
use crate::launch::Processes;
use crate::looks::{InVain, OF_WAITS};
use crate::pages::{Pages, Reply};
use crate::protocol::{Call, turn};
use crate::spent::{Part, Spent};
use nicety::{Error, Host, Time};
use nicety_kernel::{Signal, describe};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a bell is waited for before other things are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long all who are outside have to be in a wait before others go on: those who poll, and at the start those who would
/// communicate first.
const SETTLED: Duration = Duration::from_millis(50);
const SETTLED_FIRST: Duration = Duration::from_secs(1);
/// How long a process may be stopped.
pub(crate) const STOPPED: Duration = Duration::from_secs(5);
/// Looks at the end of a launcher, behind which processes are looked for that the program has left.
const LEFT_EVERY: u64 = 100;
/// How long processes have to take part.
const START: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs, or the simulation carries out its call.
    Taken,
    /// It is outside.
    Outside,
    /// It would communicate before others have started.
    Held,
    /// It looks at an empty queue before others have started.
    LooksEarly,
    /// It looks for something.
    Looks,
    /// Its card looks for a message.
    CardLooks,
    /// Its look was in vain, and others have to do something first.
    Parked,
    /// It waits until something comes.
    Polls,
    /// It has ended.
    Ended,
}

pub(crate) struct Rank {
    pub(crate) host: Host,
    spent: Cell<Spent>,
    pub(crate) state: Cell<State>,
    /// Something is there for it that it was not told of.
    pub(crate) woken: Cell<bool>,
    /// Its looks in vain, with nothing but sleeps between.
    pub(crate) vain: Cell<u64>,
    /// Something has changed for it.
    signal: Signal,
    /// Its poll has nothing to wait for any more.
    pub(crate) released: Cell<bool>,
    /// When the first of its looks was that were all in vain, where it polls.
    polls_since: Cell<Time>,
    pub(crate) clock_reads: Cell<u64>,
    /// When it was last seen whether it is stopped, and since when it is.
    stopped: Cell<(Option<Instant>, Option<Instant>)>,
    /// Since when it is known that its process has ended before it took part.
    ended_early: Cell<Option<Instant>>,
}

/// What was sent with a message for its receiver's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct With {
    pub(crate) data: u32,
    /// Bytes of that in front of the message's own, and of both.
    pub(crate) head: u64,
    pub(crate) length: u64,
}

/// What a process does next.
pub(crate) enum Next {
    /// It calls, and has spent so many picoseconds before.
    Call(Call, u64),
    /// It waits for something that is not simulated: at its end for that of all others.
    Outside { ends: bool },
}

pub(crate) struct Turns {
    pub(crate) pages: Pages,
    pub(crate) processes: Processes,
    ranks: RefCell<Vec<Rank>>,
    together: Together,
    looking: Looking,
    /// The process that has called last, and looks for its reply.
    called: Cell<Option<u32>>,
    /// The data of messages with some that no receive has brought yet, by sender, receiver and tag, in their order: a card that tells of an
    /// early message tells of its header, and this is in front of its bytes.
    data: RefCell<BTreeMap<(u32, u32, u64), VecDeque<With>>>,
    /// Looks in vain, and how many are borne: a program that makes progress on its own looks at its queue in between, too.
    pub(crate) in_vain: Cell<InVain>,
    pub(crate) patience: u64,
    /// Whether all have taken part.
    is_complete: Cell<bool>,
    /// Since when others are waited for that have not.
    started: Cell<Option<Instant>>,
    /// The first process that has died, if one was found dead.
    pub(crate) died: Cell<Option<u32>>,
    interrupt: Option<Arc<AtomicBool>>,
}

impl Turns {
    pub(crate) fn new(
        pages: Pages,
        processes: Processes,
        patience: u64,
        interrupt: Option<Arc<AtomicBool>>,
    ) -> Turns {
        let together = Together::new(pages.ranks(), !pages.spins());
        let looking = Looking::new(pages.spins());
        Turns {
            pages,
            together,
            looking,
            processes,
            ranks: RefCell::default(),
            called: Cell::new(None),
            data: RefCell::default(),
            in_vain: Cell::default(),
            patience,
            is_complete: Cell::new(false),
            started: Cell::new(None),
            died: Cell::new(None),
            interrupt,
        }
    }

    /// Adds the next rank, and returns its number.
    pub(crate) fn add(&self, host: &Host) -> u32 {
        let mut ranks = self.ranks.borrow_mut();
        ranks.push(Rank {
            host: host.clone(),
            spent: Cell::default(),
            state: Cell::new(State::Outside),
            woken: Cell::new(false),
            vain: Cell::new(0),
            signal: host.signal(),
            released: Cell::new(false),
            polls_since: Cell::default(),
            clock_reads: Cell::new(0),
            stopped: Cell::default(),
            ended_early: Cell::default(),
        });
        ranks.len() as u32 - 1
    }

    pub(crate) fn with<T>(&self, rank: u32, look: impl FnOnce(&Rank) -> T) -> T {
        look(&self.ranks.borrow()[rank as usize])
    }

    pub(crate) fn now(&self, rank: u32) -> Time {
        self.with(rank, |own| own.host.now())
    }

    /// What a process has done since the last time that this was told.
    pub(crate) fn lap(&self, rank: u32, part: Part) {
        self.with(rank, |own| {
            let mut spent = own.spent.get();
            spent.lap(part, own.host.now());
            own.spent.set(spent);
        });
    }

    /// What a process has spent its time with.
    pub(crate) fn spent(&self, rank: u32) -> Spent {
        self.with(rank, |own| own.spent.get())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// The next step of a process whose turn it is; virtual time stands still.
    pub(crate) fn next(&self, rank: u32) -> Result<Next, Error> {
        loop {
            let rung = self.pages.rung();
            if self.pages.is_damaged(rank) {
                return Err(written_over(rank));
            }
            match self.pages.turn(rank) {
                // Where turns are short the kernel would look at it very late.
                turn::CALL if self.is_interrupted() => return Err(Error::Interrupted),
                turn::CALL => {
                    self.called.set(self.pages.spins().then_some(rank));
                    let (call, spent) = self.pages.call(rank);
                    if !call.is_plausible(self.pages.ranks()) {
                        return Err(written_over(rank));
                    }
                    self.calls(rank, &call);
                    return Ok(Next::Call(call, spent));
                }
                turn::OUTSIDE => return Ok(Next::Outside { ends: false }),
                turn::ENDS => return Ok(Next::Outside { ends: true }),
                _ => {
                    let since = Instant::now();
                    let slept = self.pages.wait(rung, LOOK_EVERY);
                    if let Some(looks) = self.looking.waited(slept) {
                        self.pages.set_spins(looks);
                        self.together.want(!looks);
                    }
                    if since.elapsed() >= LOOK_EVERY {
                        self.look_after(rank)?;
                    }
                }
            }
        }
    }

    /// The next of the calls that a process has posted, and the time that it had spent on its own before, since its last reply.
    pub(crate) fn post(&self, rank: u32) -> Result<Option<(Call, u64)>, Error> {
        let ranks = self.pages.ranks();
        let post = self.pages.post(rank)?;
        if let Some((call, _)) = &post {
            if !call.is_plausible(ranks) {
                return Err(written_over(rank));
            }
            self.calls(rank, call);
        }
        Ok(post)
    }

    /// A process does something: a look changes nothing, and a sleep neither.
    fn calls(&self, rank: u32, call: &Call) {
        if !call.is_look() && !matches!(call, Call::Sleep { .. }) {
            self.stirs();
            self.with(rank, |own| own.vain.set(0));
        }
    }

    /// A process has run for long: whether it still does.
    fn look_after(&self, rank: u32) -> Result<(), Error> {
        if self.is_interrupted() {
            return Err(Error::Interrupted);
        }
        if self.processes.is_gone(rank, &self.pages) {
            return Err(self.died(rank));
        }
        if self.is_stopped(rank) {
            return Err(stopped(rank));
        }
        if let Some(pid) = self.pages.process(rank) {
            self.together.release(rank, pid);
        }
        Ok(())
    }

    /// Whether a process has been stopped for long.
    fn is_stopped(&self, rank: u32) -> bool {
        self.with(rank, |own| {
            let (seen, mut since) = own.stopped.get();
            if seen.is_none_or(|seen| seen.elapsed() >= SETTLED_FIRST / 2) {
                let is_now = self.processes.is_stopped(rank, &self.pages);
                since = is_now.then(|| since.unwrap_or_else(Instant::now));
                own.stopped.set((Some(Instant::now()), since));
            }
            since.is_some_and(|since| since.elapsed() >= STOPPED)
        })
    }

    /// Lets a process run on.
    pub(crate) fn reply(&self, rank: u32, reply: &Reply<'_>) {
        // Where turns are looked for, there are CPUs for the simulator and one process.
        if let Some(other) = self.called.take().filter(|&other| other != rank) {
            self.pages.send_to_sleep(other);
        }
        if let (true, Some(pid)) = (self.is_complete.get(), self.pages.process(rank)) {
            self.together.bring(rank, pid);
        }
        self.pages.reply(rank, reply);
    }

    /// A process that is outside comes back.
    pub(crate) async fn back(&self, rank: u32) -> Result<(), Error> {
        let what = match self.pages.turn(rank) {
            turn::ENDS => "the end of the others, in MPI_Finalize",
            _ => "something that is not simulated",
        };
        let (signal, what) = self.enter(rank, State::Outside, what);
        describe(|| what.to_owned(), signal.wait_until(|| self.has_come(rank))).await;
        self.lap(rank, Part::Outside);
        self.with(rank, |own| own.state.set(State::Taken));
        if self.is_interrupted() {
            return Err(Error::Interrupted);
        }
        if self.pages.is_damaged(rank) {
            return Err(written_over(rank));
        }
        match self.pages.turn(rank) {
            turn::CALL => Ok(()),
            _ if self.is_stopped(rank) => Err(stopped(rank)),
            _ => Err(self.died(rank)),
        }
    }

    fn has_come(&self, rank: u32) -> bool {
        self.pages.turn(rank) == turn::CALL
            || self.pages.is_damaged(rank)
            || self.processes.is_gone(rank, &self.pages)
            || self.is_interrupted()
            || self.is_stopped(rank)
            || self.never_comes(rank)
    }

    /// Whether no process of a rank takes part any more. Where none does, the program may be one without the network, of which that
    /// is told when all have ended; but others may wait for this one before they take part.
    fn never_comes(&self, rank: u32) -> bool {
        if !self.processes.has_ended_early(rank, &self.pages) {
            return false;
        }
        let since = self.with(rank, |own| {
            let since = own.ended_early.get().unwrap_or_else(Instant::now);
            own.ended_early.set(Some(since));
            since
        });
        let is_certain = self.pages.has_processes() || !self.has_exited(rank);
        (is_certain || since.elapsed() >= SETTLED_FIRST) && !self.processes.has_others(rank, &self.pages)
    }

    /// Whether all have started; no time passes before.
    pub(crate) fn have_started(&self) -> bool {
        self.is_complete.get()
    }

    /// A process communicates: at the start when all others do, too, or wait for something else. A look finds nothing before that; it may end
    /// earlier, as it may be one of a process that waits for another in a way of its own before that one starts.
    pub(crate) async fn starts(&self, rank: u32, is_look: bool) {
        let state = if is_look { State::LooksEarly } else { State::Held };
        self.with(rank, |own| own.released.set(false));
        let (signal, _) = self.enter(rank, state, "");
        let over = || self.is_complete.get() || (is_look && self.with(rank, |own| own.released.get()));
        describe(|| "the start of the others".to_owned(), signal.wait_until(over)).await;
        self.lap(rank, Part::Outside);
        self.with(rank, |own| own.state.set(State::Taken));
    }

    /// A message with data is sent.
    pub(crate) fn sent(&self, path: (u32, u32, u64), with: With) {
        self.data.borrow_mut().entry(path).or_default().push_back(with);
    }

    /// What was sent with the oldest message of this length that is not received.
    pub(crate) fn first_with(&self, path: (u32, u32, u64), length: u64) -> Option<With> {
        self.data.borrow().get(&path)?.iter().find(|with| with.length == length).copied()
    }

    /// That message is received. A shorter one of the same path may be there before a longer one that was sent first.
    pub(crate) fn received(&self, path: (u32, u32, u64), length: u64) -> Option<With> {
        let mut all = self.data.borrow_mut();
        let sent = all.get_mut(&path)?;
        let at = sent.iter().position(|with| with.length == length)?;
        let with = sent.remove(at);
        if sent.is_empty() {
            all.remove(&path);
        }
        with
    }

    /// A process waits for something that may come: returns when it has, or when nothing else is left to happen.
    pub(crate) async fn polls(
        &self,
        (rank, since): (u32, Time),
        what: impl Fn() -> String,
        came: impl Fn() -> bool,
    ) {
        let signal = self.begin_to_poll(rank, since, State::Polls);
        let over = || came() || self.is_released(rank);
        describe(what, signal.wait_until(over)).await;
        self.lap(rank, Part::Waits);
        self.with(rank, |own| own.state.set(State::Taken));
    }

    /// Whether a wait of a process was ended because nothing else was left to happen.
    pub(crate) fn is_released(&self, rank: u32) -> bool {
        self.with(rank, |own| own.released.get())
    }

    pub(crate) fn begin_to_poll(&self, rank: u32, since: Time, state: State) -> Signal {
        self.with(rank, |own| {
            own.released.set(false);
            own.polls_since.set(since);
        });
        self.enter(rank, state, "").0
    }

    /// Since when a process has polled, if it does.
    pub(crate) fn polls_since(&self, rank: u32) -> Option<Time> {
        let polls = |own: &Rank| matches!(own.state.get(), State::Polls | State::Parked);
        self.with(rank, |own| polls(own).then(|| own.polls_since.get()))
    }

    /// Something has come for a process.
    pub(crate) fn notify(&self, rank: u32) {
        self.stirs();
        let signal = self.with(rank, |own| {
            own.woken.set(true);
            own.signal.clone()
        });
        signal.notify_all();
    }

    pub(crate) fn signal(&self, rank: u32) -> Signal {
        self.with(rank, |own| own.signal.clone())
    }

    pub(crate) fn ended(&self, rank: u32) {
        self.with(rank, |own| own.state.set(State::Ended));
        self.pages.ended();
    }

    /// How the program ended: the status of what was started. Waits for it.
    pub(crate) fn status(&self) -> Result<i32, Error> {
        let mut looks = 0_u64;
        loop {
            if let Some(status) = self.processes.ended() {
                return Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1));
            }
            if self.is_interrupted() {
                return Err(Error::Interrupted);
            }
            looks += 1;
            if looks.is_multiple_of(LEFT_EVERY) {
                self.processes.end_left(&self.pages);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn enter(&self, rank: u32, state: State, what: &'static str) -> (Signal, &'static str) {
        self.with(rank, |own| {
            own.state.set(state);
            (own.signal.clone(), what)
        })
    }

    pub(crate) fn in_state(&self, state: State) -> Vec<u32> {
        let ranks = self.ranks.borrow();
        (0..).zip(&*ranks).filter(|(_, own)| own.state.get() == state).map(|(rank, _)| rank).collect()
    }

    /// Nothing is left to happen: waits for processes that are outside, or lets those go on that poll. Whether there is anything to
    /// go on with.
    pub(crate) fn idle(&self) -> bool {
        let (mut since, entered) = (Instant::now(), Instant::now());
        let began = self.started.get().filter(|_| !self.is_complete.get()).unwrap_or(entered);
        self.started.set(Some(began));
        loop {
            let rung = self.pages.rung();
            let (outside, early) = (self.in_state(State::Outside), self.in_state(State::LooksEarly));
            let held = [self.in_state(State::Held), early.clone()].concat();
            if self.died.get().is_some() {
                // Those who are outside may wait for it.
                return false;
            }
            if outside.is_empty() {
                return self.complete(&held) || self.release();
            }
            let come: Vec<u32> = outside.iter().copied().filter(|&rank| self.has_come(rank)).collect();
            let is_running = |rank: &u32| {
                !matches!(self.pages.turn(*rank), turn::OUTSIDE | turn::ENDS) && !self.has_come(*rank)
            };
            // They do not come back before those who poll have ended.
            let all_end = outside.iter().all(|&rank| self.pages.turn(rank) == turn::ENDS);
            let is_first = !self.is_complete.get();
            let quiet = if is_first { SETTLED_FIRST } else { SETTLED };
            let settled = !outside.iter().any(is_running) && (all_end || since.elapsed() >= quiet);
            let launched = self.processes.ended().is_none();
            let late = settled || !launched || began.elapsed() >= START;
            // Who has come first waits for the others, so that runs are alike.
            let all_have = come.len() == outside.len() || self.pages.have_all_processes();
            let has_lost = outside.iter().any(|&rank| self.never_comes(rank));
            if self.is_interrupted() || (!come.is_empty() && (late || all_have || has_lost)) {
                let back = if self.is_interrupted() { outside } else { come };
                back.into_iter().for_each(|rank| self.signal(rank).notify_all());
                self.met(true);
                self.let_go(self.in_state(State::Parked));
                return true;
            }
            if come.is_empty() && late {
                self.met(false);
                if self.complete(&held) || self.release() {
                    return true;
                }
                if settled && all_end && !self.polling().is_empty() {
                    return false;
                }
            }
            if !launched && come.is_empty() {
                return false;
            }
            // Looks find nothing yet, whoever comes first.
            let looks = come.into_iter().filter(|&rank| is_first && self.pages.call(rank).0.is_look());
            let early = [early, looks.collect()].concat();
            if !early.is_empty() && entered.elapsed() >= SETTLED {
                self.let_go(early);
                return true;
            }
            self.pages.wait(rung, LOOK_EVERY);
            if self.pages.rung() != rung {
                since = Instant::now();
            }
        }
    }

    /// All have started, or do not: those who wait for that go on.
    fn complete(&self, held: &[u32]) -> bool {
        self.is_complete.set(true);
        held.iter().for_each(|&rank| self.signal(rank).notify_all());
        !held.is_empty()
    }

    /// Lets those go on who poll in vain, unless nothing else has happened for long.
    fn release(&self) -> bool {
        let polling = self.polling();
        let mut clocks = false;
        for &rank in &polling {
            let reads = self.pages.clock_reads(rank);
            self.with(rank, |own| clocks |= own.clock_reads.replace(reads) != reads);
        }
        if clocks {
            self.has_time();
        }
        // Of calls that wait it is known what they do next.
        let weight = if self.in_state(State::Parked).is_empty() { OF_WAITS } else { 1 };
        let goes_on = !polling.is_empty() && self.is_patient(weight * polling.len() as u64);
        if goes_on {
            self.let_go(polling);
        }
        goes_on
    }

    /// Those who wait for something that may come.
    fn polling(&self) -> Vec<u32> {
        [State::Polls, State::Parked].into_iter().flat_map(|state| self.in_state(state)).collect()
    }

    fn let_go(&self, ranks: Vec<u32>) {
        for rank in ranks {
            self.with(rank, |own| own.released.set(true));
            self.signal(rank).notify_all();
        }
    }
}
