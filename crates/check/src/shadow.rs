//! The shadow of memory: undefined bits of each byte, and the origin of each word that holds a pointer.

use rustc_hash::FxHashMap;

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

fn joined(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// The shadow of one memory. Bytes without a page are defined.
#[derive(Default)]
pub(crate) struct Shadow {
    pages: FxHashMap<u32, Box<Page>>,
}

impl Shadow {
    fn page(&mut self, address: u32) -> &mut Page {
        let new = || Box::new(Page { undefined: [0; PAGE], origins: [0; PAGE / 4] });
        self.pages.entry(address / PAGE as u32).or_insert_with(new)
    }

    /// Returns the undefined bits of up to 8 bytes.
    #[inline]
    pub fn undefined(&self, address: u32, bytes: u32) -> u64 {
        if self.pages.is_empty() {
            return 0;
        }
        let at = address as usize % PAGE;
        if at + bytes as usize <= PAGE {
            let Some(page) = self.pages.get(&(address / PAGE as u32)) else { return 0 };
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
            0 => self.pages.get_mut(&(address / PAGE as u32)).map(|page| &mut **page),
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
                true => self.pages.get_mut(&((from / PAGE as u64) as u32)).map(|page| &mut **page),
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
        let page = self.pages.get(&(address / PAGE as u32));
        page.map_or(0, |page| page.origins[address as usize % PAGE / 4])
    }

    /// Sets the origin of a word.
    #[inline]
    pub fn set_origin(&mut self, address: u32, origin: OriginId) {
        if origin != 0 || self.pages.contains_key(&(address / PAGE as u32)) {
            self.page(address).origins[address as usize % PAGE / 4] = origin;
        }
    }
}
