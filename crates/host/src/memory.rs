//! Host memory: allocations at fixed addresses, backed by pages on first touch, with a count of every access.

use crate::addresses::{PROCESS_ADDRESSES, PROCESS_BYTES, is_of_gpu};
use crate::bytes::HostBytes;
use crate::cache::{Cache, Lines};
use crate::process::ProcessBytes;
use nicety_kernel::Sim;
use nicety_types::{Buffer, Payload};
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

const PAGE: u64 = 4096;
/// Address of the first allocation. It is low enough to read, and high enough that a null pointer plus an offset misses
/// it.
const FIRST_ADDRESS: u64 = 0x10_0000;

/// An allocation of host memory. A clone is cheap. The memory lives as long as its host or any clone.
#[derive(Clone, Debug)]
pub struct Allocation {
    address: u64,
    len: u64,
    bytes: Option<Arc<HostBytes>>,
}

impl Allocation {
    /// Address of the first byte in the host's memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes, or `None` for a phantom allocation.
    pub fn bytes(&self) -> Option<&Arc<HostBytes>> {
        self.bytes.as_ref()
    }
}

/// An error when host memory is allocated or accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// No allocation has all of these bytes.
    OutOfRange {
        /// First address.
        address: u64,
        /// Number of bytes.
        len: u64,
    },
    /// These bytes are in the memory of the graphics processor, which CPUs cannot access.
    OfGpu {
        /// First address.
        address: u64,
        /// Number of bytes.
        len: u64,
    },
    /// The host has no more memory.
    Full {
        /// Number of bytes requested.
        wanted: u64,
        /// Number of bytes left.
        left: u64,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryError::OutOfRange { address, len } => {
                write!(f, "no allocation of the host holds the {len} bytes at {address:#x}")
            }
            MemoryError::OfGpu { address, len } => write!(
                f,
                "the {len} bytes at {address:#x} are in the memory of the graphics processor, which the host's CPUs do not \
                 reach; have a card move them, by a put or get of this host to itself"
            ),
            MemoryError::Full { wanted, left } => write!(
                f,
                "the host has {left} bytes of memory left, but {wanted} were requested; raise host.memory in the spec"
            ),
        }
    }
}

impl std::error::Error for MemoryError {}

/// Number of bytes moved from and to a host's memory, by the card and in lines of the CPU cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of bytes read from memory: by the card, by a push to the card, or by a fill of the CPU cache.
    pub read: u64,
    /// Number of bytes written to memory: by the card, or from the CPU cache.
    pub written: u64,
}

/// The memory of a host.
#[derive(Debug)]
pub struct Memory {
    capacity: u64,
    page: u64,
    /// Whether the memory belongs to a graphics processor.
    is_gpu: bool,
    allocations: RefCell<Vec<Allocation>>,
    used: Cell<u64>,
    next: Cell<u64>,
    traffic: Cell<Traffic>,
    /// The CPU cache. `None` until the CPUs compute on memory.
    cache: RefCell<Option<Cache>>,
    due: OnceCell<PendingWrites>,
    /// The memory of an operating-system process, at its own addresses.
    process: OnceCell<Process>,
}

/// A process with memory that is part of the host's memory.
struct Process(Box<dyn ProcessBytes>);

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

/// The location of a range of bytes.
enum Place<'m> {
    /// No location: the memory is phantom.
    Phantom,
    /// An allocation, and the offset of the range in it.
    Own(&'m HostBytes, usize),
    /// A process, and the address of the range in its address space.
    Process(&'m dyn ProcessBytes, u64),
}

impl Place<'_> {
    fn read(&self, to: &mut [u8]) {
        match self {
            Place::Phantom => {}
            Place::Own(bytes, offset) => bytes.read(*offset, to),
            Place::Process(bytes, address) => bytes.read(*address, to),
        }
    }

    fn write(&self, at: u64, from: &[u8]) {
        match self {
            Place::Phantom => {}
            Place::Own(bytes, offset) => bytes.write(offset + at as usize, from),
            Place::Process(bytes, address) => bytes.write(address + at, from),
        }
    }
}

/// Maximum number of allocations for which [`Memory::keep_near`] keeps state near.
const FEW: usize = 4;

/// A function that makes the writes that are due, before an observer reads their effects.
struct PendingWrites(Box<dyn Fn(&Memory)>);

impl fmt::Debug for PendingWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingWrites")
    }
}

impl Memory {
    /// Returns memory of `capacity` bytes without allocations.
    pub fn new(capacity: u64) -> Memory {
        Memory::from(capacity, FIRST_ADDRESS, PAGE)
    }

