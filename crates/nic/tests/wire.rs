//! A card reads only the bytes of a packet. A relay rebuilds packets from their bytes, with false labels and empty
//! paths. On every design they are received like the original packets, at the same times.

mod messages;
mod relay;
mod spin;
