//! The IOMMU of a root complex: a TLB of pages, and walkers of the page tables.
//!
//! Each TLP of a card names a page. The TLB is fully associative and replaces the least recently used page. A missing
//! page takes a free walker for the time of a walk, and TLPs to a page under way wait for the same walk. Posted writes
//! become visible in their order. So writes and reads wait for the walks of the writes before them. The mechanism is not
//! compared with measurements.

use nicety_types::{Duration, Time};
use std::ops::Range;

/// The specification of an IOMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IommuSpec {
    /// Number of pages in the TLB.
    pub entries: u64,
    /// Size of a page in bytes, a power of two. No TLP crosses a page of 4 KiB.
    pub page: u64,
    /// Time of a walk of the page tables.
    pub walk: Duration,
    /// Number of walks at the same time.
    pub walkers: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: u64,
    /// The last use.
    used: u64,
    /// The end of the page's walk.
    ready: Time,
}

/// The state of an IOMMU.
#[derive(Debug)]
pub struct Iommu {
    spec: IommuSpec,
    entries: Vec<Entry>,
    /// The times at which the walkers are free.
    walkers: Vec<Time>,
    uses: u64,
    /// The time at which all writes so far are visible.
    written: Time,
}

impl Iommu {
    /// Returns an IOMMU with an empty TLB.
    pub(crate) fn new(spec: IommuSpec) -> Iommu {
        let walkers = vec![Time::ZERO; spec.walkers as usize];
        Iommu { spec, entries: Vec::new(), walkers, uses: 0, written: Time::ZERO }
    }

    /// Fills the TLB with the pages of `bytes`, in their order and without time.
    pub fn warm(&mut self, bytes: Range<u64>) {
        for page in bytes.start / self.spec.page..bytes.end.div_ceil(self.spec.page) {
            if self.find(page).is_none() {
                self.insert(page, Time::ZERO);
            }
        }
    }

    /// A write to `address` arrives at `at`. Returns the time at which its address and those of all earlier writes are
    /// translated.
    pub(crate) fn write(&mut self, at: Time, address: u64) -> Time {
        self.written = self.translate(at, address).max(self.written);
        self.written
    }

    /// A read of `address` arrives at `at`. Returns the time at which its address is translated, behind the writes.
    pub(crate) fn read(&mut self, at: Time, address: u64) -> Time {
        self.translate(at, address).max(self.written)
    }

    fn translate(&mut self, at: Time, address: u64) -> Time {
        let page = address / self.spec.page;
        if let Some(ready) = self.find(page) {
            return at.max(ready);
        }
        let walker = self.walkers.iter_mut().min().expect("an IOMMU has a walker at least");
        *walker = at.max(*walker) + self.spec.walk;
        let ready = *walker;
        self.insert(page, ready);
        ready
    }

    /// Uses a page, if it is in the TLB or on its way. Returns the end of its walk.
    fn find(&mut self, page: u64) -> Option<Time> {
        self.uses += 1;
        let entry = self.entries.iter_mut().find(|entry| entry.page == page)?;
        entry.used = self.uses;
        Some(entry.ready)
    }

    fn insert(&mut self, page: u64, ready: Time) {
        let entry = Entry { page, used: self.uses, ready };
        if (self.entries.len() as u64) < self.spec.entries {
            self.entries.push(entry);
            return;
        }
        let oldest = self.entries.iter_mut().min_by_key(|entry| entry.used);
        *oldest.expect("a TLB has an entry at least") = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ns(time: u64) -> Time {
        Time::from_ps(time * 1000)
    }

    fn small(entries: u64, walkers: u64) -> Iommu {
        Iommu::new(IommuSpec { entries, page: 4096, walk: Duration::from_ns(300), walkers })
    }

    #[test]
    fn a_page_is_walked_once_while_it_is_in_the_tlb() {
        let mut iommu = small(2, 1);
        assert_eq!(iommu.read(ns(10), 0), ns(310));
        // The same walk, and after it a hit.
        assert_eq!(iommu.read(ns(20), 4095), ns(310));
        assert_eq!(iommu.read(ns(400), 64), ns(400));
        assert_eq!(iommu.read(ns(500), 4096), ns(800));
        // Page 2 replaces page 0, which page 1 was used after.
        assert_eq!(iommu.read(ns(1000), 2 * 4096), ns(1300));
        assert_eq!(iommu.read(ns(2000), 4096), ns(2000));
        assert_eq!(iommu.read(ns(3000), 0), ns(3300));
    }

    #[test]
    fn walks_wait_for_a_walker() {
        let mut one = small(8, 1);
        let mut two = small(8, 2);
        let ends = |iommu: &mut Iommu| [0, 1, 2].map(|page| iommu.read(ns(0), page * 4096));
        assert_eq!(ends(&mut one), [ns(300), ns(600), ns(900)]);
        assert_eq!(ends(&mut two), [ns(300), ns(300), ns(600)]);
    }

    #[test]
    fn writes_are_visible_in_order_and_reads_behind_them_wait() {
        let mut iommu = small(8, 2);
        iommu.warm(4096..8192);
        assert_eq!(iommu.write(ns(0), 0), ns(300));
        assert_eq!(iommu.write(ns(10), 4096), ns(300));
        assert_eq!(iommu.read(ns(20), 4096), ns(300));
        assert_eq!(iommu.read(ns(310), 4096), ns(310));
    }

    #[test]
    fn a_warm_tlb_holds_the_last_pages() {
        let mut iommu = small(2, 1);
        iommu.warm(0..3 * 4096);
        assert_eq!(iommu.read(ns(1), 4096), ns(1));
        assert_eq!(iommu.read(ns(2), 2 * 4096), ns(2));
        assert_eq!(iommu.read(ns(3), 0), ns(303));
    }

    proptest! {
        #[test]
        fn a_translation_takes_at_most_all_walks_before_it(
            entries in 1u64..5,
            walkers in 1u64..4,
            accesses in prop::collection::vec((0u64..8, prop::bool::ANY), 1..40),
        ) {
            let mut iommu = small(entries, walkers);
            let mut written = Time::ZERO;
            for (at, (page, writes)) in accesses.into_iter().enumerate() {
                let now = ns(at as u64);
                let ready = if writes { iommu.write(now, page * 4096) } else { iommu.read(now, page * 4096) };
                prop_assert!(ready >= now && ready >= written);
                prop_assert!(ready <= now + Duration::from_ns(300) * (at as u64 + 1));
                prop_assert!(iommu.entries.len() as u64 <= entries);
                if writes {
                    written = ready;
                }
            }
        }
    }
}
