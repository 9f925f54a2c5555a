//! The same traffic, or its first packets, at another rate.

use nicety::cards::Card;
use nicety::{Error, Failure};
use nicety_nic_core::CardSpec;
use nicety_nic_ethernet::EthernetSpec;
use nicety_nic_spin::SpinSpec;
use nicety_types::{Duration, Gap};
use std::sync::Arc;

/// Maximum packets of a run. They represent longer traffic if they have its mean rate.
pub(super) const PACKETS: u64 = 100_000;

/// The rate of traffic, and its length.
pub(super) struct Speed {
    /// The rate, relative to the traffic's own.
    pub(super) times: f64,
    /// The rate of the sender's wire, relative to the card's own.
    pub(super) wire: f64,
    /// Packets that each port offers; computed if none.
    pub(super) shares: Option<Vec<u64>>,
    /// Advance of each packet relative to its due time. Packets due before the start go at once.
    pub(super) ahead: Duration,
}

impl Speed {
    /// Returns the traffic's own rate.
    pub(super) const fn as_given() -> Speed {
        Speed { times: 1.0, wire: 1.0, shares: None, ahead: Duration::ZERO }
    }

    /// Returns traffic at `times` its rate on a wire `wire` times as fast, with `shares` packets of each port.
    pub(super) const fn some(times: f64, wire: f64, shares: Vec<u64>) -> Speed {
        Speed { times, wire, shares: Some(shares), ahead: Duration::ZERO }
    }

    /// Whether traffic at the speed of the wire must be slowed for this rate.
    pub(super) fn is_below_wire(&self) -> bool {
        !self.ahead.is_zero() || self.times < self.wire
    }
}

/// Returns the card with a wire `times` as fast; none for the card's own wire.
pub(super) fn with_wire(card: &Card, times: f64) -> Result<Option<Card>, Error> {
    if times == 1.0 {
        return Ok(None);
    }
    let faster = |gap: Gap| {
        // The time of a mebibyte, in picoseconds.
        let all = gap.cover(1 << 20).ps() as f64 / times;
        Gap::new((all.round() as u64).max(1), 1 << 20)
    };
    let spec: Arc<dyn CardSpec> = match card.spec.of::<EthernetSpec>() {
        Ok(spec) => {
            let mut spec = spec.clone();
            spec.node.link.gap = faster(spec.node.link.gap);
            Arc::new(spec)
        }
        Err(_) => {
            let mut spec = card.spec.of::<SpinSpec>()?.clone();
            spec.link.gap = faster(spec.link.gap);
            spec.send_gap = Duration::from_ps((spec.send_gap.ps() as f64 / times).round() as u64);
            Arc::new(spec)
        }
    };
    Ok(Some(Card { spec, ..card.clone() }))
}

/// Returns the packets of each port, for traffic with `offered` packets.
pub(super) fn shares(of_ports: Option<&[u64]>, offered: u64) -> Vec<u64> {
    let some = |packets: u64| match offered > PACKETS {
        true => (u128::from(packets) * u128::from(PACKETS)).div_ceil(offered.into()) as u64,
        false => packets,
    };
    of_ports.unwrap_or(&[offered]).iter().map(|packets| some(*packets)).collect()
}

/// Returns the result of a run, or an error if the run has a failure of a new kind.
pub(super) fn without_new<T>(shown: T, found: Vec<Failure>, before: &[Failure]) -> Result<T, Error> {
    let is_known = |failure: &Failure| before.iter().any(|other| other.kind == failure.kind);
    match found.into_iter().find(|failure| !is_known(failure)) {
        Some(failure) => Err(Error::Program(failure.text)),
        None => Ok(shown),
    }
}

/// Returns the error that stopped a run, without the run's own time and place.
pub(super) fn stop_reason(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let what = match line.starts_with('[') {
        true => line.split_once("] ").map_or(line, |(_, what)| what),
        false => line,
    };
    what.to_owned()
}
