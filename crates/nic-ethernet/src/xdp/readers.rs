//! Readers of a program's records on the host: ring buffers, and samples of perf events.

use super::attached::XdpProgram;
use crate::net::Net;
use nicety_ebpf::MapKind;
use nicety_host::threads::Thread;
use nicety_kernel::describe;
use nicety_types::Path;
use std::rc::Rc;

impl XdpProgram {
    /// Samples of perf events that were lost, since no reader had taken the earlier ones.
    pub fn samples_lost(&self) -> u64 {
        self.events.lost.get()
    }

    fn taken(&self, map: usize) -> Vec<Vec<u8>> {
        let mut machine = self.machine.borrow_mut();
        match machine.maps[map].kind {
            MapKind::Ring => machine.maps[map].records(),
            _ => self.events.take(map),
        }
    }

    fn has_records(&self) -> bool {
        let has_samples = !self.events.samples.borrow().is_empty();
        has_samples || self.machine.borrow_mut().maps.iter_mut().any(nicety_ebpf::Map::has_records)
    }
}

impl Net {
    /// Wakes the readers of a program that has left records.
    pub(super) async fn wake_readers(&self, thread: &Thread, program: &XdpProgram, path: &Path) {
        let woken = program.events.readers.all();
        if !woken.is_empty() && program.has_records() {
            self.wake(thread, woken, path).await;
        }
    }

    /// Waits for records of a ring buffer or of perf events by a system call, and takes them.
    pub(crate) async fn records(
        self: &Rc<Net>,
        thread: &Thread,
        program: &XdpProgram,
        (map, name): (usize, &str),
        path: &mut Path,
    ) -> Vec<Vec<u8>> {
        let _waiting = program.events.readers.enter(thread);
        self.system_call(thread, path).await;
        loop {
            let taken = program.taken(map);
            if !taken.is_empty() {
                return taken;
            }
            describe(|| format!("records of map {name}"), thread.sleep()).await;
        }
    }
}
