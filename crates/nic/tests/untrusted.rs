//! Whatever comes over a link, a card neither panics nor loses a place of its packet buffer: what cannot be used is dropped and
//! counted, and what is good goes on as before.

mod support;

#[path = "untrusted/forger.rs"]
mod forger;
#[path = "untrusted/nfp.rs"]
mod nfp;
#[path = "untrusted/qnix.rs"]
mod qnix;
#[path = "untrusted/spin.rs"]
mod spin;
