//! Checks of a request against its cards.

use super::{Driver, LONGEST, MOST_PACKETS, Messages, Request, USUAL_SIZES, refused, traffic_of};
use crate::tested::{SHORTEST_FRAME, Tested, frame_sizes};
use nicety::Error;
use nicety::cards::Card;
use nicety::nfp::NfpSpec;
use nicety_nic_ethernet::{EthernetSpec, InstallError, Rule, check_rule};
use nicety_nic_hxdp::HxdpSpec;
use std::iter;

impl Request {
    /// Refuses an XDP program on a card of messages without frames.
    pub(super) fn check_xdp(&self, name: &str, tested: &Tested<'_>) -> Result<(), Error> {
        match self.xdp.is_some() && tested.for_xdp().is_none() {
            true => Err(Error::Input(format!(
                "--nic {name}: an XDP program processes frames, but handlers of this card process messages \
                 of Portals; name a card with frames, as --nic spin-100g, or a PsPIN card"
            ))),
            false => Ok(()),
        }
    }

    /// Refuses options that a program in a host's driver does not have.
    pub(super) fn check_drivers(&self, drivers: &[Driver]) -> Result<(), Error> {
        let Some((_, (name, _))) = drivers.first() else { return Ok(()) };
        let others = [
            ("--rule", !self.rules.is_empty(), "its program takes all frames"),
            ("--pfc", self.pfc, "frames without a buffer are lost"),
            ("--sensitivity", self.sensitivity, "the option varies cards with handler cores"),
            ("--traffic", self.traffic.len() > 1, "its only port takes one expression"),
        ];
        match others.into_iter().find(|(_, given, _)| *given) {
            Some((option, _, why)) => Err(Error::Input(format!(
                "{option}: {name} has no handler cores, and {why}; leave {option} or that card out"
            ))),
            None => Ok(()),
        }
    }

