//! The bytes of one packet of a check's traffic, for those who look at single packets.

use super::meter::{CARD, sender as sender_of};
use super::request::{Request, Resolved, refused, traffic_of};
use super::shares::seed_of;
use super::tested::Tested;
use nicety::Error;
use nicety_nic_ethernet::station;

/// Returns packet `number`, from 0 on, that a port of the first card gets. None if its traffic ends before.
///
/// # Errors
/// Invalid input; no traffic; a capture that cannot be read.
pub fn frame(request: &Request, port: u32, number: u64) -> Result<Option<Vec<u8>>, Error> {
    let Resolved { cards, .. } = request.resolve()?;
    let Some((_, card)) = cards.first() else {
        return Err(Error::Input("--nic: no card with handler cores; name one".into()));
    };
    let Some(expression) = request.traffic.get(port as usize) else {
        return Err(Error::Input(format!("--traffic: no traffic for port {port}")));
    };
    let tested = Tested::of(card)?;
    let opened = tested.open(traffic_of(expression)?, seed_of(request.seed, port), request.xdp.is_some());
    let mut stream = opened.map_err(|error| refused(&error))?;
    let mut frame = Vec::new();
    for _ in 0..=number {
        if stream.next_frame(&mut frame).map_err(|error| refused(&error))?.is_none() {
            return Ok(None);
        }
    }
    if tested.has_frames() {
        // As the sender of frames writes them.
        frame[..6].copy_from_slice(&station(CARD));
        frame[6..12].copy_from_slice(&station(sender_of(port)));
    }
    Ok(Some(frame))
}
