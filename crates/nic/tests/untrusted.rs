//! Whatever comes over a link, a card neither panics nor loses a place of its packet buffer: what cannot be used is dropped and
//! counted, and what is good goes on as before.

mod forger;
mod nfp;
mod qnix;
mod spin;