    /// Checks traffic, and refuses options for values that the expressions determine.
    pub(super) fn check_traffic(&self, cards: &[(String, Card)]) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Input(text));
        let others = [
            (
                "--packet-sizes",
                self.packet_sizes.is_some(),
                "the traffic sets the sizes, as in 'udp size=64'",
            ),
            ("--message-packets", self.message_packets.is_some(), "each packet of traffic is a message"),
            ("--messages", self.messages.is_some(), "the traffic sets their number, as in 'udp packets=1M'"),
            ("--user-header", !self.user_header.is_empty(), "packets of traffic have their own headers"),
        ];
        if let Some((option, _, why)) = others.into_iter().find(|(_, given, _)| *given) {
            return wrong(format!("{option} and --traffic: {why}; leave one of the two out"));
        }
        if self.lossy && self.pfc {
            return wrong(
                "--lossy and --pfc: a full packet buffer drops or pauses; leave one of the two out".into(),
            );
        }
        if self.state.len() as u64 > self.state_bytes() {
            return wrong(self.state_too_long());
        }
        let traffic = self.traffic.iter().map(|text| traffic_of(text)).collect::<Result<Vec<_>, _>>()?;
        for (name, card) in cards {
            let tested = Tested::of(card)?;
            self.check_ports(name, &tested)?;
            if self.lossy && tested.sends_again() {
                return wrong(format!(
                    "--lossy: {name} retransmits dropped packets (transport.reliable), so no packet is \
                     lost; leave --lossy out, or write --set transport.reliable=false"
                ));
            }
            for traffic in &traffic {
                tested
                    .open(traffic.clone(), self.seed, self.xdp.is_some())
                    .map_err(|error| refused(&error))?;
            }
        }
        Ok(())
    }

    /// Checks that a card has a port for each expression of traffic.
    pub(crate) fn check_ports(&self, name: &str, tested: &Tested<'_>) -> Result<(), Error> {
        let (many, ports) = (self.traffic.len(), tested.ports());
        if many <= ports as usize {
            return Ok(());
        }
        let has = if ports == 1 { "1 port".to_owned() } else { format!("{ports} ports") };
        Err(Error::Input(format!(
            "--traffic: {many} expressions need {many} ports of a card, but {name} has {has}; leave some \
             out, or write --set link.ports={many}"
        )))
    }

    /// Checks the rules against a card of frames, or a card of messages.
    pub(super) fn check_rules(&self, name: &str, tested: &Tested<'_>) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Input(text));
        if self.has_frames(tested) {
            self.check_frames(name)?;
        }
        let Tested::Frames(_, handlers) = tested else {
            return match self.rules.is_empty() {
                true => Ok(()),
                false => wrong(format!(
                    "--rule: handlers of {name} process messages, which match entries select; leave --rule \
                     out, or name a card with frames, as --nic spin-100g"
                )),
            };
        };
        let mut known = Vec::new();
        for text in self.rules() {
            let rule = Rule::parse(text).map_err(|error| Error::Input(format!("--rule: {error}")))?;
            check_rule(&rule, handlers, tested.sizes(false).1, &known)
                .map_err(|error| Error::Input(format!("--rule: {error}")))?;
            known.push(rule);
        }
        match known.len() > handlers.rules {
            true => wrong(format!("--rule: {}", InstallError::TooMany { limit: handlers.rules })),
            false => Ok(()),
        }
    }

    /// Refuses options of messages.
    pub(super) fn check_frames(&self, name: &str) -> Result<(), Error> {
        let of_messages = [
            ("--message-packets", self.message_packets.is_some()),
            ("--user-header", !self.user_header.is_empty()),
        ];
        match of_messages.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Error::Input(format!(
                "{option}: frames of {name} are not parts of messages; leave {option} out"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses more packets than are measured. Frames are not parts of messages.
    pub(super) fn check_count(&self, tested: &Tested<'_>, messages: Messages) -> Result<(), Error> {
        let each = if self.has_frames(tested) { 1 } else { messages.packets_each };
        let measured = messages.measured.saturating_mul(each);
        if measured <= MOST_PACKETS {
            return Ok(());
        }
        let count = messages.measured;
        let what = match self.has_frames(tested) {
            true => format!("{count} frames"),
            false => format!("{count} messages of {each} packets are {measured} packets"),
        };
        Err(Error::Input(format!(
            "{what}; at most {MOST_PACKETS} can be measured, so write --messages {} or less",
            MOST_PACKETS / each
        )))
    }

    /// Returns the default packet sizes that the packets of all cards carry, or their maximum if that is less.
    pub(super) fn usual_sizes(
        &self,
        cards: &[(String, Card)],
        drivers: &[Driver],
    ) -> Result<Vec<u64>, Error> {
        let of_cards = cards.iter().map(|(_, card)| Ok(Tested::of(card)?.sizes(self.xdp.is_some()).1));
        let of_drivers = drivers.iter().map(|(_, (_, card))| Ok(object_sizes(card)?.1));
        let payloads = of_cards.chain(of_drivers);
        let most =
            payloads.collect::<Result<Vec<u64>, Error>>()?.into_iter().min().unwrap_or(*USUAL_SIZES.end());
        let sizes = iter::successors(Some(*USUAL_SIZES.start()), |size| Some(size * 2));
        let sizes: Vec<u64> = sizes.take_while(|size| *size <= most.min(*USUAL_SIZES.end())).collect();
        Ok(if sizes.is_empty() { vec![most] } else { sizes })
    }

    pub(super) fn state_too_long(&self) -> String {
        let (given, bytes) = (self.state.len(), self.state_bytes());
        format!(
            "the given state has {given} bytes, but --state-bytes is {bytes}; write --state-bytes {given}"
        )
    }

    pub(crate) fn check_sizes(
        &self,
        name: &str,
        card: &Card,
        sizes: &[u64],
        messages: Messages,
    ) -> Result<(), Error> {
        let tested = Tested::of(card)?;
        let (least, most) = tested.sizes(self.xdp.is_some());
        for &size in sizes {
            if self.has_frames(&tested) {
                check_frame(name, size, (least, most))?;
            }
            if size == 0 {
                return Err(Error::Input(
                    "--packet-sizes: a packet of 0 bytes runs no payload handler; begin with 1".into(),
                ));
            }
            if size > most {
                return Err(Error::Input(format!(
                    "--packet-sizes: a packet of {name} carries {most} bytes at most, not {size}; write --packet-sizes \
                     64:{most}, or --set packet.payload=\"{size} B\""
                )));
            }
            let length = size * messages.packets_each;
            if length > LONGEST {
                return Err(Error::Input(format!(
                    "--message-packets {}: a message of {length} bytes is too long; the longest is 2Gi ({LONGEST} bytes)",
                    messages.packets_each
                )));
            }
            if self.user_header.len() as u64 > length {
                return Err(Error::Input(format!(
                    "--user-header has {} bytes, but a message of {} packets of {size} bytes has only \
                     {length}",
                    self.user_header.len(),
                    messages.packets_each
                )));
            }
        }
        Ok(())
    }
}

/// The lengths of frames for an eBPF object on a card, in bytes without the check sequence.
pub(super) fn object_sizes(card: &Card) -> Result<(u64, u64), Error> {
    if let Ok(spec) = card.spec.of::<NfpSpec>() {
        return Ok((SHORTEST_FRAME, spec.xdp.map_or(SHORTEST_FRAME, |xdp| xdp.longest)));
    }
    match card.spec.of::<HxdpSpec>() {
        Ok(spec) => Ok((SHORTEST_FRAME, spec.longest)),
        Err(_) => Ok(frame_sizes(card.spec.of::<EthernetSpec>()?)),
    }
}

/// Checks the size of a frame.
pub(super) fn check_frame(name: &str, size: u64, (least, most): (u64, u64)) -> Result<(), Error> {
    match (least..=most).contains(&size) {
        true => Ok(()),
        false => Err(Error::Input(format!(
            "--packet-sizes: a frame of {name} has {least} to {most} bytes without its check sequence, not {size}; write \
             --packet-sizes {least}:{most}"
        ))),
    }
}
