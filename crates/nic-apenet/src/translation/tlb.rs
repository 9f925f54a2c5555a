//! The TLB: a content-addressed memory of pages, which replaces the least recently used page. It takes no simulated
//! time.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A page of a process: number of the process, and first address of the page.
pub(crate) type Page = (u32, u64);

/// A TLB.
#[derive(Debug)]
pub(crate) struct Tlb {
    entries: usize,
    /// Maps a page to the number of its last use.
    pages: FxHashMap<Page, u64>,
    /// Maps the number of a page's last use to the page.
    uses: BTreeMap<u64, Page>,
    /// Number of uses so far.
    count: u64,
}

impl Tlb {
    /// Returns an empty TLB.
    pub(crate) fn new(entries: usize) -> Tlb {
        Tlb { entries, pages: FxHashMap::default(), uses: BTreeMap::new(), count: 0 }
    }

    /// Returns whether the TLB has a page. A hit counts as a use.
    pub(crate) fn look(&mut self, page: Page) -> bool {
        let Some(last) = self.pages.get_mut(&page) else { return false };
        self.uses.remove(last);
        self.count += 1;
        *last = self.count;
        self.uses.insert(self.count, page);
        true
    }

    /// Enters a page. If the TLB is full, replaces the least recently used page.
    pub(crate) fn fill(&mut self, page: Page) {
        if self.look(page) {
            return;
        }
        if self.pages.len() == self.entries
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.pages.remove(&oldest);
        }
        self.count += 1;
        self.pages.insert(page, self.count);
        self.uses.insert(self.count, page);
    }

    /// Removes a page.
    pub(crate) fn forget(&mut self, page: Page) {
        if let Some(last) = self.pages.remove(&page) {
            self.uses.remove(&last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_least_recently_used_page_is_replaced() {
        let mut tlb = Tlb::new(2);
        tlb.fill((0, 0));
        tlb.fill((0, 4096));
        assert!(tlb.look((0, 0)) && !tlb.look((1, 0)));
        tlb.fill((1, 0));
        assert_eq!([(0, 0), (0, 4096), (1, 0)].map(|page| tlb.look(page)), [true, false, true]);
        tlb.forget((0, 0));
        tlb.fill((0, 8192));
        assert_eq!([(0, 0), (1, 0), (0, 8192)].map(|page| tlb.look(page)), [false, true, true]);
    }

    #[test]
    fn one_page_more_than_entries_in_a_circle_never_hits() {
        for (pages, hits) in [(4, 2 * 4), (5, 0)] {
            let mut tlb = Tlb::new(4);
            let found: usize = (0..3 * pages)
                .map(|at| {
                    let page = (0, at % pages);
                    let hit = tlb.look(page);
                    tlb.fill(page);
                    usize::from(hit)
                })
                .sum();
            assert_eq!(found, hits, "{pages} pages");
        }
    }

    proptest! {
        /// Compares the TLB with its definition: it has the `entries` different pages that were used last.
        #[test]
        fn it_has_the_pages_used_last(
            entries in 1..6usize,
            steps in prop::collection::vec((0..3u8, 0..2u32, 0..6u64), 0..100),
        ) {
            let (mut tlb, mut last) = (Tlb::new(entries), Vec::<Page>::new());
            for (what, process, page) in steps {
                let page = (process, page);
                let there = last.contains(&page);
                if what == 0 {
                    prop_assert_eq!(tlb.look(page), there);
                } else if what == 1 {
                    tlb.fill(page);
                } else {
                    tlb.forget(page);
                }
                last.retain(|other| *other != page);
                if (what == 0 && there) || what == 1 {
                    last.push(page);
                    last = last.split_off(last.len().saturating_sub(entries));
                }
                prop_assert!(tlb.pages.len() == last.len() && tlb.uses.len() == last.len());
            }
        }
    }
}
