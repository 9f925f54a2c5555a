//! A region of the memory that a core may access: bytes or a device, its access costs and permissions.

use crate::profile::Cause;
use crate::trap::{Access, Nearest, TrapKind};

/// Both variants have the same layout, so that a load need not distinguish them.
#[derive(Debug)]
pub(crate) enum Bytes<'a> {
    Mutable(&'a mut [u8]),
    Shared(&'a [u8]),
}

/// A range of addresses with bytes, or a device.
///
/// Made with [`memory`](Region::memory), [`read_only`](Region::read_only), [`stack`](Region::stack) or
/// [`device`](Region::device), and refined with the methods that take and return it:
///
/// ```
/// use nicety_hpu::Region;
/// let mut bytes = vec![0; 4096];
/// let l2 = Region::memory("handler memory", 0x1c00_0000, &mut bytes).latency(20, 21);
/// assert_eq!(l2.size(), 4096);
/// ```
#[derive(Debug)]
pub struct Region<'a> {
    pub(crate) bytes: Bytes<'a>,
    /// The size of a device, which has no bytes.
    pub(crate) device_size: u32,
    pub(crate) base: u32,
    pub(crate) load_extra: u32,
    pub(crate) store_extra: u32,
    pub(crate) amo_extra: u32,
    pub(crate) sc_extra: u32,
    /// The cause of these cycles in profiles.
    pub(crate) cause: Cause,
    pub(crate) guard: u32,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) ordered: bool,
    pub(crate) device: bool,
    pub(crate) stack: bool,
    pub(crate) whole_words: bool,
    pub(crate) any_byte: bool,
    pub(crate) ignores_stores: bool,
    pub(crate) beside_dma: bool,
    pub(crate) name: &'static str,
}

