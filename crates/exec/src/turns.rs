//! The order of turns. At any time, either one process runs or the simulation does.
//!
//! Virtual time stands still while a process runs. Processes run one after another. When the running process makes its next call,
//! the simulation continues. A process is *outside* if it starts, ends, or waits for something that is not simulated. It does not
//! delay the others. It comes back at a virtual time at which no events are left, so runs of one seed are equal.

use crate::cpu::{Looking, SharedCpu};
use crate::launch::Processes;
use crate::pages::{Pages, Reply, Waited};
use crate::protocol::{Call, turn};
use crate::spent::{Part, Spent};
use crate::states::{FailedLooks, OF_WAITS, State, States};
use nicety::{Error, Host, Time};
use nicety_kernel::{Signal, describe};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Real time of a wait for the bell between two checks of other conditions.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Real time for which all outside processes must have waited before the others continue. `SETTLED` applies to processes that
/// poll. `SETTLED_FIRST` applies at the start, to processes that want to communicate first.
const SETTLED: Duration = Duration::from_millis(50);
const SETTLED_FIRST: Duration = Duration::from_secs(1);
/// Real time for which a process may be stopped.
pub(crate) const STOPPED: Duration = Duration::from_secs(5);
/// Number of checks for the end of a launcher between two searches for leftover processes.
const LEFT_EVERY: u64 = 100;
/// Real time in which all processes must take part.
const START: Duration = Duration::from_secs(120);

pub(crate) struct Rank {
    pub(crate) host: Host,
    spent: Cell<Spent>,
    /// The failed looks of the process, with only sleeps between them.
    pub(crate) vain: Cell<u64>,
    /// Notified when the process has news.
    signal: Signal,
    /// Whether the process's wait was ended because no event is left.
    pub(crate) released: Cell<bool>,
    /// The virtual time of the first failed look, while the process polls.
    polls_since: Cell<Time>,
    pub(crate) clock_reads: Cell<u64>,
    /// The real time of the last check whether the process is stopped, and the real time since which it is.
    stopped: Cell<(Option<Instant>, Option<Instant>)>,
    /// The real time since which the process is known to have ended before it took part.
    ended_early: Cell<Option<Instant>>,
}

/// Data that a sender adds to a message for the receiver's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletionData {
    pub(crate) data: u32,
    /// Bytes of the data that precede the message's own bytes. `length` is the sum of both.
    pub(crate) head: u64,
    pub(crate) length: u64,
}

/// The next step of a process.
pub(crate) enum Next {
    /// A call, and the picoseconds that the process has taken by itself before it.
    Call(Call, u64),
    /// The process is outside. `ends` is whether it waits for the end of all others.
    Outside { ends: bool },
}

