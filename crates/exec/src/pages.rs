//! The memory pages that processes and the simulator share.

use crate::futex;
use crate::launcher::Launcher;
use crate::offload;
use crate::protocol::{
    ANY, ARGS, BELL, Call, Completion, Counts, Header, MAGIC, MOST_COMPLETIONS, PAGE, POSTS, Post, REASON,
    SLOT_BYTES, SLOTS, Slot, VERSION, WORDS, end, mpi, turn,
};
use crate::spent::Looks;
use nicety::Error;
use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Parameters of a run that processes need: costs in virtual time, tags, and the launcher.
pub(crate) struct Timing {
    /// The factor from measured CPU time to virtual time; `None` if CPU time costs nothing.
    pub(crate) measured: Option<f64>,
    pub(crate) clock_cost_ps: u64,
    /// The cost of a look at an empty queue, in picoseconds.
    pub(crate) look_cost_ps: u64,
    /// The number of tag bits that the program may use.
    pub(crate) tag_bits: u32,
    /// The launcher of the processes.
    pub(crate) launcher: Launcher,
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process called MPI_Abort with this code.
    Abort(i32),
    /// The process exited with this status.
    Exit(i32),
    /// MPI ended the process after an error.
    Error,
}

/// The simulator's reply to a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reply<'r> {
    pub(crate) now_ps: u64,
    pub(crate) result: i64,
    pub(crate) completions: &'r [Completion],
    pub(crate) quiet: Quiet,
}

/// The end of a wait for a process to ring the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The bell rang before the waiter fell asleep.
    Spun,
    Slept,
    TimedOut,
}

/// The time before which nothing can arrive for a process. Until then, the process may count `looks` looks by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quiet {
    pub(crate) until_ps: u64,
    pub(crate) looks: u32,
}

/// The operations on registered memory that the hosts' card can execute for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Bits of the constants in [`card`](crate::protocol::card).
    pub(crate) card: u32,
    /// Maximum bytes of an atomic operation. `fetch_bytes` is the maximum of an atomic operation with a result.
    pub(crate) atomic_bytes: u32,
    pub(crate) fetch_bytes: u32,
}

/// The date and time at the start of every run: 2026-01-01. It is constant, so that runs are equal.
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;
/// Number of spins at a turn before the waiter sleeps, if it has a CPU of its own. They take some microseconds.
const SPINS: u32 = 4000;

/// Returns the length of the mapping in bytes.
const fn size(ranks: u32) -> usize {
    SLOTS + SLOT_BYTES * ranks as usize
}

/// The simulator's copy of a rank's state. It shows whether the process has overwritten its pages.
#[derive(Default)]
struct Known {
    /// The id of the process that takes part in the run, once it does.
    pid: Cell<u32>,
    now_ps: Cell<u64>,
    taken: Cell<u32>,
    /// Names of shared memory that the process has created. `names_version` is their version.
    shared: RefCell<Vec<CString>>,
    names: Cell<u32>,
}

/// The shared mapping. Its file has no name in a file system, so it ends with the last process that maps it.
pub(crate) struct Pages {
    file: File,
    start: NonNull<u8>,
    ranks: u32,
    spins: Cell<u32>,
    known: Vec<Known>,
    /// The first rank that was found to have overwritten its pages.
    damaged: Cell<Option<u32>>,
}

fn failed(what: &str) -> Error {
    let error = io::Error::last_os_error();
    Error::Program(format!("memory to share with processes cannot be {what}: {error}"))
}

