//! The kernel's threads for the threads of programs.
//!
//! A call of a program's thread runs on a kernel thread. The kernel thread keeps its CPU if the next call follows at
//! the same instant, and yields the CPU otherwise. Concurrent calls of a program's thread have a kernel thread each.

use nicety_host::threads::{Placement, Thread, Threads};
use nicety_kernel::{Signal, Sim};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The threads of a host's programs.
pub(super) struct Programs {
    threads: Threads,
    /// Idle kernel threads, by the number of the program's thread.
    free: RefCell<BTreeMap<u32, Vec<Rc<Slot>>>>,
    /// Kernel threads with a call that has ended at this instant, and the call's number.
    left: RefCell<VecDeque<(Rc<Slot>, u64)>>,
    changed: Signal,
}

struct Slot {
    thread: Thread,
    /// Number of calls so far.
    calls: Cell<u64>,
}

/// A kernel thread in a call. Dropping it ends the call.
pub(super) struct InCall {
    programs: Rc<Programs>,
    program: u32,
    slot: Rc<Slot>,
}

impl Programs {
    pub(super) fn start(sim: &Sim, threads: &Threads) -> Rc<Programs> {
        let programs = Rc::new(Programs {
            threads: threads.clone(),
            free: RefCell::default(),
            left: RefCell::default(),
            changed: Signal::new(sim),
        });
        sim.spawn(programs.clone().serve(sim.clone()));
        programs
    }

    /// Makes kernel threads yield their CPUs if their programs have not called again.
    async fn serve(self: Rc<Programs>, sim: Sim) {
        loop {
            self.changed.wait_until(|| !self.left.borrow().is_empty()).await;
            sim.yield_now().await;
            loop {
                let left = self.left.borrow_mut().pop_front();
                let Some((slot, calls)) = left else { break };
                if slot.calls.get() == calls {
                    slot.thread.exit();
                }
            }
        }
    }

    /// Returns the kernel thread for a call of this thread of the host's program.
    pub(super) fn enter(self: &Rc<Programs>, program: u32) -> InCall {
        let known = self.free.borrow_mut().entry(program).or_default().pop();
        let slot = known.unwrap_or_else(|| {
            let thread = self.threads.thread(Placement::Anywhere);
            Rc::new(Slot { thread, calls: Cell::new(0) })
        });
        slot.calls.set(slot.calls.get() + 1);
        InCall { programs: self.clone(), program, slot }
    }
}

impl InCall {
    pub(super) fn thread(&self) -> &Thread {
        &self.slot.thread
    }
}

impl Drop for InCall {
    fn drop(&mut self) {
        let InCall { programs, program, slot } = self;
        programs.free.borrow_mut().entry(*program).or_default().push(slot.clone());
        programs.left.borrow_mut().push_back((slot.clone(), slot.calls.get()));
        programs.changed.notify_one();
    }
}
