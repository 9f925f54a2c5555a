//! The memory that a core may access. An [`AddressSpace`] is a short list of [`Region`]s, built for one slice.

use crate::cache::Cache;
use crate::operand::{Word, WordBytes, WordExtra};
use crate::profile::{Cause, Profile};
use crate::region::{Bytes, Region};
use crate::trap::{Access, Nearest, TrapKind};
use crate::words::OrderedWords;
use arrayvec::ArrayVec;
use std::fmt;

/// The stack pointer's register number.
const SP: usize = 2;

/// Maximum number of regions of an address space.
pub const MAX_REGIONS: usize = 16;

/// The widest access of a device: its registers have 32 bits.
const DEVICE_BYTES: u32 = 4;

/// No region: the initial value of a fast path's remembered region.
const NONE: u8 = u8::MAX;

/// Added to a remembered region that is beside DMA. The fast path finds no such region, and the path after it does.
const BESIDE_DMA: u8 = 0x80;

/// The regions that one slice of one context may access.
///
/// It is on the stack and allocates nothing, so that it can be built anew for every slice. Where regions overlap, the
/// first one pushed counts.
#[derive(Debug)]
pub struct AddressSpace<'a> {
    pub(crate) regions: ArrayVec<Region<'a>, MAX_REGIONS>,
    /// The region that the last load through each base register hit, if it needs no further check.
    hot_load: [u8; 64],
    /// The same for stores.
    hot_store: [u8; 64],
    stack: Option<u8>,
    /// Words that are ordered in any region, sorted by address.
    ordered_words: Option<&'a OrderedWords>,
    /// The cache through which code is fetched, and the offset that it adds to addresses.
    code: Option<(&'a mut Cache, u32)>,
    turns: Option<Turner<'a>>,
    dma: Option<&'a (dyn Dma + 'a)>,
    /// Counts the cycles of the slice, and the call path in it.
    pub(crate) profile: Option<&'a mut Profile>,
    pub(crate) path: u32,
    /// The target of an atomic operation where stores are ignored.
    ignored: [u8; 8],
}

/// The instruction of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub pc: u32,
    /// The index of its call path, with a [`Profile`].
    pub path: u32,
}

/// DMA at the banks of memories that it shares with cores. DMA has priority.
pub trait Dma {
    /// Returns the cycles for which an access that begins at `cycle` waits for its bank.
    fn wait(&self, cycle: u64, address: u32, origin: Origin) -> u32;
}

/// An instruction for which the order among the cores matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderPoint {
    /// LR, SC or an AMO.
    Atomic {
        /// The address of the word.
        address: u32,
        /// 4 or 8 bytes.
        size: u32,
        /// Whether it may change the word. LR does not.
        write: bool,
    },
    /// `fence` or `fence.i`.
    Fence,
    /// A load from or store to an ordered region.
    Memory {
        /// The first address.
        address: u32,
        /// 1, 2, 4 or 8 bytes.
        size: u32,
        /// Whether it stores.
        write: bool,
    },
}

/// Grants accesses their turns inside a slice, if it knows that no other access comes before.
pub trait Turns {
    /// Requests the turn of an access by the instruction at `pc` to an ordered region, which begins at `cycle`. Returns
    /// the cycles that it takes beyond those of its instruction if the turn is granted. Otherwise the slice ends before
    /// it.
    fn turn(&mut self, cycle: u64, pc: u32, point: OrderPoint) -> Option<u64>;

    /// Returns the causes of the cycles of the last granted turn, which are their sum. Only a [`Profile`] asks.
    fn causes(&self) -> &[(Cause, u64)] {
        &[]
    }
}

/// The grantor of turns, and the cycles for which the slice may continue after one.
struct Turner<'a> {
    turns: &'a mut (dyn Turns + 'a),
    slice: u64,
}

impl fmt::Debug for dyn Dma + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dma")
    }
}

impl fmt::Debug for Turner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Turner({} cycles)", self.slice)
    }
}