pub(crate) struct Turns {
    pub(crate) pages: Pages,
    pub(crate) processes: Processes,
    ranks: RefCell<Vec<Rank>>,
    pub(crate) states: States,
    shared_cpu: SharedCpu,
    looking: Looking,
    /// The data of messages that no receive has copied, in order, by sender, receiver and tag. It is kept here because a card
    /// reports an unexpected message by its header, and the data precedes the message's bytes.
    data: RefCell<BTreeMap<(u32, u32, u64), VecDeque<CompletionData>>>,
    /// Counts of failed looks. `patience` is their limit, which is above 0 because a program that makes progress also looks at
    /// its queue from time to time.
    pub(crate) failed_looks: Cell<FailedLooks>,
    pub(crate) patience: u64,
    /// Whether all processes have started.
    is_complete: Cell<bool>,
    /// The real time at which the wait for all processes to start began.
    started: Cell<Option<Instant>>,
    /// The first process that was found dead, if any.
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
        let shared_cpu = SharedCpu::new(pages.ranks(), !pages.spins());
        let looking = Looking::new(pages.spins());
        Turns {
            pages,
            shared_cpu,
            looking,
            processes,
            ranks: RefCell::default(),
            states: States::default(),
            data: RefCell::default(),
            failed_looks: Cell::default(),
            patience,
            is_complete: Cell::new(false),
            started: Cell::new(None),
            died: Cell::new(None),
            interrupt,
        }
    }

    /// Adds the next rank on this host, and returns its number.
    pub(crate) fn add(&self, host: &Host) -> u32 {
        self.states.add();
        let mut ranks = self.ranks.borrow_mut();
        ranks.push(Rank {
            host: host.clone(),
            spent: Cell::default(),
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

    /// Adds the time of a process since the end of its last lap to a part.
    pub(crate) fn lap(&self, rank: u32, part: Part) {
        self.lap_before(rank, part, nicety::Duration::ZERO);
    }

    /// Adds the time of a process since the end of its last lap to a part, except the last `rest` of this time.
    pub(crate) fn lap_before(&self, rank: u32, part: Part, rest: nicety::Duration) {
        self.with(rank, |own| {
            let mut spent = own.spent.get();
            spent.lap(part, rest, own.host.now());
            own.spent.set(spent);
        });
    }

    /// Returns the division of a process's time.
    pub(crate) fn spent(&self, rank: u32) -> Spent {
        self.with(rank, |own| own.spent.get())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Waits for the next step of a process that has the turn. Virtual time stands still.
    pub(crate) fn next(&self, rank: u32) -> Result<Next, Error> {
        loop {
            let rung = self.pages.rung();
            if self.pages.is_damaged(rank) {
                return Err(written_over(rank));
            }
            match self.pages.turn(rank) {
                // If turns are short, the kernel checks for an interrupt very late.
                turn::CALL if self.is_interrupted() => return Err(Error::Interrupted),
                turn::CALL => {
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
                    let waited = self.pages.wait(rung, LOOK_EVERY);
                    if let Some(looks) = self.looking.waited(waited != Waited::Spun) {
                        self.pages.set_spins(looks);
                        self.shared_cpu.want(!looks);
                    }
                    if waited == Waited::TimedOut {
                        self.look_after(rank)?;
                    }
                }
            }
        }
    }

    /// Returns the next posted call of a process, and the time that the process took by itself between its last reply and this
    /// call.
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

    /// Records a call of a process. A call that is neither a look nor a sleep restarts the counts of failed looks.
    fn calls(&self, rank: u32, call: &Call) {
        if !call.is_look() && !matches!(call, Call::Sleep { .. }) {
            self.stirs();
            self.with(rank, |own| own.vain.set(0));
        }
    }

    /// Checks a process that has run for long: for an interrupt, its end or a stop. Lets it run on any CPU.
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
            self.shared_cpu.release(rank, pid);
        }
        Ok(())
    }

    /// Returns whether a process has been stopped for longer than allowed.
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

    /// Writes the reply to a process, and lets it run.
    pub(crate) fn reply(&self, rank: u32, reply: &Reply<'_>) {
        if let (true, Some(pid)) = (self.is_complete.get(), self.pages.process(rank)) {
            self.shared_cpu.bring(rank, pid);
        }
        self.pages.reply(rank, reply);
    }

    /// Waits until an outside process comes back.
    pub(crate) async fn back(&self, rank: u32) -> Result<(), Error> {
        let what = match self.pages.turn(rank) {
            turn::ENDS => "the end of the other processes, in MPI_Finalize",
            _ => "an event outside the simulation",
        };
        let (signal, what) = self.enter(rank, State::Outside, what);
        describe(|| what.to_owned(), signal.wait_until(|| self.has_come(rank))).await;
        self.lap(rank, Part::Outside);
        self.states.set(rank, State::Taken);
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

    /// Returns whether no process of a rank will take part any more. If no rank has a process that takes part, the program may
    /// not use the network. That is reported after all processes have ended, unless others wait for this process.
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

    /// Returns whether all processes have started. Virtual time stands still until then.
    pub(crate) fn have_started(&self) -> bool {
        self.is_complete.get()
    }

    /// Starts the communication of a process, when all others also communicate or wait outside. Until then, a look finds nothing.
    /// A look may return earlier, since its process may wait outside the simulation for the start of another process.
    pub(crate) async fn starts(&self, rank: u32, is_look: bool) {
        let state = if is_look { State::LooksEarly } else { State::Held };
        self.with(rank, |own| own.released.set(false));
        let (signal, _) = self.enter(rank, state, "");
        let over = || self.is_complete.get() || (is_look && self.with(rank, |own| own.released.get()));
        describe(|| "the start of the other processes".to_owned(), signal.wait_until(over)).await;
        self.lap(rank, Part::Outside);
        self.states.set(rank, State::Taken);
    }

    /// Records the data of a message.
    pub(crate) fn sent(&self, path: (u32, u32, u64), with: CompletionData) {
        self.data.borrow_mut().entry(path).or_default().push_back(with);
    }

    /// Returns the data of the oldest message of this length that is not received.
    pub(crate) fn first_with(&self, path: (u32, u32, u64), length: u64) -> Option<CompletionData> {
        self.data.borrow().get(&path)?.iter().find(|with| with.length == length).copied()
    }

    /// Removes and returns the data of a received message. A short message may arrive before a longer one that was sent first, so
    /// the length must match.
    pub(crate) fn received(&self, path: (u32, u32, u64), length: u64) -> Option<CompletionData> {
        let mut all = self.data.borrow_mut();
        let sent = all.get_mut(&path)?;
        let at = sent.iter().position(|with| with.length == length)?;
        let with = sent.remove(at);
        if sent.is_empty() {
            all.remove(&path);
        }
        with
    }

    /// Waits until something has arrived, or no event is left.
    pub(crate) async fn polls(
        &self,
        (rank, since): (u32, Time),
        what: impl Fn() -> String,
        came: impl Fn() -> bool,
    ) {
        let signal = self.begin_to_poll(rank, since, State::Polls);
        let over = || came() || self.is_released(rank);
        describe(what, signal.wait_until(over)).await;
        self.states.set(rank, State::Taken);
    }

    /// Returns whether the wait of a process ended because no event was left.
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

    /// Returns the virtual time since which a process polls; `None` if it does not poll.
    pub(crate) fn polls_since(&self, rank: u32) -> Option<Time> {
        let polls = matches!(self.states.of(rank), State::Polls | State::Parked);
        polls.then(|| self.with(rank, |own| own.polls_since.get()))
    }

    /// Notifies a process that it has news.
    pub(crate) fn notify(&self, rank: u32) {
        self.stirs();
        self.states.set_woken(rank, true);
        self.signal(rank).notify_all();
    }

    pub(crate) fn signal(&self, rank: u32) -> Signal {
        self.with(rank, |own| own.signal.clone())
    }

    pub(crate) fn ended(&self, rank: u32) {
        self.states.set(rank, State::Ended);
        self.pages.ended();
    }

    /// Waits for the end of the program, and returns the exit status of the process that was started.
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
        self.states.set(rank, state);
        (self.signal(rank), what)
    }

    /// Called when no event is left. Waits for outside processes, or releases processes that poll. Returns whether the simulation
    /// can continue.
    pub(crate) fn idle(&self) -> bool {
        let (mut since, entered) = (Instant::now(), Instant::now());
        let began = self.started.get().filter(|_| !self.is_complete.get()).unwrap_or(entered);
        self.started.set(Some(began));
        loop {
            let rung = self.pages.rung();
            let (outside, early) = (self.states.all(State::Outside), self.states.all(State::LooksEarly));
            let held = [self.states.all(State::Held), early.clone()].concat();
            if self.died.get().is_some() {
                // Outside processes may wait for the dead process.
                return false;
            }
            if outside.is_empty() {
                return self.complete(&held) || self.release();
            }
            let come: Vec<u32> = outside.iter().copied().filter(|&rank| self.has_come(rank)).collect();
            let is_running = |rank: &u32| {
                !matches!(self.pages.turn(*rank), turn::OUTSIDE | turn::ENDS) && !self.has_come(*rank)
            };
            // If all outside processes end, they come back only after the processes that poll have ended.
            let all_end = outside.iter().all(|&rank| self.pages.turn(rank) == turn::ENDS);
            let is_first = !self.is_complete.get();
            let quiet = if is_first { SETTLED_FIRST } else { SETTLED };
            let settled = !outside.iter().any(is_running) && (all_end || since.elapsed() >= quiet);
            let launched = self.processes.ended().is_none();
            let late = settled || !launched || began.elapsed() >= START;
            // Wait until all processes are back; otherwise the order of returns changes the result.
            let all_have = come.len() == outside.len() || self.pages.have_all_processes();
            let has_lost = outside.iter().any(|&rank| self.never_comes(rank));
            if self.is_interrupted() || (!come.is_empty() && (late || all_have || has_lost)) {
                let back = if self.is_interrupted() { outside } else { come };
                back.into_iter().for_each(|rank| self.signal(rank).notify_all());
                self.met(true);
                self.let_go(self.states.all(State::Parked));
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
            // At the start, looks of processes that have come back find nothing, in any order of arrival.
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

    /// Ends the wait for the start of all processes, and releases the processes that wait for it.
    fn complete(&self, held: &[u32]) -> bool {
        self.is_complete.set(true);
        self.pages.begin();
        held.iter().for_each(|&rank| self.signal(rank).notify_all());
        !held.is_empty()
    }

    /// Releases processes that poll, so that they look again. Does nothing if they have looked for long without another event.
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
        // The next steps of waiting calls are known, so their looks count more.
        let weight = if self.states.number(State::Parked) == 0 { OF_WAITS } else { 1 };
        let goes_on = !polling.is_empty() && self.is_patient(weight * polling.len() as u64);
        if goes_on {
            self.let_go(polling);
        }
        goes_on
    }

    /// Returns the processes that wait until something arrives.
    fn polling(&self) -> Vec<u32> {
        [State::Polls, State::Parked].into_iter().flat_map(|state| self.states.all(state)).collect()
    }

    fn let_go(&self, ranks: Vec<u32>) {
        for rank in ranks {
            self.with(rank, |own| own.released.set(true));
            self.signal(rank).notify_all();
        }
    }
}

/// Returns the error if a process has overwritten memory that it shares with the simulator.
pub(crate) fn written_over(rank: u32) -> Error {
    Error::Program(format!(
        "the process of rank {rank} has overwritten memory that it shares with the simulation: it stores \
         through a stray pointer, or beyond the end of an array; AddressSanitizer may say where (cc -g \
         -fsanitize=address)"
    ))
}

/// Returns the error if a process has been stopped for too long.
fn stopped(rank: u32) -> Error {
    Error::Program(format!(
        "the process of rank {rank} has been stopped for {} s, by SIGSTOP or another signal, and the other \
         processes wait for it; continue it within that time (kill -CONT)",
        STOPPED.as_secs()
    ))
}
