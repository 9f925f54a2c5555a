//! Memory of a running program: every access is checked.

use super::trap::{Fault, TrapKind};
use super::{FRAME, Machine, STACK_SIZE};
use crate::address;
use crate::object::unset_pointers;
use crate::op::Width;
use std::ops::Deref;

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Copied bytes of a key or a value; short ones without an allocation.
pub(crate) enum Bytes {
    Short([u8; 64], usize),
    Long(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Short(bytes, length) => &bytes[..*length],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl Machine {
    /// The bytes at an address, where the program may access them.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, at: u64, length: usize, access: Access) -> Option<&mut [u8]> {
        let (region, offset) = address::parts(at);
        match region {
            address::STACK => {
                let (frame, inner) = (offset as usize / FRAME, offset as usize % FRAME);
                if frame >= self.depth || inner < FRAME - STACK_SIZE || inner + length > FRAME {
                    return None;
                }
                let begin = frame * STACK_SIZE + inner - (FRAME - STACK_SIZE);
                self.stack.get_mut(begin..begin + length)
            }
            address::PACKET => self.packet.access(offset, length),
            address::KEY if access == Access::Read => {
                self.key.get_mut(offset as usize..(offset as usize).checked_add(length)?)
            }
            address::VALUES.. => {
                let map = self.maps.get_mut((region - address::VALUES) as usize)?;
                if access == Access::Write && !map.is_writable() {
                    return None;
                }
                map.bytes(offset, length)
            }
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn load(&mut self, at: u64, width: Width) -> Result<u64, Fault> {
        let loaded = match width {
            Width::B1 => self.bytes(at, 1, Access::Read).map(|bytes| u64::from(bytes[0])),
            Width::B2 => self.word::<2>(at).map(|bytes| u64::from(u16::from_le_bytes(bytes))),
            Width::B4 if address::parts(at).0 == address::CONTEXT => return self.context(at),
            Width::B4 => self.word::<4>(at).map(|bytes| u64::from(u32::from_le_bytes(bytes))),
            Width::B8 => self.word::<8>(at).map(u64::from_le_bytes),
        };
        match loaded {
            Some(value) => Ok(value),
            None => Err(self.refused(at, width.bytes(), Access::Read)),
        }
    }

    #[inline(always)]
    fn word<const N: usize>(&mut self, at: u64) -> Option<[u8; N]> {
        self.bytes(at, N, Access::Read)?.first_chunk::<N>().copied()
    }

    #[inline(always)]
    pub(crate) fn store(&mut self, at: u64, width: Width, value: u64) -> Result<(), Fault> {
        let length = width.bytes();
        match self.bytes(at, length, Access::Write) {
            Some(bytes) => {
                let value = value.to_le_bytes();
                match width {
                    Width::B1 => bytes[0] = value[0],
                    Width::B2 => bytes.copy_from_slice(&value[..2]),
                    Width::B4 => bytes.copy_from_slice(&value[..4]),
                    Width::B8 => bytes.copy_from_slice(&value),
                }
                Ok(())
            }
            None => Err(self.refused(at, length, Access::Write)),
        }
    }

    /// A word of the context. Linux turns the 32-bit loads of pointers into loads of pointers.
    fn context(&mut self, at: u64) -> Result<u64, Fault> {
        let (_, offset) = address::parts(at);
        let [meta, data, end] = self.packet.places();
        let packet = |place: usize| address::at(address::PACKET, place as u32);
        Ok(match offset {
            0 => packet(data),
            4 => packet(end),
            8 => packet(meta),
            12 => u64::from(self.packet.interface),
            16 => u64::from(self.packet.queue),
            20 if self.in_device_map() => u64::from(self.packet.leaves),
            _ => return Err(self.refused(at, 4, Access::Read)),
        })
    }

    /// Copies bytes for a helper.
    #[inline(always)]
    pub(crate) fn copied(&mut self, at: u64, length: usize) -> Result<Bytes, Fault> {
        if length == 0 {
            return Ok(Bytes::Short([0; 64], 0));
        }
        if length > 64 {
            self.charge(length as u64 / 8)?;
        }
        match self.bytes(at, length, Access::Read) {
            Some(bytes) if length <= 64 => {
                let mut short = [0; 64];
                short[..length].copy_from_slice(bytes);
                Ok(Bytes::Short(short, length))
            }
            Some(bytes) => Ok(Bytes::Long(bytes.to_vec())),
            None => Err(self.refused(at, length, Access::Read)),
        }
    }

    /// Writes the result of a helper.
    pub(crate) fn put(&mut self, at: u64, value: &[u8]) -> Result<(), Fault> {
        match self.bytes(at, value.len(), Access::Write) {
            Some(bytes) => {
                bytes.copy_from_slice(value);
                Ok(())
            }
            None => Err(self.refused(at, value.len(), Access::Write)),
        }
    }

    /// The reason why an access is refused.
    #[cold]
    pub(crate) fn refused(&mut self, at: u64, length: usize, access: Access) -> Fault {
        let does = if access == Access::Read { "reads" } else { "writes" };
        let (region, offset) = address::parts(at);
        let relative = |begin: i64| i64::from(offset as i32) - begin;
        let kind = TrapKind::Access;
        let place = match region {
            0 => {
                let place = match at {
                    0..4096 => format!("the null pointer plus {at}; compare a lookup's result with 0 first"),
                    _ => format!("address {at:#x}; nothing is there"),
                };
                // Such a pointer has its place in a section as its value.
                match unset_pointers(self.maps.iter().map(|map| &map.definition)) {
                    Some(advice) => format!("{place}; {advice}"),
                    None => place,
                }
            }
            address::PACKET => {
                let [_, data, end] = self.packet.places();
                let (at, size) = (relative(data as i64), end - data);
                format!("byte {at} of a packet with {size} bytes in reach; compare with data_end first")
            }
            address::STACK => {
                // The end of one frame is the begin of the next one's gap.
                let frame = (offset.cast_signed().max(0) as usize).saturating_sub(FRAME / 4) / FRAME;
                let at = relative(((frame + 1) * FRAME) as i64);
                format!("r10{at:+} of frame {frame}; a frame has bytes -512 to -1")
            }
            address::CONTEXT => {
                format!("byte {} of the context; it has words of 4 bytes at 0, 4, 8, 12 and 16", relative(0))
            }
            address::MAP | address::FUNCTION => "the address of a map or a function; use helpers".to_owned(),
            address::KEY => "the key of a callback; it is read-only, and as long as the map's key".to_owned(),
            address::VALUES.. => match self.maps.get((region - address::VALUES) as usize) {
                Some(map) if access == Access::Write && !map.is_writable() => {
                    let problem = format!(
                        "{does} {length} bytes of map {}, which programs may only read",
                        map.definition.name
                    );
                    return Fault::new(TrapKind::ReadOnly, problem);
                }
                Some(map) => {
                    let size = map.definition.value_size;
                    format!(
                        "address {at:#x}, not inside one value of map {} ({size} bytes)",
                        map.definition.name
                    )
                }
                None => format!("address {at:#x}; nothing is there"),
            },
            _ => format!("address {at:#x}; nothing is there"),
        };
        Fault::new(kind, format!("{does} {length} bytes at {place}"))
    }
}
