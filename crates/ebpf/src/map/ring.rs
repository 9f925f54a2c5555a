//! Ring buffers: records that a program reserves and submits, and a reader that takes them.

use super::kind::Errno;

/// Bytes in front of a record.
const HEADER: u64 = 8;
/// The longest record.
const LONGEST: u64 = u32::MAX as u64 / 4;

#[derive(Clone, Debug)]
struct Record {
    /// The position of its header.
    position: u64,
    bytes: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reserved,
    Submitted,
    Discarded,
}

/// A ring buffer. The records lie from the consumer's to the producer's position.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    size: u64,
    records: Vec<Record>,
    consumer: u64,
    producer: u64,
    /// Reserved records.
    reserved: usize,
}

impl Ring {
    pub(crate) fn new(size: u32) -> Ring {
        Ring { size: u64::from(size), records: Vec::new(), consumer: 0, producer: 0, reserved: 0 }
    }

    /// Reserves a record, and returns the address of its bytes.
    pub(crate) fn reserve(&mut self, size: u64) -> Option<u32> {
        let length = (size.checked_add(HEADER)?).next_multiple_of(8);
        let end = self.producer + length;
        if size > LONGEST || length > self.size || end - self.consumer >= self.size {
            return None;
        }
        let position = self.producer;
        self.records.push(Record { position, bytes: vec![0; size as usize], state: State::Reserved });
        self.producer = end;
        self.reserved += 1;
        Some(self.address(position))
    }

    fn address(&self, position: u64) -> u32 {
        ((position + HEADER) % (2 * self.size)) as u32
    }

    fn find(&self, address: u32) -> Option<usize> {
        self.records
            .iter()
            .rposition(|record| self.address(record.position) == address && record.state == State::Reserved)
    }

    /// Submits or discards a record.
    pub(crate) fn finish(&mut self, address: u32, submit: bool) -> Option<()> {
        let at = self.find(address)?;
        self.reserved -= 1;
        self.records[at].state = if submit { State::Submitted } else { State::Discarded };
        Some(())
    }

    pub(crate) fn output(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let address = self.reserve(bytes.len() as u64).ok_or(Errno::EAGAIN)?;
        self.access(address, bytes.len()).into_iter().for_each(|record| record.copy_from_slice(bytes));
        self.finish(address, true).ok_or(Errno::EINVAL)
    }

    /// The bytes at an address of a reserved record.
    pub(crate) fn access(&mut self, address: u32, length: usize) -> Option<&mut [u8]> {
        let size = 2 * self.size;
        let own = |record: &&mut Record| {
            let begin = (record.position + HEADER) % size;
            let address = u64::from(address);
            record.state == State::Reserved && begin <= address && address < begin + record.bytes.len() as u64
        };
        let record = self.records.iter_mut().rev().find(own)?;
        let from = (u64::from(address) - (record.position + HEADER) % size) as usize;
        record.bytes.get_mut(from..from.checked_add(length)?)
    }

    /// A fact by its number: bytes to read, size, and the two positions.
    pub(crate) fn query(&self, number: u64) -> u64 {
        match number {
            0 => self.producer - self.consumer,
            1 => self.size,
            2 => self.consumer,
            3 => self.producer,
            _ => 0,
        }
    }

    /// Takes the submitted records in front of the first reserved one.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let end = self.records.iter().position(|record| record.state == State::Reserved);
        let end = end.unwrap_or(self.records.len());
        self.consumer = self.records.get(end).map_or(self.producer, |record| record.position);
        let done = self.records.drain(..end);
        done.filter(|record| record.state == State::Submitted).map(|record| record.bytes).collect()
    }

    /// Whether a record can be taken.
    pub(crate) fn has_submitted(&self) -> bool {
        let front = self.records.iter().take_while(|record| record.state != State::Reserved);
        front.into_iter().any(|record| record.state == State::Submitted)
    }

    /// Discards the records of a program that trapped.
    pub(crate) fn discard_reserved(&mut self) {
        let reserved = self.records.iter_mut().filter(|record| record.state == State::Reserved);
        reserved.for_each(|record| record.state = State::Discarded);
        self.reserved = 0;
    }

    /// Whether a record is reserved.
    pub(crate) fn has_reserved(&self) -> bool {
        self.reserved > 0
    }
}
