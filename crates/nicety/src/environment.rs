//! What a benchmark or an application is given beside its request, and what its report says of cards.

use crate::Log;
use crate::cards::Card;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Compiled programs for cards, by the names that a benchmark's plan gives them.
pub type Compiled = BTreeMap<String, Vec<u8>>;

/// What a benchmark or an application needs beside its request.
#[derive(Clone)]
pub struct Environment<'e> {
    /// Programs for cards, compiled.
    pub compiled: &'e Compiled,
    /// Takes what handlers print.
    pub log: Log,
    /// Set by another thread, it ends the run.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Told before the first row and after each how many are done, of how many.
    pub progress: &'e dyn Fn(usize, usize),
}

/// What identifies a card in a report's manifest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardManifest {
    /// The card's title.
    pub title: String,
    /// Hash over all resolved values.
    pub spec_hash: String,
}

impl From<&Card> for CardManifest {
    fn from(card: &Card) -> CardManifest {
        CardManifest { title: card.listing.title.clone(), spec_hash: card.listing.hash.clone() }
    }
}