impl<'a> Region<'a> {
    #[inline]
    fn new(name: &'static str, base: u32, bytes: Bytes<'a>) -> Region<'a> {
        let writable = matches!(bytes, Bytes::Mutable(_));
        let region = Region {
            bytes,
            device_size: 0,
            base,
            load_extra: 0,
            store_extra: 0,
            amo_extra: 0,
            sc_extra: 0,
            cause: Cause::Execute,
            guard: 0,
            readable: true,
            writable,
            ordered: false,
            device: false,
            stack: false,
            whole_words: false,
            any_byte: false,
            ignores_stores: false,
            beside_dma: false,
            name,
        };
        assert!(
            u64::from(base) + region.size() <= 1 << 32,
            "{name} reaches over the end of the address space"
        );
        region
    }

    /// Returns memory that may be read and written.
    ///
    /// # Panics
    /// Like all constructors, if the region exceeds the 32-bit address space.
    #[inline]
    pub fn memory(name: &'static str, base: u32, bytes: &'a mut [u8]) -> Region<'a> {
        Region::new(name, base, Bytes::Mutable(bytes))
    }

    /// Returns memory that may only be read.
    #[inline]
    pub fn read_only(name: &'static str, base: u32, bytes: &'a [u8]) -> Region<'a> {
        Region::new(name, base, Bytes::Shared(bytes))
    }

    /// Returns the stack of one context. An access in the `guard` bytes below it is a stack overflow. While the stack
    /// pointer is outside the stack, an access outside all regions is a stack overflow, too.
    #[inline]
    pub fn stack(name: &'static str, base: u32, bytes: &'a mut [u8], guard: u32) -> Region<'a> {
        Region { stack: true, guard, ..Region::memory(name, base, bytes) }
    }

    /// Returns `size` bytes of device registers. Loads and stores leave the slice as
    /// [`Exit::Device`](crate::Exit::Device).
    #[inline]
    pub fn device(name: &'static str, base: u32, size: u32) -> Region<'a> {
        let region = Region::new(name, base, Bytes::Shared(&[]));
        assert!(
            u64::from(base) + u64::from(size) <= 1 << 32,
            "{name} reaches over the end of the address space"
        );
        Region { device: true, writable: true, device_size: size, ..region }
    }

    /// Sets the additional cycles of a load and a store over [`CycleCosts`](crate::CycleCosts). An AMO takes the
    /// load's, an SC the store's.
    #[inline]
    pub const fn latency(mut self, load_extra: u32, store_extra: u32) -> Region<'a> {
        (self.load_extra, self.amo_extra) = (load_extra, load_extra);
        (self.store_extra, self.sc_extra) = (store_extra, store_extra);
        self
    }

    /// Sets the additional cycles of an AMO or SC, instead of those of [`latency`](Region::latency).
    #[inline]
    pub const fn atomic_latency(mut self, extra: u32) -> Region<'a> {
        (self.amo_extra, self.sc_extra) = (extra, extra);
        self
    }

    /// Sets the cause of the additional cycles in profiles, instead of [`Cause::Execute`].
    #[inline]
    pub const fn caused_by(mut self, cause: Cause) -> Region<'a> {
        self.cause = cause;
        self
    }

    /// Makes the memory ordered: an access ends the slice before it ([`Exit::Order`](crate::Exit::Order)), so that the
    /// cores reach the memory's queue in the order of their cycles.
    #[inline]
    pub const fn ordered(mut self) -> Region<'a> {
        self.ordered = true;
        self
    }

    /// Marks a memory with banks that DMA also uses: an access waits for it
    /// ([`AddressSpace::wait_for_dma`](crate::AddressSpace::wait_for_dma)).
    #[inline]
    pub const fn beside_dma(mut self) -> Region<'a> {
        self.beside_dma = true;
        self
    }

    /// Restricts accesses to word registers. A load of a part of a word returns that part, since compilers make such
    /// loads of word loads. A store to a part, and an access to parts of two words, traps.
    #[inline]
    pub const fn whole_words(mut self) -> Region<'a> {
        self.whole_words = true;
        self
    }

    /// Makes a device take accesses at any byte where the core makes misaligned ones
    /// ([`Misaligned::Costs`](crate::Misaligned::Costs)). It has the access's bytes, as a memory behind a bus. Other devices
    /// trap.
    #[inline]
    pub const fn at_any_byte(mut self) -> Region<'a> {
        self.any_byte = true;
        self
    }

    /// Makes registers accept stores, atomic ones too, without effect. A command that would write there is refused.
    #[inline]
    pub const fn ignores_stores(mut self) -> Region<'a> {
        self.ignores_stores = true;
        self
    }

    /// Restricts accesses of the core. A read-only region stays read-only.
    #[inline]
    pub const fn permissions(mut self, readable: bool, writable: bool) -> Region<'a> {
        self.readable = readable;
        self.writable = self.writable && writable;
        self
    }

    /// The first address.
    #[inline]
    pub const fn base(&self) -> u32 {
        self.base
    }

    /// The size in bytes.
    #[inline]
    pub const fn size(&self) -> u64 {
        if self.device { self.device_size as u64 } else { self.bytes().len() as u64 }
    }

    /// The name in traps.
    #[inline]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    #[inline(always)]
    pub(crate) const fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mutable(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match &mut self.bytes {
            Bytes::Mutable(bytes) => Some(bytes),
            Bytes::Shared(_) => None,
        }
    }

    /// Returns the offset of `len` bytes at `address` in the region, if it holds all of them.
    #[inline]
    pub(crate) fn offset_of(&self, address: u32, len: u64) -> Option<usize> {
        let offset = address.wrapping_sub(self.base);
        (u64::from(offset) + len <= self.size()).then_some(offset as usize)
    }

    pub(crate) fn nearest(&self) -> Nearest {
        Nearest { region: self.name, base: self.base, size: self.size() }
    }

    #[inline]
    pub(crate) fn permit(&self, access: Access, address: u32, size: u32) -> Result<(), TrapKind> {
        self.permit_if(access, address, size, self.writable || self.ignores_stores)
    }

    /// Checks the access of a command, which must leave its bytes there.
    #[inline]
    pub(crate) fn permit_command(&self, access: Access, address: u32, size: u32) -> Result<(), TrapKind> {
        self.permit_if(access, address, size, self.writable)
    }

    #[inline]
    fn permit_if(&self, access: Access, address: u32, size: u32, takes_stores: bool) -> Result<(), TrapKind> {
        let allowed = match access {
            Access::Read | Access::Execute => self.readable,
            Access::Write => takes_stores,
        };
        if allowed { Ok(()) } else { Err(TrapKind::Forbidden { access, address, size, region: self.name }) }
    }
}
