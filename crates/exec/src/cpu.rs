//! The CPU on which the simulator and the processes of a run take turns.
//!
//! Only one of them runs at a time, so that a second CPU is no use to them, and to wake whoever sleeps on another CPU takes
//! several times as long as a switch on the same one. They are kept together while turns are short; a process that computes for
//! long may go elsewhere.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// After so long the kernel may find another CPU for the simulator, for so long; processes follow it.
const STAYS: Duration = Duration::from_millis(500);
const MOVES: Duration = Duration::from_millis(5);

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
    /// Where that thread may be when the run is over; none where processes are not kept on one CPU.
    all: Option<Set>,
    cpu: Cell<Option<usize>>,
    since: Cell<Instant>,
    /// The CPU to which each process is kept, by rank.
    ranks: Vec<Cell<Option<usize>>>,
}

impl Together {
    pub(crate) fn new(ranks: u32, is_wanted: bool) -> Together {
        Together {
            all: if is_wanted { of_thread(0) } else { None },
            cpu: Cell::new(None),
            since: Cell::new(Instant::now()),
            ranks: (0..ranks).map(|_| Cell::new(None)).collect(),
        }
    }

    /// Before a process runs on.
    pub(crate) fn bring(&self, rank: u32, pid: u32) {
        let Some(all) = &self.all else { return };
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
        assert!(before.contains(&cpus()[0]));
        drop(together);
        assert_eq!(cpus(), before);
    }
}