    /// Like [`Memory::new`], with addresses from `first` on and pages of `page` bytes.
    pub fn from(capacity: u64, first: u64, page: u64) -> Memory {
        Memory {
            capacity,
            page,
            is_gpu: is_of_gpu(first),
            allocations: RefCell::default(),
            used: Cell::new(0),
            next: Cell::new(first),
            traffic: Cell::default(),
            cache: RefCell::default(),
            due: OnceCell::new(),
            process: OnceCell::new(),
        }
    }

    /// Adds the memory of a process. The process's address 0 is at [`PROCESS_ADDRESSES`]. Returns false if the memory
    /// already has a process.
    pub fn add_process(&self, bytes: impl ProcessBytes + 'static) -> bool {
        self.process.set(Process(Box::new(bytes))).is_ok()
    }

    /// Registers `write`, a function that makes all due writes of phantom bytes. It runs before an observer reads the
    /// effects of these writes: the traffic and the contents of the CPU cache. So such a write needs no event at its
    /// time. Returns false if a function is already registered.
    pub fn when_looked_at(&self, write: impl Fn(&Memory) + 'static) -> bool {
        self.due.set(PendingWrites(Box::new(write))).is_ok()
    }

    /// [Keeps near](Sim::keep_near) the state that accesses need, if there are few allocations.
    pub fn keep_near(&self, sim: &Sim) {
        sim.keep_near(self);
        let mut allocations = self.allocations.borrow_mut();
        allocations.reserve(FEW);
        sim.keep_near(allocations.spare_capacity_mut());
    }

    fn looked_at(&self) {
        if let Some(PendingWrites(write)) = self.due.get() {
            write(self);
        }
    }

    /// The CPUs access these address ranges through a cache of `bytes` bytes in lines of `line` bytes. Counts and
    /// returns the lines that moved between cache and memory.
    pub(crate) fn touch(&self, bytes: u64, line: u64, reads: &[Range<u64>], writes: &[Range<u64>]) -> Lines {
        self.looked_at();
        let mut cache = self.cache.borrow_mut();
        let cache = cache.get_or_insert_with(|| Cache::new(bytes, line));
        let mut lines = Lines::default();
        for bytes in reads {
            cache.read(bytes.clone(), &mut lines);
        }
        for bytes in writes {
            cache.write(bytes.clone(), &mut lines);
        }
        let Traffic { read, written } = self.traffic.get();
        self.traffic
            .set(Traffic { read: read + lines.fetched * line, written: written + lines.written * line });
        lines
    }

    /// Allocates `len` zero bytes that start on a new page.
    ///
    /// # Errors
    /// [`MemoryError::Full`] if the capacity is exceeded.
    pub fn allocate(&self, len: u64) -> Result<Allocation, MemoryError> {
        self.place(len, |len| {
            usize::try_from(len).ok().and_then(HostBytes::new).map(|bytes| Some(Arc::new(bytes)))
        })
    }

    /// Allocates `len` phantom bytes, which have no contents, for large timing runs.
    ///
    /// # Errors
    /// [`MemoryError::Full`] if the capacity is exceeded.
    pub fn allocate_phantom(&self, len: u64) -> Result<Allocation, MemoryError> {
        self.place(len, |_| Some(None))
    }

    fn place(
        &self,
        len: u64,
        make: impl FnOnce(u64) -> Option<Option<Arc<HostBytes>>>,
    ) -> Result<Allocation, MemoryError> {
        let left = self.capacity - self.used.get();
        let full = MemoryError::Full { wanted: len, left };
        if len > left {
            return Err(full);
        }
        let bytes = make(len).ok_or(full)?;
        let address = self.next.get();
        // An unused page separates allocations. So an access beyond the end of an allocation never reaches the next
        // one.
        self.next.set(address + len.next_multiple_of(self.page) + self.page);
        self.used.set(self.used.get() + len);
        let allocation = Allocation { address, len, bytes };
        self.allocations.borrow_mut().push(allocation.clone());
        Ok(allocation)
    }

