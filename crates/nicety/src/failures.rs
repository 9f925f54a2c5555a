//! What a network with faults did not deliver, as the end of a run tells it.

use crate::node::NodeCard;
use nicety_fabric::{Cause, FaultStatistics, LostPacket, Network};

/// Most messages or packets that are listed.
const LISTED: usize = 10;

/// Who failed, and what was not delivered for it; none where a run need not end for it. Without reliable transport that is
/// what a link or node that failed has lost: packets that are lost by chance may be nobody's loss.
pub(crate) fn undelivered(network: &Network, cards: &[NodeCard]) -> Option<String> {
    let lost: Vec<LostPacket> =
        network.lost_packets().into_iter().filter(|packet| packet.cause.is_failure()).collect();
    let messages: Vec<String> = cards
        .iter()
        .zip(0..)
        .flat_map(|(card, rank)| card.undelivered().into_iter().map(move |message| (rank, message)))
        .map(|(rank, message)| {
            let (sequence, to, bytes) = (message.message.sequence, message.destination.0, message.bytes);
            let time = message.time;
            format!("message {sequence} of rank {rank} to rank {to}: {bytes} B not acknowledged, given up at {time}")
        })
        .collect();
    let who = who_failed(&lost);
    let (what, lines) = if reliable(cards) == Some(true) {
        if messages.is_empty() {
            return None;
        }
        let why = who.unwrap_or_else(|| {
            "the network lost too many packets in a row (transport.retries says how many are too many)"
                .to_owned()
        });
        (format!("{why}; {} not delivered", counted(messages.len() as u64, "message", true)), messages)
    } else {
        let lines: Vec<String> = lost.iter().map(ToString::to_string).collect();
        let count = counted(lines.len() as u64, "packet", true);
        let why = match reliable(cards) {
            Some(_) => "transport.reliable is false",
            None => "cards of this design never do",
        };
        (format!("{}; {count} not delivered, nor sent again: {why}", who?), lines)
    };
    Some(what + &listed(&lines))
}

/// What faults did, as notes on a run that ended badly for another reason, perhaps.
pub(crate) fn notes(network: &Network, cards: &[NodeCard]) -> String {
    if reliable(cards) == Some(true) {
        return String::new();
    }
    let faults = network.statistics().faults;
    let sum = |of: fn(&FaultStatistics) -> u64| faults.iter().map(of).sum::<u64>();
    let happened = [
        (sum(|s| s.lost), "lost"),
        (sum(|s| s.corrupted), "damaged"),
        (sum(|s| s.duplicated), "doubled"),
        (sum(|s| s.reordered), "delayed"),
    ];
    let happened: Vec<String> =
        happened.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what} {n}")).collect();
    if happened.is_empty() {
        return String::new();
    }
    let unusable: u64 = cards.iter().map(|card| card.unusable()).sum();
    let unusable = match unusable {
        0 => String::new(),
        n => format!(", and the cards could not use {} that came", counted(n, "packet", false)),
    };
    let lines: Vec<String> = network.lost_packets().iter().map(ToString::to_string).collect();
    let makes_up = match reliable(cards) {
        Some(_) => "a card makes up for that only with transport.reliable=true",
        None => "a card of this design does not make up for that",
    };
    format!(
        "\n  note: of the packets, the network {}{unusable}; {makes_up}{}",
        happened.join(", "),
        listed(&lines)
    )
}

/// Whether the cards send packets again that the network lost; none where cards of their design never do.
fn reliable(cards: &[NodeCard]) -> Option<bool> {
    cards.first().and_then(NodeCard::is_reliable)
}

/// The links and nodes that were down when packets were lost.
fn who_failed(lost: &[LostPacket]) -> Option<String> {
    let mut who: Vec<String> = Vec::new();
    for packet in lost {
        let text = match packet.cause {
            Cause::NodeDown(failure) => format!("{} is down from {} on", failure.node, failure.at),
            Cause::LinkDown(outage) => format!("the link {} -> {} is {outage}", packet.from, packet.to),
            Cause::Chance | Cause::Dropped => continue,
        };
        if !who.contains(&text) {
            who.push(text);
        }
    }
    (!who.is_empty()).then(|| who.join(", "))
}

fn counted(n: u64, what: &str, were: bool) -> String {
    let verb = match (were, n) {
        (false, _) => "",
        (true, 1) => " was",
        (true, _) => " were",
    };
    format!("{n} {what}{}{verb}", if n == 1 { "" } else { "s" })
}

fn listed(lines: &[String]) -> String {
    let mut text: String = lines.iter().take(LISTED).map(|line| format!("\n    {line}")).collect();
    if lines.len() > LISTED {
        text += &format!("\n    and {} more", lines.len() - LISTED);
    }
    text
}
