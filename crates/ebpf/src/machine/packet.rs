//! A packet in its buffer, as an XDP program sees it: headroom, metadata, a linear part, and fragments.

use crate::map::Errno;

/// Bytes in front of a new packet.
pub const HEADROOM: usize = 256;
/// Bytes of the headroom that no program gets: the record of a frame.
const FRAME_RECORD: usize = 40;
/// The end of the linear part, where Linux keeps the list of fragments.
const LINEAR_END: usize = 4096 - 320;
/// Bytes of the longest linear part of a new packet.
pub const LINEAR: usize = LINEAR_END - HEADROOM;
/// Bytes of the longest fragment.
const FRAGMENT: usize = 4096;
/// The most fragments.
const MOST_FRAGMENTS: usize = 17;
/// The longest packet.
pub const LONGEST: usize = LINEAR + MOST_FRAGMENTS * FRAGMENT;
/// The most metadata that Linux counts.
const MOST_METADATA: usize = 252;
/// The shortest packet: an Ethernet header.
pub const SHORTEST: usize = 14;

/// A packet, and where it came from.
#[derive(Clone, Debug)]
pub struct Packet {
    buffer: Vec<u8>,
    /// Places in the buffer.
    meta: usize,
    data: usize,
    end: usize,
    fragments: Vec<Vec<u8>>,
    /// The number of the interface that it came from.
    pub interface: u32,
    /// The receive queue that it came from.
    pub queue: u32,
    /// The number of the interface that it leaves by, for programs of device maps.
    pub leaves: u32,
}

impl Packet {
    /// A packet with metadata in front of it.
    ///
    /// # Errors
    /// `EINVAL` for a packet shorter than an Ethernet header and for metadata that Linux refuses; `ENOMEM` for a packet that is
    /// too long.
    pub fn new(bytes: &[u8], metadata: usize) -> Result<Packet, Errno> {
        let mut packet = Packet {
            buffer: vec![0; LINEAR_END],
            meta: HEADROOM,
            data: HEADROOM,
            end: HEADROOM,
            fragments: Vec::new(),
            interface: 1,
            queue: 0,
            leaves: 0,
        };
        packet.fill(bytes, metadata)?;
        Ok(packet)
    }

    /// Puts other bytes into the buffer.
    ///
    /// # Errors
    /// As [`Packet::new`] has them.
    pub fn fill(&mut self, bytes: &[u8], metadata: usize) -> Result<(), Errno> {
        if bytes.len() > LONGEST {
            return Err(Errno::ENOMEM);
        }
        self.restore(bytes, metadata, HEADROOM)
    }

    /// Puts the bytes of another packet into the buffer, behind the headroom that it had there.
    ///
    /// # Errors
    /// As [`Packet::new`] has them.
    pub fn restore(&mut self, bytes: &[u8], metadata: usize, headroom: usize) -> Result<(), Errno> {
        let wrong = !metadata.is_multiple_of(4) || metadata > MOST_METADATA;
        if wrong || headroom < FRAME_RECORD + metadata || bytes.len() < metadata + SHORTEST {
            return Err(Errno::EINVAL);
        }
        // Metadata takes bytes of the headroom.
        let linear = LINEAR_END.saturating_sub(headroom) + metadata;
        let (linear, rest) = bytes.split_at(bytes.len().min(linear));
        if linear.len() < metadata + SHORTEST || rest.len() > MOST_FRAGMENTS * FRAGMENT {
            return Err(Errno::ENOMEM);
        }
        self.meta = headroom - metadata;
        self.buffer[..self.meta].fill(0);
        self.data = headroom;
        self.end = self.meta + linear.len();
        self.buffer[self.meta..self.end].copy_from_slice(linear);
        self.fragments.clear();
        self.fragments.extend(rest.chunks(FRAGMENT).map(<[u8]>::to_vec));
        Ok(())
    }

