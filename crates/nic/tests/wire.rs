//! A card reads nothing of a packet but its bytes: packets that a relay on the way has built anew from their bytes, with
//! false labels and empty paths, are received as the others are, at the same times, on every design.

mod messages;
mod relay;
mod spin;