impl Pages {
    pub(crate) fn new(ranks: u32, timing: &Timing, abilities: Abilities) -> Result<Pages, Error> {
        let bytes = size(ranks);
        // SAFETY: the name ends with a zero byte.
        let file = unsafe { libc::memfd_create(c"nicety".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(failed("made"));
        }
        // SAFETY: the descriptor is new, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len(bytes as u64).map_err(|error| Error::Program(format!("shared memory: {error}")))?;
        // SAFETY: the kernel chooses the place of the mapping of a whole file, so it touches no other memory.
        let start = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(failed("mapped"));
        }
        let start = NonNull::new(start.cast::<u8>()).expect("the kernel maps nothing at address zero");
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        // The simulator and all processes spin. A wake-up on another CPU takes longer than a switch on the same one.
        let spins = if (ranks as usize) < cpus { SPINS } else { 0 };
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            ranks,
            ended: AtomicU32::new(0),
            spins: AtomicU32::new(spins),
            simulator: std::process::id(),
            measured: timing.measured.is_some().into(),
            clock_cost_ps: timing.clock_cost_ps,
            epoch_ns: EPOCH_NS,
            scale: timing.measured.unwrap_or(1.0),
            look_cost_ps: timing.look_cost_ps,
            tag_bits: timing.tag_bits,
            card: abilities.card,
            atomic_bytes: abilities.atomic_bytes,
            fetch_bytes: abilities.fetch_bytes,
            launcher: match timing.launcher {
                Launcher::Mpich => mpi::MPICH,
                Launcher::Openmpi => mpi::OPENMPI,
                Launcher::None => mpi::UNKNOWN,
            },
            begun: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
        };
        // SAFETY: the first page has room for a header and is aligned, and no process has the mapping yet. The slots are zeros,
        // which are valid.
        unsafe { start.cast::<Header>().write(header) };
        let known = (0..ranks).map(|_| Known::default()).collect();
        let pages = Pages { file, start, ranks, spins: Cell::new(spins), known, damaged: Cell::new(None) };
        (0..ranks).for_each(|rank| pages.slot(rank).guard.store(MAGIC, Ordering::Relaxed));
        Ok(pages)
    }

    /// Returns the path at which processes of this user find the mapping while the simulator runs.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    fn header(&self) -> &Header {
        // SAFETY: the first page has contained a header since its creation; others write only to its atomics.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    /// Returns the address of a rank's pages.
    fn start_of(&self, rank: u32) -> NonNull<u8> {
        assert!(rank < self.ranks);
        // SAFETY: the pages of all ranks follow the first two pages.
        unsafe { self.start.add(SLOTS + SLOT_BYTES * rank as usize) }
    }

    fn slot(&self, rank: u32) -> &Slot {
        // SAFETY: the first page of a rank exists, and any bytes are a valid slot; others write only to atomics and cells.
        unsafe { self.start_of(rank).cast::<Slot>().as_ref() }
    }

    fn known(&self, rank: u32) -> &Known {
        &self.known[rank as usize]
    }

    fn bell(&self) -> &AtomicU32 {
        // SAFETY: the second page exists and is aligned.
        unsafe { self.start.add(BELL).cast().as_ref() }
    }

    /// Returns whether a process has visibly overwritten its pages: values of the simulator have changed, or a turn is invalid.
    pub(crate) fn is_damaged(&self, rank: u32) -> bool {
        let (header, slot, known) = (self.header(), self.slot(rank), self.known(rank));
        let pid = known.pid.get();
        let is_damaged = header.magic != MAGIC
            || header.ranks != self.ranks
            || slot.guard.load(Ordering::Relaxed) != MAGIC
            || (pid != 0 && slot.pid.load(Ordering::Relaxed) != pid)
            || slot.now_ps.load(Ordering::Relaxed) != known.now_ps.get()
            || slot.taken.load(Ordering::Relaxed) != known.taken.get()
            || slot.turn.load(Ordering::Relaxed) > turn::SLEEP;
        if is_damaged && self.damaged.get().is_none() {
            self.damaged.set(Some(rank));
        }
        is_damaged
    }

    /// Returns the first rank that was found to have overwritten its pages.
    pub(crate) fn damaged(&self) -> Option<u32> {
        self.damaged.get()
    }

    /// Tells the processes that communication has started.
    pub(crate) fn begin(&self) {
        self.header().begun.store(1, Ordering::Release);
    }

    /// Counts a rank that has closed the network.
    pub(crate) fn ended(&self) {
        self.header().ended.fetch_add(1, Ordering::Release);
    }

    /// If a process has started another MPI than its launcher's, returns that MPI and its library.
    pub(crate) fn other_mpi(&self, rank: u32) -> Option<(Launcher, String)> {
        let slot = self.slot(rank);
        let launcher = match slot.library.load(Ordering::Acquire) {
            mpi::MPICH => Launcher::Mpich,
            mpi::OPENMPI => Launcher::Openmpi,
            _ => return None,
        };
        Some((launcher, String::from_utf8_lossy(&text(&slot.library_path)).into_owned()))
    }

    fn ring(&self, rank: u32) -> &[Post; POSTS as usize] {
        // SAFETY: the other pages of a rank exist, and any bytes are valid posts; others write only to atomics and cells.
        unsafe { self.start_of(rank).add(PAGE).cast().as_ref() }
    }

    pub(crate) fn turn(&self, rank: u32) -> u32 {
        match self.slot(rank).turn.load(Ordering::Acquire) {
            turn::SLEEP => turn::CALL,
            turn => turn,
        }
    }

    /// Returns the id of a rank's process, once it takes part in the run.
    pub(crate) fn process(&self, rank: u32) -> Option<u32> {
        let known = &self.known(rank).pid;
        if known.get() == 0 {
            known.set(self.slot(rank).pid.load(Ordering::Acquire));
        }
        Some(known.get()).filter(|&pid| pid != 0)
    }

    /// Returns the id of the first process of a rank that has loaded the library, if any. It may not take part in the run.
    pub(crate) fn loaded(&self, rank: u32) -> Option<u32> {
        Some(self.slot(rank).loaded.load(Ordering::Acquire)).filter(|&pid| pid != 0)
    }

    /// Returns whether waits for turns may spin. This needs enough CPUs.
    pub(crate) fn spins(&self) -> bool {
        self.spins.get() > 0
    }

    /// Sets whether waits for turns spin or sleep.
    pub(crate) fn set_spins(&self, looks: bool) {
        self.spins.set(if looks { SPINS } else { 0 });
        self.header().spins.store(self.spins.get(), Ordering::Relaxed);
    }

    /// Records the process of a rank that is watched from now on.
    pub(crate) fn watch(&self, rank: u32, pid: u32) {
        let watched = &self.slot(rank).watched;
        if watched.swap(pid, Ordering::Release) != pid {
            futex::wake(watched);
        }
    }

    /// Returns whether any rank has a process that takes part in the run.
    pub(crate) fn has_processes(&self) -> bool {
        (0..self.ranks).any(|rank| self.process(rank).is_some())
    }

    /// Returns whether all ranks have processes that take part in the run.
    pub(crate) fn have_all_processes(&self) -> bool {
        (0..self.ranks).all(|rank| self.process(rank).is_some())
    }

    /// Returns the number of times that a process has read a clock.
    pub(crate) fn clock_reads(&self, rank: u32) -> u64 {
        self.slot(rank).clock_reads.load(Ordering::Relaxed)
    }

    /// Returns the current call of a process, and the time that the process has taken by itself since its last reply.
    pub(crate) fn call(&self, rank: u32) -> (Call, u64) {
        let slot = self.slot(rank);
        self.note_names(rank);
        let args: [u64; ARGS] =
            std::array::from_fn(|at| slot.args.get(at).map_or(0, |arg| arg.load(Ordering::Relaxed)));
        let call = Call::of(slot.call.load(Ordering::Relaxed), slot.flags.load(Ordering::Relaxed), args);
        (call, slot.spent_ps.load(Ordering::Relaxed))
    }

    /// Returns the oldest posted call that the simulator has not taken. Also returns the time that the process took by itself
    /// between its last reply and this call.
    ///
    /// # Errors
    /// When the ring claims to have more posted calls than it has places.
    pub(crate) fn post(&self, rank: u32) -> Result<Option<(Call, u64)>, Error> {
        let slot = self.slot(rank);
        let taken = slot.taken.load(Ordering::Relaxed);
        match slot.posted.load(Ordering::Acquire).wrapping_sub(taken) {
            0 => return Ok(None),
            1..=POSTS => {}
            _ => {
                return Err(Error::Program(
                    "the process has posted more calls than its ring holds: it has overwritten memory that \
                     it shares with the simulation"
                        .to_owned(),
                ));
            }
        }
        let post = &self.ring(rank)[(taken % POSTS) as usize];
        let args = std::array::from_fn(|at| post.args[at].load(Ordering::Relaxed));
        let call = Call::of(post.call.load(Ordering::Relaxed), post.flags.load(Ordering::Relaxed), args);
        Ok(Some((call, post.spent_ps.load(Ordering::Relaxed))))
    }

    /// Returns the bytes in the place of the oldest posted call, after `zeros` zero bytes. `None` if they do not fit the place.
    pub(crate) fn posted_bytes(&self, rank: u32, zeros: usize, bytes: u64) -> Option<Vec<u8>> {
        let taken = self.slot(rank).taken.load(Ordering::Relaxed);
        let there = self.ring(rank)[(taken % POSTS) as usize].bytes.get(..usize::try_from(bytes).ok()?)?;
        let bytes = there.iter().map(|byte| byte.load(Ordering::Relaxed));
        Some(std::iter::repeat_n(0, zeros).chain(bytes).collect())
    }

    /// Marks the oldest posted call as executed.
    pub(crate) fn take(&self, rank: u32) {
        let known = &self.known(rank).taken;
        known.set(known.get().wrapping_add(1));
        self.slot(rank).taken.store(known.get(), Ordering::Release);
    }

    /// Writes the counts of operations for a process. The process does not have the turn.
    pub(crate) fn set_counts(&self, rank: u32, counts: &Counts) {
        let [done, failed] = &self.slot(rank).counts;
        let set = |to: &[AtomicU64], from: &[u64]| {
            to.iter().zip(from).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        };
        set(done, &counts.done);
        set(failed, &counts.failed);
    }

    /// Returns the looks that a process has counted by itself since its last reply.
    pub(crate) fn looks(&self, rank: u32) -> Looks {
        let slot = self.slot(rank);
        let [all, of_waits] = [&slot.looks, &slot.looks_of_waits].map(|count| count.load(Ordering::Relaxed));
        Looks { all, of_waits }
    }

    /// Returns names of shared memory that a process has created and not removed, and the name of its launcher's file.
    pub(crate) fn shared(&self, rank: u32) -> Vec<CString> {
        self.note_names(rank);
        self.known(rank).shared.borrow().clone()
    }

    /// Copies the names that a process has written into its pages, since it may overwrite them.
    fn note_names(&self, rank: u32) {
        let (slot, known) = (self.slot(rank), self.known(rank));
        let version = slot.names.load(Ordering::Acquire);
        if version == known.names.get() || self.is_damaged(rank) {
            return;
        }
        let name = |bytes: &[AtomicU8]| CString::new(text(bytes)).expect("there is no zero before the first");
        let names = slot.shared.iter().map(|bytes| name(bytes));
        *known.shared.borrow_mut() = names.filter(|name| !name.is_empty()).collect();
        known.names.set(version);
    }

    /// Returns the end that a process has reported, if any.
    pub(crate) fn end_of(&self, rank: u32) -> Option<End> {
        let slot = self.slot(rank);
        let how = slot.end.load(Ordering::Acquire);
        let code = slot.end_code.load(Ordering::Relaxed);
        match how {
            end::ABORT => Some(End::Abort(code)),
            end::EXIT => Some(End::Exit(code & 0xff)),
            end::ERROR => Some(End::Error),
            _ => None,
        }
    }

    /// Returns the id of a forked process that requested the network and was refused.
    pub(crate) fn fork_of(&self, rank: u32) -> Option<u32> {
        Some(self.slot(rank).fork.load(Ordering::Acquire)).filter(|&pid| pid != 0)
    }

    /// Writes the numbers of a process's operations that have not ended.
    pub(crate) fn set_under_way(&self, rank: u32, counts: [u32; 2]) {
        let under_way = &self.slot(rank).under_way;
        under_way.iter().zip(counts).for_each(|(to, from)| to.store(from, Ordering::Relaxed));
    }

    /// Writes the reply to a call, and lets the process run.
    pub(crate) fn reply(&self, rank: u32, reply: &Reply<'_>) {
        let slot = self.slot(rank);
        let Reply { now_ps, result, completions, quiet } = *reply;
        slot.now_ps.store(now_ps, Ordering::Relaxed);
        self.known(rank).now_ps.set(now_ps);
        slot.spent_ps.store(0, Ordering::Relaxed);
        slot.looks.store(0, Ordering::Relaxed);
        slot.looks_of_waits.store(0, Ordering::Relaxed);
        slot.quiet_ps.store(quiet.until_ps, Ordering::Relaxed);
        slot.looks_left.store(quiet.looks, Ordering::Relaxed);
        slot.result.store(result as u64, Ordering::Relaxed);
        let count = completions.len().min(MOST_COMPLETIONS);
        slot.completions.store(count as u32, Ordering::Relaxed);
        for (cell, completion) in slot.completion.iter().zip(completions) {
            // SAFETY: the process waits for its turn, and does not read its page before.
            unsafe { cell.get().write(*completion) };
        }
        if slot.turn.swap(turn::RUN, Ordering::AcqRel) == turn::SLEEP {
            futex::wake(&slot.turn);
        }
    }

    /// Returns the words at the end of a rank's first page, which calls of Portals and channels use.
    fn end(&self, rank: u32) -> NonNull<[AtomicU64; WORDS]> {
        // SAFETY: within the rank's first page.
        unsafe { self.start_of(rank).add(PAGE - 8 * WORDS).cast() }
    }

    pub(crate) fn words(&self, rank: u32) -> [u64; WORDS] {
        // SAFETY: aligned, and within the mapping; any bytes are numbers.
        let words = unsafe { self.end(rank).as_ref() };
        std::array::from_fn(|at| words[at].load(Ordering::Relaxed))
    }

    pub(crate) fn set_words(&self, rank: u32, values: &[u64; WORDS]) {
        // SAFETY: as above.
        let words = unsafe { self.end(rank).as_ref() };
        words.iter().zip(values).for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
    }

    /// Returns the counts of a process's calls of collective operations that cards may execute.
    pub(crate) fn offload(&self, rank: u32) -> offload::Counts {
        const { assert!(offload::AT + size_of::<offload::Counts>() + REASON + 8 * WORDS <= PAGE) };
        // SAFETY: within the rank's first page, aligned, and any bytes are counts; the process has ended, or waits for its turn.
        unsafe { self.start_of(rank).add(offload::AT).cast().read_volatile() }
    }

    /// Writes the reason for which a call was refused.
    pub(crate) fn set_reason(&self, rank: u32, why: &str) {
        let why = &why.as_bytes()[..why.len().min(REASON - 1)];
        // SAFETY: the text lies before the words, in the rank's page, and the process waits for its turn.
        unsafe {
            let text = self.end(rank).cast::<u8>().sub(REASON);
            text.copy_from_nonoverlapping(NonNull::from(why).cast(), why.len());
            text.add(why.len()).write(0);
        }
    }

    /// Returns the number of times that processes have rung the bell.
    pub(crate) fn rung(&self) -> u32 {
        self.bell().load(Ordering::Acquire)
    }

    /// Waits until a process rings the bell after the count `rung`, at most for `limit`.
    pub(crate) fn wait(&self, rung: u32, limit: Duration) -> Waited {
        for _ in 0..self.spins.get() {
            if self.rung() != rung {
                return Waited::Spun;
            }
            std::hint::spin_loop();
        }
        // A process that rings later sees that the simulator sleeps, and wakes it.
        let asleep = &self.header().asleep;
        asleep.store(1, Ordering::SeqCst);
        let is_over = futex::wait(self.bell(), rung, Some(limit));
        asleep.store(0, Ordering::Relaxed);
        if is_over { Waited::TimedOut } else { Waited::Slept }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nothing borrows from the mapping any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), size(self.ranks)) };
    }
}