/// The additional cost of a load or store.
#[derive(Clone, Copy)]
pub(crate) struct AccessCost {
    pub extra: u32,
    /// The part of them that waits for DMA, and the cause of the rest.
    pub dma: u32,
    pub cause: Cause,
    /// The cycles for which the slice may continue after it, if its turn was granted.
    pub slice: Option<u64>,
}

impl AccessCost {
    /// Returns the causes of the cycles, with those of a misaligned access.
    pub(crate) const fn causes(&self, misaligned: u32) -> [(Cause, u32); 3] {
        [(self.cause, self.extra - self.dma), (Cause::DmaBank, self.dma), (Cause::Misaligned, misaligned)]
    }
}

/// The reason why a load or store cannot be done at once.
pub(crate) enum Stop {
    /// The region is ordered.
    Order,
    /// The region is a device.
    Device,
    /// The access traps.
    Trap(TrapKind),
}

/// One load or store, as far as it matters to the address space.
#[derive(Clone, Copy)]
pub(crate) struct Reference {
    pub access: Access,
    pub address: u32,
    pub size: u32,
    /// The number of the register with the address.
    pub base_register: u8,
    pub stack_pointer: u32,
    /// Whether it may be misaligned.
    pub misaligned: bool,
    /// Whether it is performed in its order, so that it may access an ordered region.
    pub in_order: bool,
    /// The start of its instruction, and its pc, inside a slice.
    pub cycle: u64,
    pub pc: u32,
}

