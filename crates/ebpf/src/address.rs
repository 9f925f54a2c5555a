//! Addresses of the machine: the upper half names a region, and the lower half a byte of it, from [`BASE`] on.
//!
//! A pointer below a region's first byte is still of the region, so that an error can name it.

/// The low half of a region's first byte.
pub const BASE: u32 = 0x1000_0000;

/// The largest region.
pub const LARGEST: u64 = (1 << 32) - (2 * BASE as u64);

/// Region of the context.
pub const CONTEXT: u32 = 1;
/// Region of the packet.
pub const PACKET: u32 = 2;
/// Region of the stacks.
pub const STACK: u32 = 3;
/// Region of maps themselves, without readable bytes.
pub const MAP: u32 = 4;
/// Region of functions, without readable bytes.
pub const FUNCTION: u32 = 5;
/// Region of the key of a callback.
pub const KEY: u32 = 6;
/// Region of the first map's values; that of map `n` is `VALUES + n`.
pub const VALUES: u32 = 16;

/// The most maps of a machine.
pub const MOST_MAPS: usize = 1 << 16;

/// An address in a region.
#[inline(always)]
pub fn at(region: u32, offset: u32) -> u64 {
    (u64::from(region) << 32) | u64::from(BASE.wrapping_add(offset))
}

/// The region and the byte in it.
#[inline(always)]
pub fn parts(address: u64) -> (u32, u32) {
    ((address >> 32) as u32, (address as u32).wrapping_sub(BASE))
}

/// The address that stands for a map.
pub fn map(number: u32) -> u64 {
    at(MAP, number.wrapping_mul(8))
}

/// The address of a byte of a map's values.
pub fn value(number: u32, offset: u32) -> u64 {
    at(VALUES.wrapping_add(number), offset)
}

/// The address that stands for a function.
pub fn function(step: u32) -> u64 {
    at(FUNCTION, step.wrapping_mul(8))
}
