//! The places where a program can end with `XDP_ABORTED`, and ends behind the code of a function.

use super::demand::Part;
use super::ir::Value;
use crate::aborted::Site;
use std::ops::Range;

/// The name of the counters: a word for each place.
pub const ABORTED_NAME: &str = "nicety_xdp_aborted";

/// An end behind the code of the function.
#[derive(Clone, Debug)]
pub(super) struct Rare {
    pub label: String,
    /// The step in front of it.
    pub origin: usize,
    pub end: End,
}

/// The kind of an end.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// With this result.
    With(Value),
    /// With the result in its register. It is `XDP_ABORTED`, or of a frame handler no destination by itself.
    Aborted,
    /// Of a lookup, which goes on behind the step.
    Chain(Chain),
    /// Of a frame that is longer than the card sends.
    TooLong,
}

/// The labels and registers of a lookup that did not end with its first entry.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub map: u32,
    /// The key's distance from the end of the stack.
    pub key: i32,
    /// The test of an entry.
    pub again: String,
    /// The next entry.
    pub next: String,
    /// The mark of an LRU map's entry.
    pub mark: String,
    pub marked: String,
    pub done: String,
    pub result: &'static str,
    pub high: Option<&'static str>,
}

/// Steps of an early end, which are written later, and the place of r0 in front of them.
#[derive(Clone, Debug)]
pub(super) struct Later {
    pub steps: Range<usize>,
    pub returned: Part,
    pub low: &'static str,
    pub high: &'static str,
}

/// The places with counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Aborts {
    /// Each place once.
    pub sites: Vec<Site>,
    /// The place without a counter: the call of a helper that returns to the program's caller.
    pub rest: Option<usize>,
    pub rare: Vec<Rare>,
}

impl Aborts {
    /// The places so far.
    pub fn of(sites: Vec<Site>, rest: Option<usize>) -> Aborts {
        Aborts { sites, rest, rare: Vec::new() }
    }

    /// The number of a place.
    pub fn number(&mut self, site: Site) -> usize {
        self.sites.iter().position(|known| *known == site).unwrap_or_else(|| {
            self.sites.push(site);
            self.sites.len() - 1
        })
    }
}