/// Returns the bytes of a text. The text ends with a zero byte, or fills its place.
fn text(bytes: &[AtomicU8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte.load(Ordering::Acquire)).take_while(|byte| *byte != 0).collect()
}

/// Returns the rank with this number; `None` if the number means any rank.
pub(crate) fn rank_or_any(number: u64) -> Option<u32> {
    (number != ANY).then_some(number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        let launcher = Launcher::None;
        let timing = Timing { measured: None, clock_cost_ps: 0, look_cost_ps: 1, tag_bits: 32, launcher };
        Pages::new(1, &timing, Abilities::default()).unwrap()
    }

    #[test]
    fn sleepers_are_woken_on_both_sides() {
        const TURNS: u32 = 2000;
        const LIMIT: Duration = Duration::from_secs(60);
        let pages = pages();
        pages.set_spins(false);
        let (turn, bell, asleep) = (&pages.slot(0).turn, pages.bell(), &pages.header().asleep);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for _ in 0..TURNS {
                    turn.store(turn::CALL, Ordering::Release);
                    bell.fetch_add(1, Ordering::SeqCst);
                    if asleep.load(Ordering::SeqCst) != 0 {
                        futex::wake(bell);
                    }
                    let _ =
                        turn.compare_exchange(turn::CALL, turn::SLEEP, Ordering::AcqRel, Ordering::Acquire);
                    while turn.load(Ordering::Acquire) != turn::RUN {
                        futex::wait(turn, turn::SLEEP, None);
                    }
                }
            });
            let mut replies = 0;
            while replies < TURNS {
                let rung = pages.rung();
                if pages.turn(0) == turn::CALL {
                    pages.reply(0, &Reply::default());
                    replies += 1;
                    continue;
                }
                assert_ne!(pages.wait(rung, LIMIT), Waited::TimedOut, "nobody has woken the simulator");
            }
        });
    }

    #[test]
    fn a_wait_for_nobody_times_out() {
        let pages = pages();
        assert_eq!(pages.wait(pages.rung(), Duration::from_millis(1)), Waited::TimedOut);
        assert_eq!(
            pages.wait(pages.rung() + 1, Duration::from_secs(60)),
            if pages.spins() { Waited::Spun } else { Waited::Slept }
        );
    }

    #[test]
    fn bytes_of_a_post_are_in_its_place() {
        let pages = pages();
        for (at, byte) in [1, 2, 3].into_iter().enumerate() {
            pages.ring(0)[0].bytes[at].store(byte, Ordering::Relaxed);
        }
        assert_eq!(pages.posted_bytes(0, 2, 3), Some(vec![0, 0, 1, 2, 3]));
        assert_eq!(pages.posted_bytes(0, 0, 65), None);
        assert_eq!(pages.posted_bytes(0, 0, u64::MAX), None);
        pages.take(0);
        assert_eq!(pages.posted_bytes(0, 0, 1), Some(vec![0]));
    }
}