    /// Applies `action` to the location of the range, which is in one allocation or in the process. For an empty range,
    /// `action` is not called, at any address.
    fn at<R>(&self, address: u64, len: u64, action: impl FnOnce(&Place<'_>) -> R) -> Result<R, MemoryError>
    where
        R: Default,
    {
        if len == 0 {
            return Ok(R::default());
        }
        if let (true, Some(process)) = (address >= PROCESS_ADDRESSES, self.process.get()) {
            let offset = address - PROCESS_ADDRESSES;
            return match offset.checked_add(len).is_none_or(|end| end > PROCESS_BYTES) {
                true => Err(MemoryError::OutOfRange { address, len }),
                false => Ok(action(&Place::Process(&*process.0, offset))),
            };
        }
        let allocations = self.allocations.borrow();
        let index = allocations.partition_point(|a| a.address <= address);
        let out_of_range = match is_of_gpu(address) && !self.is_gpu {
            true => MemoryError::OfGpu { address, len },
            false => MemoryError::OutOfRange { address, len },
        };
        let allocation = index.checked_sub(1).map(|i| &allocations[i]).ok_or(out_of_range)?;
        let offset = address - allocation.address;
        if offset.checked_add(len).is_none_or(|end| end > allocation.len) {
            return Err(out_of_range);
        }
        Ok(action(&match &allocation.bytes {
            None => Place::Phantom,
            Some(bytes) => Place::Own(bytes, offset as usize),
        }))
    }

    /// Checks that the range is within one allocation. An empty range is valid everywhere, because an entry or
    /// descriptor of no bytes needs no memory.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] if the range is not within one allocation.
    pub fn check(&self, address: u64, len: u64) -> Result<(), MemoryError> {
        self.at(address, len, |_| ())
    }

    /// Whether the range, which is not empty, is within one phantom allocation.
    pub fn is_phantom(&self, address: u64, len: u64) -> bool {
        self.at(address, len, |place| matches!(place, Place::Phantom)).unwrap_or(false)
    }

    /// Reads bytes for the card. The payload is phantom if the memory is phantom.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] if no allocation has all of these bytes.
    pub fn read(&self, address: u64, len: u64) -> Result<Payload, MemoryError> {
        let payload = self.peek(address, len)?;
        let traffic = self.traffic.get();
        self.traffic.set(Traffic { read: traffic.read + len, ..traffic });
        Ok(payload)
    }

    /// Reads bytes that a CPU has already accessed. The CPU's access has counted the traffic, so this call does not.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] if no allocation has all of these bytes.
    pub fn peek(&self, address: u64, len: u64) -> Result<Payload, MemoryError> {
        self.at(address, len, |place| match place {
            Place::Phantom => Payload::phantom(len),
            place => Payload::real(Buffer::filled_by(len as usize, |to| place.read(to))),
        })
    }

    /// Writes a payload for a CPU. The CPU's access has already counted the traffic, so this call does not.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] if no allocation has all of these bytes.
    pub fn poke(&self, address: u64, payload: &Payload) -> Result<(), MemoryError> {
        self.at(address, payload.len(), |place| {
            payload.pieces().for_each(|(at, from)| place.write(at, from));
        })
    }

    /// Writes bytes for the card. Phantom memory does not keep the bytes: only the traffic counts.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] if no allocation has all of these bytes.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let len = from.len() as u64;
        self.at(address, len, |place| place.write(0, from))?;
        self.count_written(address, len);
        Ok(())
    }

    /// Writes the first `keep` bytes of a payload for the card. Phantom bytes leave real memory unchanged, and phantom
    /// memory does not keep real bytes. In both cases only the traffic counts.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] if no allocation has all of these bytes. No byte is then written.
    pub fn deposit(&self, address: u64, keep: u64, payload: &Payload) -> Result<(), MemoryError> {
        let keep = keep.min(payload.len());
        self.at(address, keep, |place| {
            if matches!(place, Place::Phantom) {
                return;
            }
            for (at, bytes) in payload.pieces().take_while(|&(at, _)| at < keep) {
                let len = bytes.len().min((keep - at) as usize);
                place.write(at, &bytes[..len]);
            }
        })?;
        self.count_written(address, keep);
        Ok(())
    }

    fn count_written(&self, address: u64, len: u64) {
        if let Some(cache) = &mut *self.cache.borrow_mut() {
            cache.forget(address..address + len);
        }
        let traffic = self.traffic.get();
        self.traffic.set(Traffic { written: traffic.written + len, ..traffic });
    }

    /// The traffic of the memory so far.
    pub fn traffic(&self) -> Traffic {
        self.looked_at();
        self.traffic.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_types::Segment;
    use std::rc::Rc;

    impl ProcessBytes for Rc<RefCell<Vec<u8>>> {
        fn read(&self, address: u64, to: &mut [u8]) {
            to.copy_from_slice(&self.borrow()[address as usize..][..to.len()]);
        }

        fn write(&self, address: u64, from: &[u8]) {
            self.borrow_mut()[address as usize..][..from.len()].copy_from_slice(from);
        }
    }

    #[test]
    fn the_memory_of_a_process_is_at_its_own_addresses() {
        let (memory, process) = (Memory::new(1 << 20), Rc::new(RefCell::new(b"0123456789".to_vec())));
        let own = memory.allocate(8).unwrap();
        assert!(memory.read(PROCESS_ADDRESSES + 2, 4).is_err());
        assert!(memory.add_process(process.clone()));
        assert!(!memory.add_process(process.clone()));
        assert_eq!(&*memory.read(PROCESS_ADDRESSES + 2, 4).unwrap().into_buffer().unwrap(), b"2345");
        memory.deposit(PROCESS_ADDRESSES + 5, 2, &Payload::copy_of(b"abc")).unwrap();
        memory.write(own.address(), b"own").unwrap();
        assert_eq!(*process.borrow(), b"01234ab789");
        assert_eq!(memory.traffic(), Traffic { read: 4, written: 5 });
        // The range of a process ends exactly at its last address. A range of all its memory is only checked here, not
        // read.
        memory.check(PROCESS_ADDRESSES, PROCESS_BYTES).unwrap();
        assert!(memory.check(PROCESS_ADDRESSES + 1, PROCESS_BYTES).is_err());
        assert!(memory.check(PROCESS_ADDRESSES, u64::MAX).is_err());
        assert!(!memory.is_phantom(PROCESS_ADDRESSES, 1));
    }

    #[test]
    fn bytes_come_back_and_are_counted() {
        let memory = Memory::new(1 << 20);
        let a = memory.allocate(10).unwrap();
        let b = memory.allocate(5000).unwrap();
        memory.write(b.address() + 4990, b"0123456789").unwrap();
        memory.write(a.address(), b"abc").unwrap();
        assert_eq!(&*memory.read(b.address() + 4992, 8).unwrap().into_buffer().unwrap(), b"23456789");
        assert_eq!(&*memory.read(a.address(), 4).unwrap().into_buffer().unwrap(), b"abc\0");
        assert_eq!(memory.traffic(), Traffic { read: 12, written: 13 });
    }

    #[test]
    fn nothing_outside_an_allocation_is_touched() {
        let memory = Memory::new(1 << 20);
        let a = memory.allocate(4096).unwrap();
        memory.allocate(4096).unwrap();
        for (address, len) in [(0, 1), (a.address() - 1, 1), (a.address() + 4096, 1), (a.address() + 4090, 7)]
        {
            assert_eq!(memory.read(address, len), Err(MemoryError::OutOfRange { address, len }));
            assert!(memory.write(address, &vec![0; len as usize]).is_err());
        }
        assert!(memory.check(u64::MAX, u64::MAX).is_err());
        assert_eq!(memory.traffic(), Traffic::default());
    }

    #[test]
    fn memory_ends_where_the_spec_says() {
        let memory = Memory::new(100);
        memory.allocate(60).unwrap();
        assert_eq!(memory.allocate(41).unwrap_err(), MemoryError::Full { wanted: 41, left: 40 });
        assert!(memory.allocate(40).is_ok());
        assert!(memory.allocate(0).is_ok());
    }

    #[test]
    fn segments_lie_one_behind_the_other() {
        let memory = Memory::new(1 << 20);
        let a = memory.allocate(16).unwrap();
        memory.write(a.address(), b"................").unwrap();
        let mut payload = Payload::copy_of(b"abc");
        payload.push(Segment::Phantom(4));
        payload.push(Segment::Real(Buffer::copy_of(b"defgh")));
        memory.deposit(a.address() + 1, 10, &payload).unwrap();
        let bytes = memory.read(a.address(), 16).unwrap().into_buffer().unwrap();
        assert_eq!(&*bytes, b".abc....def.....");
        assert_eq!(memory.traffic(), Traffic { read: 16, written: 26 });
        assert!(memory.deposit(a.address() + 8, 9, &payload).is_err());
    }

    #[test]
    fn phantom_memory_has_a_length_only() {
        let memory = Memory::new(1 << 50);
        let a = memory.allocate_phantom(1 << 40).unwrap();
        assert!(memory.read(a.address(), 1 << 40).unwrap().into_buffer().is_err());
        memory.write(a.address() + 7, b"lost").unwrap();
        memory.deposit(a.address(), 1 << 20, &Payload::phantom(1 << 20)).unwrap();
        assert_eq!(memory.traffic(), Traffic { read: 1 << 40, written: (1 << 20) + 4 });
    }
}
