//! The card of each host of a cluster, and the check that all cards use the same protocol.

use crate::Error;
use crate::cards::{self, Card};
use std::sync::Arc;

/// Maximum number of card names in a text.
const NAMED: usize = 4;

/// The cards of a cluster's hosts.
pub(crate) struct Mix {
    /// The cards by rank. If there is one card, all hosts have it.
    cards: Vec<Card>,
    /// The names of the cards, in the same order.
    names: Vec<Arc<str>>,
    /// Maximum payload of a packet that all cards accept; `None` if no card has such a limit.
    packet_payload: Option<u64>,
    /// Maximum length of an eager message that all cards accept; `None` if no card has such a limit.
    eager: Option<u64>,
}

impl Mix {
    /// Returns the cards of `hosts` hosts.
    ///
    /// # Errors
    /// When the number of cards is neither 1 nor `hosts`, or two cards use different protocols.
    pub(crate) fn of(cards: Vec<Card>, hosts: u32) -> Result<Mix, Error> {
        if cards.len() != 1 && cards.len() != hosts as usize {
            let many = cards.len();
            return Err(Error::Input(format!(
                "{many} cards for {hosts} hosts; name one for each rank, or one for all"
            )));
        }
        cards::check(&cards)?;
        let packet_payload = cards.iter().filter_map(|card| card.spec.packet_payload()).min();
        let eager = cards.iter().filter_map(|card| card.spec.eager()).min();
        let names = cards.iter().map(|card| card.listing.name.as_str().into()).collect();
        Ok(Mix { cards, names, packet_payload, eager })
    }

    /// The card of a rank.
    pub(crate) fn card(&self, rank: u32) -> &Card {
        &self.cards[self.index(rank)]
    }

    /// The name of a rank's card.
    pub(crate) fn name(&self, rank: u32) -> Arc<str> {
        self.names[self.index(rank)].clone()
    }

    /// Maximum payload of a packet that all cards accept; `None` if no card has such a limit.
    pub(crate) fn packet_payload(&self) -> Option<u64> {
        self.packet_payload
    }

    /// Maximum payload of a packet on the network.
    pub(crate) fn largest_packet(&self) -> u64 {
        let largest = self.cards.iter().map(|card| card.spec.largest_packet()).max().unwrap_or(0);
        self.packet_payload.map_or(largest, |least| least.min(largest))
    }

    /// Maximum length of an eager message that all cards accept; `None` if no card has such a limit.
    pub(crate) fn eager(&self) -> Option<u64> {
        self.eager
    }

    /// Returns the names of the cards, without repetition.
    pub(crate) fn names(&self) -> String {
        let mut different: Vec<&str> = Vec::new();
        for name in &self.names {
            if !different.contains(&&**name) {
                different.push(name);
            }
        }
        let named = different.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        match different.len().saturating_sub(NAMED) {
            0 => named,
            more => format!("{named} and {more} more"),
        }
    }

    /// Returns the label of a rank in texts. If the hosts have different cards, the label includes the name of the
    /// card.
    pub(crate) fn label(&self, rank: u32) -> String {
        match self.names.iter().any(|name| *name != self.names[0]) {
            true => format!("rank {rank} ({})", self.name(rank)),
            false => format!("rank {rank}"),
        }
    }

    /// Adds the label of the rank to an error in the set-up of the rank's card.
    pub(crate) fn about(&self, rank: u32, error: Error) -> Error {
        if self.cards.len() == 1 { error } else { error.inside(&self.label(rank)) }
    }

    fn index(&self, rank: u32) -> usize {
        if self.cards.len() == 1 { 0 } else { rank as usize }
    }
}