impl<'a> AddressSpace<'a> {
    /// No regions.
    #[inline]
    pub const fn new() -> AddressSpace<'a> {
        AddressSpace {
            regions: ArrayVec::new_const(),
            hot_load: [NONE; 64],
            hot_store: [NONE; 64],
            stack: None,
            ordered_words: None,
            code: None,
            turns: None,
            dma: None,
            profile: None,
            path: 0,
            ignored: [0; 8],
        }
    }

    /// Orders accesses to these words like those to an [ordered](Region::ordered) region.
    #[inline]
    pub fn order_words(&mut self, words: &'a OrderedWords) {
        self.ordered_words = Some(words).filter(|words| !words.is_empty());
    }

    /// Returns the space with these words [ordered](AddressSpace::order_words), to build it in one expression.
    pub fn with_ordered_words(mut self, words: &'a OrderedWords) -> AddressSpace<'a> {
        self.order_words(words);
        self
    }

    /// Fetches code through a cache: a slice ends before a block with a missing line
    /// ([`Exit::Fetch`](crate::Exit::Fetch)). `program` is added to addresses of code, so that programs at the same
    /// addresses have separate lines. Without a cache a fetch takes no time.
    #[inline]
    pub const fn fetch_through(&mut self, cache: &'a mut Cache, program: u32) {
        self.code = Some((cache, program));
    }

    /// Makes accesses to ordered regions request their turns before the slice ends for them. The slice may continue for
    /// `slice` cycles after each granted turn. No turn is requested if code is fetched through a cache or instructions
    /// overlap: there the results of a slice depend on its start.
    #[inline]
    pub fn take_turns(&mut self, turns: &'a mut (dyn Turns + 'a), slice: u64) {
        self.turns = Some(Turner { turns, slice });
    }

    /// Makes accesses to regions [beside DMA](Region::beside_dma) wait for it.
    #[inline]
    pub fn wait_for_dma(&mut self, dma: &'a (dyn Dma + 'a)) {
        self.dma = Some(dma);
    }

    /// Counts the cycles of the instructions that this space serves.
    #[inline]
    pub fn count_in(&mut self, profile: &'a mut Profile) {
        self.path = profile.path();
        self.profile = Some(profile);
    }

    /// The profile, between slices.
    pub fn profile(&mut self) -> Option<&mut Profile> {
        self.profile.as_deref_mut()
    }

    /// Stops the requests for turns.
    pub(crate) fn take_no_turns(&mut self) {
        self.turns = None;
    }

    /// Returns the cycles for which an access waits for DMA.
    #[inline]
    fn dma_wait(&self, index: usize, reference: Reference) -> u32 {
        let dma = self.dma.filter(|_| self.regions[index].beside_dma);
        let origin = Origin { pc: reference.pc, path: self.path };
        dma.map_or(0, |dma| dma.wait(reference.cycle, reference.address, origin))
    }

    /// Requests the turn of an access to an ordered region. Returns its cost.
    fn turn(&mut self, index: usize, reference: Reference) -> Result<AccessCost, Stop> {
        let Reference { access, address, size, cycle, pc, .. } = reference;
        let turner = self.turns.as_mut().filter(|_| self.code.is_none() && self.regions[index].ordered);
        let Some(Turner { turns, slice }) = turner else { return Err(Stop::Order) };
        let point = OrderPoint::Memory { address, size, write: access == Access::Write };
        let extra = turns.turn(cycle, pc, point).ok_or(Stop::Order)?;
        let extra = u32::try_from(extra).unwrap_or(u32::MAX);
        Ok(AccessCost { extra, dma: 0, cause: Cause::Execute, slice: Some(*slice) })
    }

    /// The causes of the last granted turn.
    pub(crate) fn causes_of_turn(&self) -> &[(Cause, u64)] {
        self.turns.as_ref().map_or(&[], |turner| turner.turns.causes())
    }

    /// Whether code is fetched through a cache.
    pub(crate) const fn has_code_cache(&self) -> bool {
        self.code.is_some()
    }

    /// Returns the first line of code from `from` to `to` that is not in the instruction cache at `cycle`, and the
    /// start of the next one.
    #[inline]
    pub(crate) fn missing_line(&mut self, from: u32, to: u32, cycle: u64) -> Option<(u32, u32)> {
        let (cache, program) = self.code.as_mut()?;
        let line = cache.missing(from.wrapping_add(*program), to.wrapping_add(*program), cycle)?;
        let line = line.wrapping_sub(*program);
        Some((line, line.wrapping_add(cache.shape().line)))
    }

    /// Adds a region.
    ///
    /// # Panics
    /// If there are [`MAX_REGIONS`] already.
    #[inline]
    pub fn push(&mut self, region: Region<'a>) {
        if region.stack {
            self.stack = Some(self.regions.len() as u8);
        }
        self.regions.push(region);
    }

    /// Returns the space with one more region, to build it in one expression.
    #[inline]
    pub fn with(mut self, region: Region<'a>) -> AddressSpace<'a> {
        self.push(region);
        self
    }

    /// The regions, in order.
    pub fn regions(&self) -> &[Region<'a>] {
        &self.regions
    }

    /// The stack's region.
    #[inline]
    pub(crate) fn stack(&self) -> Option<&Region<'a>> {
        Some(&self.regions[usize::from(self.stack?)])
    }

    /// Returns `len` bytes at `address`, for a pointer of a command. One region must hold them all and be readable.
    ///
    /// # Errors
    /// The trap of an equivalent load.
    #[inline]
    pub fn read(&self, address: u32, len: u32) -> Result<&[u8], TrapKind> {
        let (index, offset) = self.check(Access::Read, address, len)?;
        Ok(&self.regions[index].bytes()[offset..offset + len as usize])
    }

    /// Returns `len` bytes at `address` to be written. A caller that shares this memory between cores must also call
    /// [`Reservations::invalidate`](crate::Reservations::invalidate).
    ///
    /// # Errors
    /// The trap of an equivalent store.
    pub fn write(&mut self, address: u32, len: u32) -> Result<&mut [u8], TrapKind> {
        let (index, offset) = self.check(Access::Write, address, len)?;
        let bytes = self.regions[index].bytes_mut().expect("a writable region has mutable bytes");
        Ok(&mut bytes[offset..offset + len as usize])
    }

    #[inline]
    fn check(&self, access: Access, address: u32, len: u32) -> Result<(usize, usize), TrapKind> {
        let outside =
            || TrapKind::OutOfRegion { access, address, size: len, nearest: self.nearest(address, len) };
        let (index, offset) = self.find(address, len).ok_or_else(outside)?;
        let region = &self.regions[index];
        if region.device {
            return Err(outside());
        }
        region.permit_command(access, address, len)?;
        Ok((index, offset))
    }

    #[inline]
    fn find(&self, address: u32, len: u32) -> Option<(usize, usize)> {
        for (index, region) in self.regions.iter().enumerate() {
            if let Some(offset) = region.offset_of(address, u64::from(len)) {
                return Some((index, offset));
            }
        }
        None
    }

    pub(crate) fn nearest(&self, address: u32, size: u32) -> Option<Nearest> {
        self.regions.iter().map(Region::nearest).min_by_key(|n| n.distance(address, size))
    }

    /// Loads `N` bytes if the last load through the same register hit a plain region.
    #[inline(always)]
    pub(crate) fn load_fast<const N: usize>(&self, base_register: u8, address: u32) -> Option<[u8; N]> {
        let region = self.regions.get(self.hot_load[base_register as usize & 63] as usize)?;
        if address as usize & (N - 1) != 0 {
            return None;
        }
        let offset = address.wrapping_sub(region.base) as usize;
        region.bytes().get(offset..offset + N)?.try_into().ok()
    }

    /// Stores if the last store through the same register hit a plain region. Returns whether it did.
    #[inline(always)]
    pub(crate) fn store_fast<const N: usize>(
        &mut self,
        base_register: u8,
        address: u32,
        value: [u8; N],
    ) -> bool {
        let hot = self.hot_store[base_register as usize & 63] as usize;
        let Some(region) = self.regions.get_mut(hot) else { return false };
        if address as usize & (N - 1) != 0 {
            return false;
        }
        let offset = address.wrapping_sub(region.base) as usize;
        let Some(bytes) = region.bytes_mut() else { return false };
        match bytes.get_mut(offset..offset + N) {
            Some(bytes) => {
                bytes.copy_from_slice(&value);
                true
            }
            None => false,
        }
    }

    /// Forgets the regions that stores hit, so that each takes the slow path: a word has been reserved.
    pub(crate) fn forget_stores(&mut self) {
        self.hot_store = [NONE; 64];
    }

    /// Loads up to eight bytes, zero-extended. Returns the extra cycles as well.
    #[cold]
    #[inline(never)]
    pub(crate) fn load(&mut self, reference: Reference) -> Result<(u64, AccessCost), Stop> {
        let hot = self.hot_load[reference.base_register as usize & 63];
        let (index, offset, ordered) = match self.hot_beside_dma(hot, reference) {
            Some((index, offset)) => (index, offset, false),
            None => self.resolve(reference)?,
        };
        let took = match ordered {
            true => self.turn(index, reference)?,
            false => {
                let waits = self.dma_wait(index, reference);
                let region = &self.regions[index];
                AccessCost { extra: region.load_extra + waits, dma: waits, cause: region.cause, slice: None }
            }
        };
        let region = &self.regions[index];
        let mut value = [0; 8];
        let size = reference.size as usize;
        value[..size].copy_from_slice(&region.bytes()[offset..offset + size]);
        let place = reference.base_register as usize & 63;
        if let Some(hot) = self.hot(index, took.extra, ordered, reference) {
            self.hot_load[place] = hot;
        }
        Ok((u64::from_le_bytes(value), took))
    }

    /// Stores the low bytes of `value`. Returns the extra cycles, and whether other cores may see the store. `cache`
    /// allows the next store through the same register to take the fast path.
    #[cold]
    #[inline(never)]
    pub(crate) fn store(
        &mut self,
        reference: Reference,
        value: u64,
        cache: bool,
    ) -> Result<(AccessCost, bool), Stop> {
        let hot = self.hot_store[reference.base_register as usize & 63];
        let (index, offset, ordered) = match self.hot_beside_dma(hot, reference) {
            Some((index, offset)) => (index, offset, false),
            None => self.resolve(reference)?,
        };
        let took = match ordered {
            true => self.turn(index, reference)?,
            false => {
                let waits = self.dma_wait(index, reference);
                let region = &self.regions[index];
                AccessCost { extra: region.store_extra + waits, dma: waits, cause: region.cause, slice: None }
            }
        };
        let region = &mut self.regions[index];
        let size = reference.size as usize;
        if !region.ignores_stores {
            let bytes = region.bytes_mut().expect("a writable region has mutable bytes");
            bytes[offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        let stack = region.stack;
        let place = reference.base_register as usize & 63;
        if let Some(hot) = self.hot(index, took.extra, ordered, reference).filter(|_| cache) {
            self.hot_store[place] = hot;
        }
        Ok((took, !stack))
    }

    /// Checks an atomic access. Returns its word, its latency and whether other cores may see it.
    pub(crate) fn atomic(&mut self, reference: Reference) -> Result<Word<'_>, Stop> {
        let size = reference.size as usize;
        let (index, offset, _) = match self.resolve(reference) {
            Err(Stop::Device) => {
                let name = self
                    .find(reference.address, reference.size)
                    .map_or("a device", |(i, _)| self.regions[i].name);
                return Err(Stop::Trap(TrapKind::AtomicOnDevice {
                    address: reference.address,
                    region: name,
                }));
            }
            resolved => resolved?,
        };
        let waits = self.dma_wait(index, reference);
        let region = &mut self.regions[index];
        let extra = WordExtra {
            lr: region.load_extra + waits,
            amo: region.amo_extra + waits,
            sc: region.sc_extra + waits,
        };
        let shared = !region.stack;
        if region.ignores_stores {
            let ignored = &mut self.ignored[..size];
            ignored.copy_from_slice(&region.bytes()[offset..offset + size]);
            return Ok(Word { bytes: WordBytes::Mutable(ignored), extra, shared });
        }
        let bytes = match &mut region.bytes {
            Bytes::Mutable(bytes) => WordBytes::Mutable(&mut bytes[offset..offset + size]),
            Bytes::Shared(bytes) => WordBytes::Shared(&bytes[offset..offset + size]),
        };
        Ok(Word { bytes, extra, shared })
    }

    /// Returns the region and the offset of an access if the last one through the same register hit a plain region
    /// beside DMA.
    #[inline]
    fn hot_beside_dma(&self, hot: u8, reference: Reference) -> Option<(usize, usize)> {
        let index = usize::from(hot & !BESIDE_DMA);
        let region = self.regions.get(index).filter(|_| hot & BESIDE_DMA != 0)?;
        let Reference { address, size, in_order, .. } = reference;
        let offset =
            region.offset_of(address, size.into()).filter(|_| address.is_multiple_of(size) && !in_order)?;
        Some((index, offset))
    }

    /// Returns the mark to remember for the region of an access. There is one only if a hit in the region needs no
    /// check but its bounds.
    #[inline]
    fn hot(&self, index: usize, extra: u32, ordered: bool, reference: Reference) -> Option<u8> {
        let region = &self.regions[index];
        let beside_dma = region.beside_dma && self.dma.is_some();
        let sp_elsewhere = reference.base_register as usize == SP && self.stack.is_some() && !region.stack;
        // They are sorted: either the first one after the region's base is inside, or none is.
        let words_inside = || {
            let first = self.ordered_words.and_then(|words| words.first_from(region.base));
            first.is_some_and(|word| region.offset_of(word, 1).is_some())
        };
        let plain = (extra == 0 || beside_dma) && !ordered && !region.ordered && !region.whole_words;
        let index = index as u8 | if beside_dma { BESIDE_DMA } else { 0 };
        (plain && !sp_elsewhere && !words_inside()).then_some(index)
    }

    /// Whether an access is to a word that is ordered by itself.
    fn is_ordered_word(&self, address: u32, size: u32) -> bool {
        let Some(words) = self.ordered_words else { return false };
        let found = |address: u32| words.contains(address & !3);
        let last = address.wrapping_add(size - 1);
        // A misaligned access of eight bytes is to three words.
        let between = || size == 8 && found(address.wrapping_add(4));
        found(address) || found(last) || between()
    }

    /// Whether an access is one for [`load_fast`](AddressSpace::load_fast) or [`store_fast`](AddressSpace::store_fast).
    #[inline(always)]
    pub(crate) fn is_hot(&self, base_register: u8, address: u32, size: u32, write: bool) -> bool {
        let hot = if write { &self.hot_store } else { &self.hot_load };
        let region = self.regions.get(usize::from(hot[usize::from(base_register) & 63]));
        region.is_some_and(|region| {
            let offset = u64::from(address.wrapping_sub(region.base));
            address & (size - 1) == 0 && offset + u64::from(size) <= region.bytes().len() as u64
        })
    }

    /// Whether an access completes at once: it neither traps nor waits for its turn.
    pub(crate) fn is_plain(&self, reference: Reference) -> bool {
        matches!(self.resolve(reference), Ok((_, _, false)))
    }

    /// Whether an access must wait for its turn. One that traps need not.
    pub(crate) fn is_ordered(&self, reference: Reference) -> bool {
        matches!(self.resolve(reference), Ok((_, _, true)))
    }

    /// Returns the region of an access, its offset, and whether it must wait for its turn.
    #[inline]
    fn resolve(&self, reference: Reference) -> Result<(usize, usize, bool), Stop> {
        let Reference { access, address, size, .. } = reference;
        if !address.is_multiple_of(size) && !reference.misaligned {
            return Err(Stop::Trap(TrapKind::Misaligned { access, address, size }));
        }
        let found = self.find(address, size);
        if let Some(kind) = self.stack_overflow(reference, found.is_none()) {
            return Err(Stop::Trap(kind));
        }
        let Some((index, offset)) = found else {
            let nearest = self.nearest(address, size);
            return Err(Stop::Trap(TrapKind::OutOfRegion { access, address, size, nearest }));
        };
        let region = &self.regions[index];
        region.permit(access, address, size).map_err(Stop::Trap)?;
        let is_word = if access == Access::Read {
            address % 4 + size <= 4
        } else {
            size == 4 && address.is_multiple_of(4)
        };
        // A double word is two whole words.
        let is_word = is_word || size == 8 && address.is_multiple_of(8) && !region.device;
        if region.whole_words && !is_word {
            return Err(Stop::Trap(TrapKind::PartOfWord { access, address, size, region: region.name }));
        }
        if region.device {
            if size > DEVICE_BYTES {
                return Err(Stop::Trap(TrapKind::WideOnDevice { access, address, region: region.name }));
            }
            if !address.is_multiple_of(size) && !region.any_byte {
                return Err(Stop::Trap(TrapKind::Misaligned { access, address, size }));
            }
            return Err(Stop::Device);
        }
        let ordered = !reference.in_order && (region.ordered || self.is_ordered_word(address, size));
        Ok((index, offset, ordered))
    }

    /// Returns the stack overflow of an access, if it is one. An access in the guard below the stack is one if no
    /// region is there, and through the stack pointer in any case. An access outside all regions is one if the stack
    /// pointer has left the stack.
    fn stack_overflow(&self, reference: Reference, outside: bool) -> Option<TrapKind> {
        let stack = &self.regions[self.stack? as usize];
        let Reference { address, stack_pointer, .. } = reference;
        let below = |a: u32| a < stack.base && stack.base - a <= stack.guard;
        let through_sp = reference.base_register as usize == SP;
        let overflow = below(address) && (outside || through_sp) || outside && stack_pointer < stack.base;
        overflow.then_some(TrapKind::StackOverflow { address, bottom: stack.base, size: stack.size() })
    }
}

impl Default for AddressSpace<'_> {
    fn default() -> Self {
        AddressSpace::new()
    }
}
