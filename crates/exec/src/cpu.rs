//! The CPU on which the simulator and the processes of a run take turns.
//!
//! Only one of them runs at a time, so a second CPU does not help. A wake-up on another CPU takes several times as long as a switch on the
//! same one. So they are kept on one CPU while turns are short; a process that computes for long may move.
//!
//! With as many CPUs as processes it is faster still if the simulator and the running process spin, each on a CPU of its own. If
//! other work takes those CPUs, spinning fails, and they are kept on one CPU as well.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// After `STAYS` the kernel may move the simulator to another CPU for `MOVES`; processes follow it.
const STAYS: Duration = Duration::from_millis(500);
const MOVES: Duration = Duration::from_millis(5);

/// Each failed wait adds `IN_VAIN`, and each successful one subtracts 1. Above `MOST_IN_VAIN`, with more than a sixteenth failed, spinning
/// stops for `GIVEN_UP`; the next trial starts at `TRIAL`, where a few failures are enough.
const IN_VAIN: u32 = 16;
const MOST_IN_VAIN: u32 = 32 * IN_VAIN;
const TRIAL: u32 = MOST_IN_VAIN - 8 * IN_VAIN;
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Whether waits for a turn spin.
pub(crate) struct Looking {
    is_possible: bool,
    failed_looks: Cell<u32>,
    given_up: Cell<Option<Instant>>,
}

impl Looking {
    pub(crate) const fn new(is_possible: bool) -> Looking {
        Looking { is_possible, failed_looks: Cell::new(0), given_up: Cell::new(None) }
    }

    /// Records the end of a wait for a turn, and whether the waiter fell asleep. Returns whether waits spin from now on, if that changes.
    pub(crate) fn waited(&self, slept: bool) -> Option<bool> {
        if !self.is_possible {
            return None;
        }
        if let Some(since) = self.given_up.get() {
            let tries = since.elapsed() >= GIVEN_UP;
            if tries {
                self.given_up.set(None);
                self.failed_looks.set(TRIAL);
            }
            return tries.then_some(true);
        }
        let failed_looks = self.failed_looks.get();
        self.failed_looks.set(if slept { failed_looks + IN_VAIN } else { failed_looks.saturating_sub(1) });
        let gives_up = self.failed_looks.get() > MOST_IN_VAIN;
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
    // SAFETY: the set lives as long as the call. The end of the process is detected elsewhere.
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

/// The CPU of a run, for the simulator's thread.
pub(crate) struct SharedCpu {
    /// The CPUs of that thread after the run.
    all: Option<Set>,
    is_wanted: Cell<bool>,
    cpu: Cell<Option<usize>>,
    since: Cell<Instant>,
    /// The CPU to which each process is bound, by rank.
    ranks: Vec<Cell<Option<usize>>>,
}

impl SharedCpu {
    pub(crate) fn new(ranks: u32, is_wanted: bool) -> SharedCpu {
        SharedCpu {
            all: of_thread(0),
            is_wanted: Cell::new(is_wanted),
            cpu: Cell::new(None),
            since: Cell::new(Instant::now()),
            ranks: (0..ranks).map(|_| Cell::new(None)).collect(),
        }
    }

    /// Binds a process to the CPU before it runs on.
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

    /// Sets whether they are kept on one CPU from now on.
    pub(crate) fn want(&self, is_wanted: bool) {
        self.is_wanted.set(is_wanted);
        if let (Some(all), false) = (&self.all, is_wanted) {
            set_thread(0, all);
            self.cpu.set(None);
        }
    }

    /// Releases a process that computes for long.
    pub(crate) fn release(&self, rank: u32, pid: u32) {
        if let (Some(all), Some(_)) = (&self.all, self.ranks[rank as usize].take()) {
            set_thread(pid as libc::pid_t, all);
        }
    }
}

impl Drop for SharedCpu {
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
        let shared_cpu = SharedCpu::new(1, true);
        let start = Instant::now();
        while shared_cpu.cpu.get().is_none() {
            shared_cpu.bring(0, 0);
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        assert_eq!(cpus().len(), 1);
        shared_cpu.want(false);
        shared_cpu.bring(0, 0);
        assert_eq!(cpus(), before);
        shared_cpu.want(true);
        let start = Instant::now();
        while shared_cpu.cpu.get().is_none() {
            shared_cpu.bring(0, 0);
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        assert!(before.contains(&cpus()[0]));
        drop(shared_cpu);
        assert_eq!(cpus(), before);
    }

    #[test]
    fn who_looks_in_vain_gives_up_and_tries_again() {
        let looking = Looking::new(true);
        // Failures that are tolerated: each is offset by sixteen successes.
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
