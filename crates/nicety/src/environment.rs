//! The environment of a benchmark or an application, and the identification of cards in reports.

use crate::Log;
use crate::cards::Card;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Compiled programs for cards, by the names that a benchmark's plan gives them.
pub type Compiled = BTreeMap<String, Vec<u8>>;

/// The inputs of a benchmark or an application beside its request.
#[derive(Clone)]
pub struct Environment<'e> {
    /// Programs for cards, compiled.
    pub compiled: &'e Compiled,
    /// Receives the output of handlers.
    pub log: Log,
    /// When another thread sets it, the run ends.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Called before the first row and after each with the number of rows done and their total.
    pub progress: &'e dyn Fn(usize, usize),
}

/// The identification of a card in a report's manifest.
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
