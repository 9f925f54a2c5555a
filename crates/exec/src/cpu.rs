//! The CPU on which the simulator and the processes of a run take turns.
//!
//! Only one of them runs at a time, so a second CPU does not help. A wake-up on another CPU takes several times as long as a
//! switch on the same CPU. Therefore the simulator and the processes are bound to one CPU while turns are short. A process that
//! computes for long may move.
//!
//! If there is a CPU for the simulator and for each process, all of them spin, so that a turn needs no switch. If other work
//! takes these CPUs, spinning fails. Then the simulator and the processes are bound to one CPU again.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// After `STAYS` on one CPU, the kernel may move the simulator to another CPU during `MOVES`. The processes follow the simulator.
const STAYS: Duration = Duration::from_millis(500);
const MOVES: Duration = Duration::from_millis(5);

/// A failed wait adds `IN_VAIN` to a sum, and a successful wait subtracts 1. So the sum grows if more than one in seventeen waits
/// fails. When it is above `MOST_IN_VAIN`, waits do not spin for `GIVEN_UP`. Then the sum restarts at `TRIAL`, from which a few
/// failures are enough.
const IN_VAIN: u32 = 16;
const MOST_IN_VAIN: u32 = 32 * IN_VAIN;
const TRIAL: u32 = MOST_IN_VAIN - 8 * IN_VAIN;
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Decides whether waits for a turn spin or sleep.
pub(crate) struct Looking {
    is_possible: bool,
    failed_looks: Cell<u32>,
    given_up: Cell<Option<Instant>>,
}

impl Looking {
    pub(crate) const fn new(is_possible: bool) -> Looking {
        Looking { is_possible, failed_looks: Cell::new(0), given_up: Cell::new(None) }
    }

    /// Records the end of a wait for a turn. `slept` is whether the waiter fell asleep. If the decision changes, returns whether
    /// waits spin from now on.
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
    // SAFETY: the kernel writes at most the given size; a set of zeros is valid.
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

/// The CPU to which the simulator's thread and the processes are bound.
pub(crate) struct SharedCpu {
    /// The CPUs that the simulator's thread may use before and after the run.
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

    /// Binds a process to the simulator's CPU before the process runs.
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

    /// Sets whether the simulator and the processes are bound to one CPU from now on.
    pub(crate) fn want(&self, is_wanted: bool) {
        self.is_wanted.set(is_wanted);
        if let (Some(all), false) = (&self.all, is_wanted) {
            set_thread(0, all);
            self.cpu.set(None);
        }
    }

    /// Lets a process that computes for long run on any CPU.
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
