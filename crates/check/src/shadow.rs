//! The shadow of memory: undefined bits of each byte, and the origin of each word that holds a pointer.

use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Bytes of a page.
const PAGE: usize = 256;

/// The number of an origin of pointers; 0 for values of no known origin.
pub(crate) type OriginId = u32;

/// The origin of values that depend on the number of the core. Runs on one core follow one another, so what they index by it has an
/// order.
pub(crate) const BY_CORE: OriginId = OriginId::MAX;

struct Page {
    undefined: [u8; PAGE],
    origins: [OriginId; PAGE / 4],
}

#[inline]
fn joined(bytes: &[u8]) -> u64 {
    match *bytes {
        [byte] => byte.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        }
    }
}

/// The entries of the memory of looked-up pages.
const RECENT: usize = 4;
/// No page.
const NONE: u32 = u32::MAX;

/// The shadow of one memory. Bytes without a page are defined.
pub(crate) struct Shadow {
    pages: Vec<Page>,
    /// The places of pages by their numbers.
    places: FxHashMap<u32, u32>,
    /// Pages that were looked up: number and place.
    recent: [Cell<(u32, u32)>; RECENT],
}

impl Default for Shadow {
    fn default() -> Shadow {
        Shadow {
            pages: Vec::new(),
            places: FxHashMap::default(),
            recent: [const { Cell::new((NONE, NONE)) }; RECENT],
        }
    }
}

impl Shadow {
    #[inline]
    fn place(&self, address: u32) -> Option<usize> {
        let number = address / PAGE as u32;
        let recent = &self.recent[number as usize % RECENT];
        let (known, mut place) = recent.get();
        if known != number {
            place = self.places.get(&number).copied().unwrap_or(NONE);
            recent.set((number, place));
        }
        (place != NONE).then_some(place as usize)
    }

    #[inline]
    fn known(&self, address: u32) -> Option<&Page> {
        if self.pages.is_empty() { None } else { self.place(address).map(|place| &self.pages[place]) }
    }

    #[inline]
    fn known_mut(&mut self, address: u32) -> Option<&mut Page> {
        self.place(address).map(|place| &mut self.pages[place])
    }

    fn page(&mut self, address: u32) -> &mut Page {
        let place = self.place(address).unwrap_or_else(|| {
            let (number, place) = (address / PAGE as u32, self.pages.len());
            self.pages.push(Page { undefined: [0; PAGE], origins: [0; PAGE / 4] });
            self.places.insert(number, place as u32);
            self.recent[number as usize % RECENT].set((number, place as u32));
            place
        });
        &mut self.pages[place]
    }

    /// Returns the undefined bits of up to 8 bytes.
    #[inline]
    pub fn undefined(&self, address: u32, bytes: u32) -> u64 {
        let at = address as usize % PAGE;
        if at + bytes as usize <= PAGE {
            let Some(page) = self.known(address) else { return 0 };
            return joined(&page.undefined[at..at + bytes as usize]);
        }
        (0..bytes)
            .map(|at| self.undefined(address.wrapping_add(at), 1) << (8 * at))
            .fold(0, |all, bits| all | bits)
    }

    /// Returns the first address in a range with an undefined bit.
    pub fn first_undefined(&self, address: u32, bytes: u32) -> Option<u32> {
        (0..bytes).map(|at| address.wrapping_add(at)).find(|&at| self.undefined(at, 1) != 0)
    }

    /// Sets the undefined bits of up to 8 bytes.
    #[inline]
    pub fn set(&mut self, address: u32, bytes: u32, undefined: u64) {
        let at = address as usize % PAGE;
        if at + bytes as usize > PAGE {
            for at in 0..bytes {
                self.set(address.wrapping_add(at), 1, undefined >> (8 * at));
            }
            return;
        }
        let page = match undefined & (u64::MAX >> (64 - 8 * bytes)) {
            0 => self.known_mut(address),
            _ => Some(self.page(address)),
        };
        if let Some(page) = page {
            let bits = undefined.to_le_bytes();
            page.undefined[at..at + bytes as usize].copy_from_slice(&bits[..bytes as usize]);
        }
    }

    /// Makes a range defined, or undefined, without origins.
    pub fn fill(&mut self, address: u32, bytes: u32, defined: bool) {
        let (mut from, end) = (u64::from(address), u64::from(address) + u64::from(bytes));
        while from < end {
            let next = (from / PAGE as u64 + 1) * PAGE as u64;
            let (first, last) = ((from % PAGE as u64) as usize, (end.min(next) - from) as usize);
            let page = match defined {
                true => self.known_mut(from as u32),
                false => Some(self.page(from as u32)),
            };
            if let Some(page) = page {
                page.undefined[first..first + last].fill(if defined { 0 } else { 0xff });
                page.origins[first / 4..(first + last).div_ceil(4)].fill(0);
            }
            from = next;
        }
    }

    /// Returns the origin of the pointer in a word.
    #[inline]
    pub fn origin(&self, address: u32) -> OriginId {
        self.known(address).map_or(0, |page| page.origins[address as usize % PAGE / 4])
    }

    /// Sets the origin of a word.
    #[inline]
    pub fn set_origin(&mut self, address: u32, origin: OriginId) {
        let page = if origin != 0 { Some(self.page(address)) } else { self.known_mut(address) };
        if let Some(page) = page {
            page.origins[address as usize % PAGE / 4] = origin;
        }
    }
}
