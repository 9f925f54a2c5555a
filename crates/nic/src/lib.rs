//! The parts of a card, and the cards made of them.