    /// Metadata and packet, with all fragments.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = self.buffer[self.meta..self.end].to_vec();
        self.fragments.iter().for_each(|fragment| all.extend(fragment));
        all
    }

    /// Bytes of metadata.
    pub fn metadata(&self) -> usize {
        self.data - self.meta
    }

    /// Bytes of the buffer in front of the packet, with metadata.
    pub fn headroom(&self) -> usize {
        self.data
    }

    /// Bytes of the packet without metadata.
    pub fn length(&self) -> usize {
        self.end - self.data + self.fragments.iter().map(Vec::len).sum::<usize>()
    }

    /// Places of metadata, packet and end in the buffer.
    pub(crate) fn places(&self) -> [usize; 3] {
        [self.meta, self.data, self.end]
    }

    /// The bytes at a place of the linear part.
    #[inline(always)]
    pub(crate) fn access(&mut self, at: u32, length: usize) -> Option<&mut [u8]> {
        let (begin, end) = (at as usize, at as usize + length);
        if begin < self.meta || end > self.end {
            return None;
        }
        self.buffer.get_mut(begin..end)
    }

    pub(crate) fn adjust_head(&mut self, delta: i32) -> Result<(), Errno> {
        let metadata = self.metadata();
        let data = self.data as i64 + i64::from(delta);
        if data < (FRAME_RECORD + metadata) as i64 || data > self.end as i64 - SHORTEST as i64 {
            return Err(Errno::EINVAL);
        }
        let data = data as usize;
        self.buffer.copy_within(self.meta..self.data, data - metadata);
        (self.meta, self.data) = (data - metadata, data);
        Ok(())
    }

    pub(crate) fn adjust_meta(&mut self, delta: i32) -> Result<(), Errno> {
        let meta = self.meta as i64 + i64::from(delta);
        if meta < FRAME_RECORD as i64 || meta > self.data as i64 {
            return Err(Errno::EINVAL);
        }
        let meta = meta as usize;
        let size = self.data - meta;
        if !size.is_multiple_of(4) || size > MOST_METADATA {
            return Err(Errno::EACCES);
        }
        self.meta = meta;
        Ok(())
    }

    pub(crate) fn adjust_tail(&mut self, delta: i32) -> Result<(), Errno> {
        if let Some(last) = self.fragments.last_mut() {
            if delta < 0 {
                return self.shrink(delta.unsigned_abs() as usize);
            }
            let grown = last.len() + delta as usize;
            if grown > FRAGMENT {
                return Err(Errno::EINVAL);
            }
            last.resize(grown, 0);
            return Ok(());
        }
        let end = self.end as i64 + i64::from(delta);
        if end > LINEAR_END as i64 || end < (self.data + SHORTEST) as i64 {
            return Err(Errno::EINVAL);
        }
        let end = end as usize;
        if end > self.end {
            self.buffer[self.end..end].fill(0);
        }
        self.end = end;
        Ok(())
    }

    fn shrink(&mut self, mut count: usize) -> Result<(), Errno> {
        if count + SHORTEST > self.length() {
            return Err(Errno::EINVAL);
        }
        while let Some(last) = self.fragments.last_mut().filter(|_| count > 0) {
            let cut = count.min(last.len());
            last.truncate(last.len() - cut);
            count -= cut;
            if !last.is_empty() {
                break;
            }
            self.fragments.pop();
        }
        if self.fragments.is_empty() {
            self.end -= count;
        }
        Ok(())
    }

    fn check_range(&self, offset: u32, length: usize) -> Result<(), Errno> {
        if offset > 0xffff || length > 0xffff {
            return Err(Errno::EFAULT);
        }
        if offset as usize + length > self.length() {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// Copies between the packet and `other`, over fragments.
    pub(crate) fn copy(&mut self, offset: u32, other: &mut [u8], store: bool) -> Result<(), Errno> {
        self.check_range(offset, other.len())?;
        let linear = &mut self.buffer[self.data..self.end];
        let parts = std::iter::once(linear).chain(self.fragments.iter_mut().map(Vec::as_mut_slice));
        let (mut at, mut rest) = (offset as usize, other);
        for part in parts {
            if at >= part.len() {
                at -= part.len();
                continue;
            }
            let count = rest.len().min(part.len() - at);
            let (now, behind) = rest.split_at_mut(count);
            let own = &mut part[at..at + count];
            if store {
                own.copy_from_slice(now);
            } else {
                now.copy_from_slice(own);
            }
            (rest, at) = (behind, 0);
        }
        Ok(())
    }
}
