//! Makes the memory of a process available as host memory. A card reads and writes it in place.

use crate::memory;
use nicety::ProcessBytes;
use std::cell::{OnceCell, RefCell};
use std::io;
use std::rc::Rc;

/// A text about the first range that could not be read or written.
pub(crate) type Missed = Rc<RefCell<Option<String>>>;

/// Called after a write into the process, with the address and the number of bytes.
pub(crate) type OnWrite = Box<dyn Fn(u64, usize)>;

/// Notes about accesses to the memory of a process.
#[derive(Clone, Default)]
pub(crate) struct Notes {
    pub(crate) missed: Missed,
    pub(crate) wrote: Rc<OnceCell<OnWrite>>,
}

/// A process, by its process id.
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) rank: u32,
    pub(crate) notes: Notes,
}

impl Process {
    fn note(&self, done: io::Result<()>, what: &str, address: u64, bytes: usize) {
        let Err(error) = done else { return };
        self.notes.missed.borrow_mut().get_or_insert_with(|| {
            format!(
                "the card of rank {} {what} {bytes} bytes at {address:#x} of its process, which cannot be \
                 reached: {error}; memory of descriptors and entries has to stay allocated until their \
                 operations have ended",
                self.rank
            )
        });
    }
}

impl ProcessBytes for Process {
    fn read(&self, address: u64, to: &mut [u8]) {
        let bytes = to.len();
        self.note(memory::read(self.pid, address, to), "reads", address, bytes);
    }

    fn write(&self, address: u64, from: &[u8]) {
        self.note(memory::write(self.pid, address, from), "writes", address, from.len());
        if let Some(wrote) = self.notes.wrote.get() {
            wrote(address, from.len());
        }
    }
}
