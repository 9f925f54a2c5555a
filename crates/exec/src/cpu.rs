//! The CPU on which the simulator and the processes of a run take turns.
//!
//! Only one of them runs at a time, so that a second CPU is no use to them, and to wake whoever sleeps on another CPU takes
//! several times as long as a switch on the same one. They are kept together while turns are short; a process that computes for
//! long may go elsewhere.
//!
//! Where there are as many CPUs as processes it is quicker still if the simulator and the process whose turn it is look for each other, each on a CPU
//! of its own. Where other work takes those CPUs, looks are in vain, and they are kept together as well.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// After so long the kernel may find another CPU for the simulator, for so long; processes follow it.
const STAYS: Duration = Duration::from_millis(500);
const MOVES: Duration = Duration::from_millis(5);

/// So many waits in vain, more than a sixteenth of all, and looks are given up for some time; at the next trial a few are enough.
const IN_VAIN: u32 = 16;
const MOST_IN_VAIN: u32 = 32 * IN_VAIN;
const TRIAL: u32 = MOST_IN_VAIN - 8 * IN_VAIN;
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Whether turns are waited for by looking.
pub(crate) struct Looking {
    is_possible: bool,
    in_vain: Cell<u32>,
    given_up: Cell<Option<Instant>>,
}

impl Looking {
    pub(crate) const fn new(is_possible: bool) -> Looking {
        Looking { is_possible, in_vain: Cell::new(0), given_up: Cell::new(None) }
    }

    /// A wait for a turn has ended, before the one who waited fell asleep or not. Whether they look from now on, if that changes.
    pub(crate) fn waited(&self, slept: bool) -> Option<bool> {
        if !self.is_possible {
            return None;
        }
        if let Some(since) = self.given_up.get() {
            let tries = since.elapsed() >= GIVEN_UP;
            if tries {
                self.given_up.set(None);
                self.in_vain.set(TRIAL);
            }
            return tries.then_some(true);
        }
        let in_vain = self.in_vain.get();
        self.in_vain.set(if slept { in_vain + IN_VAIN } else { in_vain.saturating_sub(1) });
        let gives_up = self.in_vain.get() > MOST_IN_VAIN;
        if gives_up {
            self.given_up.set(Some(Instant::now()));
        }
        gives_up.then_some(false)
    }
}

type Set = libc::cpu_set_t;

fn of_thread(pid: libc::pid_t) -> Option<Set> {
    let mut set = MaybeUninit::<Set>::zeroed();
    // SAFETY: the kernel writes no more than the size that it is given; zeros are a set.
    unsafe {
        (libc::sched_getaffinity(pid, size_of::<Set>(), set.as_mut_ptr()) == 0).then(|| set.assume_init())
    }
}

fn set_thread(pid: libc::pid_t, set: &Set) {
    // SAFETY: the set lives as long as the call. That the process has ended is noticed elsewhere.
    unsafe { libc::sched_setaffinity(pid, size_of::<Set>(), std::ptr::from_ref(set)) };
}

fn only(cpu: usize) -> Set {
    let mut set = MaybeUninit::<Set>::zeroed();
    // SAFETY: zeros are a set; CPU_SET checks the number.
    unsafe {
        libc::CPU_SET(cpu, set.assume_init_mut());
        set.assume_init()
    }
}

/// The CPU of a run, for the thread that simulates.
pub(crate) struct Together {
    /// Where that thread may be when the run is over.
    all: Option<Set>,
    is_wanted: Cell<bool>,
    cpu: Cell<Option<usize>>,
    since: Cell<Instant>,
    /// The CPU to which each process is kept, by rank.
    ranks: Vec<Cell<Option<usize>>>,
}

impl Together {
    pub(crate) fn new(ranks: u32, is_wanted: bool) -> Together {
        Together {
            all: of_thread(0),
            is_wanted: Cell::new(is_wanted),
            cpu: Cell::new(None),
            since: Cell::new(Instant::now()),
            ranks: (0..ranks).map(|_| Cell::new(None)).collect(),
        }
    }

    /// Before a process runs on.
    pub(crate) fn bring(&self, rank: u32, pid: u32) {
        let Some(all) = &self.all else { return };
        if !self.is_wanted.get() {
            return self.release(rank, pid);
        }
        let stays = self.cpu.get().is_some();
        if self.since.get().elapsed() >= if stays { STAYS } else { MOVES } {
            self.since.set(Instant::now());
            // SAFETY: the call takes nothing.
            let here = if stays { None } else { usize::try_from(unsafe { libc::sched_getcpu() }).ok() };
            set_thread(0, &here.map_or(*all, only));
            self.cpu.set(here);
        }
        let own = &self.ranks[rank as usize];
        if let (Some(cpu), true) = (self.cpu.get(), self.cpu.get() != own.get()) {
            set_thread(pid as libc::pid_t, &only(cpu));
            own.set(Some(cpu));
        }
    }

    /// Whether they are kept together from now on.
    pub(crate) fn want(&self, is_wanted: bool) {
        self.is_wanted.set(is_wanted);
        if let (Some(all), false) = (&self.all, is_wanted) {
            set_thread(0, all);
            self.cpu.set(None);
        }
    }

    /// A process computes for long.
    pub(crate) fn release(&self, rank: u32, pid: u32) {
        if let (Some(all), Some(_)) = (&self.all, self.ranks[rank as usize].take()) {
            set_thread(pid as libc::pid_t, all);
        }
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        if let Some(all) = &self.all {
            set_thread(0, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus() -> Vec<usize> {
        let set = of_thread(0).unwrap();
        // SAFETY: CPU_ISSET checks the number.
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
    }

    #[test]
    fn a_thread_is_kept_and_let_go() {
        let before = cpus();
        let together = Together::new(1, true);
        let start = Instant::now();
        while together.cpu.get().is_none() {
            together.bring(0, 0);
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        assert_eq!(cpus().len(), 1);
        together.want(false);
        together.bring(0, 0);
        assert_eq!(cpus(), before);
        together.want(true);
        let start = Instant::now();
        while together.cpu.get().is_none() {
            together.bring(0, 0);
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        assert!(before.contains(&cpus()[0]));
        drop(together);
        assert_eq!(cpus(), before);
    }

    #[test]
    fn who_looks_in_vain_gives_up_and_tries_again() {
        let looking = Looking::new(true);
        // As many as are borne where every sixteenth is in vain.
        for number in 0..100_000 {
            assert_eq!(looking.waited(number % 17 == 0), None);
        }
        let changes: Vec<_> = (0..40).filter_map(|_| looking.waited(true)).collect();
        assert_eq!(changes, [false]);
        looking.given_up.set(Instant::now().checked_sub(GIVEN_UP));
        assert_eq!(looking.waited(false), Some(true));
        assert_eq!((0..8).filter_map(|_| looking.waited(true)).count(), 0);
        assert_eq!(looking.waited(true), Some(false));
        assert_eq!(Looking::new(false).waited(true), None);
    }
}
