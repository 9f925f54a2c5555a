//! Errors and notes about messages that a network did not deliver, because of faults or full buffers.

use nicety_fabric::{Cause, FaultStatistics, LostData, LostPacket, Network, Place};
use nicety_nic_core::parts::transport::Undelivered;
use nicety_nic_core::{Card, FailureKind, ProgramFailure};
use nicety_types::NodeId;
use std::rc::Rc;

/// Maximum listed messages or packets.
const LISTED: usize = 10;

/// Describes undelivered messages and their causes. Returns `None` if they need not fail the run. Without reliable
/// transport, only losses at failed links and nodes and by full buffers count. Random losses do not count, because a
/// program may not need the packet.
pub(crate) fn undelivered(network: &Network, cards: &[Rc<dyn Card>]) -> Option<String> {
    if reliable(cards) == Some(true) { given_up(network, cards) } else { lost_for_good(network, cards) }
}

/// The losses of a completed run: the text of the error, and the failure of the host that sent the first lost packet.
pub(crate) struct Lost {
    pub(crate) text: String,
    pub(crate) failure: ProgramFailure,
}

/// Returns the data that the network lost or damaged and that nothing resends, or `None` if there is no such data. If
/// `drops` is false, losses by full buffers are left out.
pub(crate) fn lost(network: &Network, cards: &[Rc<dyn Card>], drops: bool) -> Option<Lost> {
    let failure = |(node, time), text, times| ProgramFailure {
        kind: FailureKind::Lost,
        time,
        node,
        hpu: None,
        text,
        times,
    };
    if let Some(text) = given_up(network, cards).filter(|_| reliable(cards) == Some(true)) {
        let messages = || given_up_by(cards);
        let (node, first) = messages().min_by_key(|(node, message)| (message.time, *node))?;
        let head = text.lines().next().unwrap_or_default().to_owned();
        return Some(Lost { text, failure: failure((node, first.time), head, messages().count() as u64) });
    }
    let mut lost = network.lost_data();
    lost.retain(|data| drops || !data.first.cause.is_drop());
    let first = lost.first()?.first;
    let mut causes = Causes::default();
    for LostData { first, packets } in &lost {
        causes.add(first.from, first.to, first.cause, *packets);
    }
    let times = lost.iter().map(|data| data.packets).sum();
    let why = format!("packets were {}, and nothing retransmits them{}", causes.verb(), causes.listed(": "));
    let failure = failure((first.source, first.time), format!("{why}; the first: {first}"), times);
    let lines = match reliable(cards) {
        // `lost_packets` would include TCP segments, which TCP retransmits.
        Some(true) => lost.iter().map(|data| data.first).collect(),
        _ => network.lost_packets(),
    };
    Some(Lost { text: for_good(&causes, &lines, cards), failure })
}

/// Returns the messages that cards have given up, after too many retransmissions.
fn given_up_by(cards: &[Rc<dyn Card>]) -> impl Iterator<Item = (NodeId, Undelivered)> {
    cards
        .iter()
        .zip(0..)
        .flat_map(|(card, rank)| card.undelivered().into_iter().map(move |message| (NodeId(rank), message)))
}

/// Describes messages that cards gave up, and the losses of each message's packets since its last progress.
fn given_up(network: &Network, cards: &[Rc<dyn Card>]) -> Option<String> {
    let messages: Vec<(NodeId, Undelivered)> = given_up_by(cards).collect();
    if messages.is_empty() {
        return None;
    }
    let concerns = |packet: &LostPacket| {
        messages.iter().any(|(from, message)| {
            let ends = [(*from, message.destination), (message.destination, *from)];
            ends.contains(&(packet.source, packet.destination))
                && (message.since..=message.time).contains(&packet.time)
        })
    };
    let mut causes = Causes::default();
    for packet in network.recent_losses().into_iter().filter(concerns) {
        causes.add(packet.from, packet.to, packet.cause, 1);
    }
    let why = match causes.failures_alone() {
        Some(who) => who,
        None => format!(
            "the network {} too many packets in a row (transport.retries is the limit){}",
            causes.verb(),
            causes.listed(": ")
        ),
    };
    let lines: Vec<String> = messages
        .iter()
        .map(|(from, Undelivered { time, message, destination, bytes, .. })| {
            let (sequence, rank, to) = (message.sequence, from.0, destination.0);
            format!("message {sequence} of rank {rank} to rank {to}: {bytes} B not acknowledged, given up at {time}")
        })
        .collect();
    Some(format!("{why}; {} not delivered{}", counted(lines.len() as u64, "message", true), listed(&lines)))
}

/// Describes packets that were lost at a failed link or node or by a full buffer, and that nothing resends.
fn lost_for_good(network: &Network, cards: &[Rc<dyn Card>]) -> Option<String> {
    let mut causes = Causes::default();
    for (from, to, cause, times) in network.causes() {
        if cause != Cause::Damaged {
            causes.add(from, to, cause, times);
        }
    }
    let dropped = network.causes().iter().any(|(.., cause, _)| cause.is_drop());
    let failed = dropped || causes.0.iter().any(|(_, failure, _)| *failure);
    failed.then(|| for_good(&causes, &network.lost_packets(), cards))
}

/// Returns the error text for packets that were lost by these causes.
fn for_good(causes: &Causes, packets: &[LostPacket], cards: &[Rc<dyn Card>]) -> String {
    let why = match reliable(cards) {
        Some(true) => "only TCP retransmits",
        Some(false) => "transport.reliable is false",
        None => "cards of this design never retransmit",
    };
    let lines: Vec<String> = packets.iter().map(ToString::to_string).collect();
    let total: u64 = causes.0.iter().map(|(.., times)| times).sum();
    let count = counted(total, "packet", true);
    let head = match causes.failures_alone() {
        Some(who) => format!("{who}; {count} not delivered and not retransmitted: {why}"),
        None => format!("{count} not delivered and not retransmitted ({why}){}", causes.listed(": ")),
    };
    head + &listed(&lines)
}

/// Causes of lost packets. Each item is a text, whether the cause is a failure of a link or node, and the number of
/// packets.
#[derive(Default)]
struct Causes(Vec<(String, bool, u64)>);

impl Causes {
    fn add(&mut self, from: Place, to: Place, cause: Cause, times: u64) {
        let text = match cause {
            Cause::Chance => "lost by chance".to_owned(),
            Cause::Dropped => "lost by drop in the faults".to_owned(),
            Cause::Damaged => DAMAGED.to_owned(),
            Cause::BitErrors => "damaged each time that the link sent them".to_owned(),
            Cause::QueueFull(port) => {
                format!("dropped by {from}, with no room before its port {port} to {to}")
            }
            Cause::NoHeadroom(port) => {
                format!("dropped by {to}, with no headroom at its port {port} from {from}")
            }
            Cause::CardFull => format!("dropped by the card of {to}: its buffer was full"),
            Cause::NodeDown(failure) => format!("{} is down from {} on", failure.node, failure.at),
            Cause::LinkDown(outage) => format!("the link {from} -> {to} is {outage}"),
        };
        match self.0.iter_mut().find(|(known, ..)| *known == text) {
            Some((.., all)) => *all += times,
            None => self.0.push((text, cause.is_failure(), times)),
        }
    }

    /// Returns the failed links and nodes, or `None` if there was any other cause.
    fn failures_alone(&self) -> Option<String> {
        let texts: Vec<&str> = self.0.iter().map(|(text, ..)| text.as_str()).collect();
        (!texts.is_empty() && self.0.iter().all(|(_, failure, _)| *failure)).then(|| texts.join(", "))
    }

    /// Lists all causes after `before`, the most frequent first.
    fn listed(&self, before: &str) -> String {
        let mut causes: Vec<_> = self.0.iter().collect();
        causes.sort_by_key(|(.., times)| std::cmp::Reverse(*times));
        let texts: Vec<String> = causes
            .iter()
            .map(|(text, failure, times)| match failure {
                true => format!("{times} since {text}"),
                false => format!("{times} {text}"),
            })
            .collect();
        if texts.is_empty() { String::new() } else { format!("{before}{}", texts.join(", ")) }
    }

    fn verb(&self) -> &'static str {
        let damaged = self.0.iter().filter(|(text, ..)| text == DAMAGED).count();
        match (damaged, self.0.len()) {
            (0, _) => "lost",
            (1, 1) => "damaged",
            _ => "lost or damaged",
        }
    }
}

const DAMAGED: &str = "damaged";

/// Describes the effects of faults and full buffers, as notes on a run that failed for another reason. If cards retransmit
/// packets, only failed links and nodes are named.
pub(crate) fn notes(network: &Network, cards: &[Rc<dyn Card>]) -> String {
    if reliable(cards) == Some(true) {
        return failures_note(network);
    }
    let faults = network.statistics().faults;
    let sum = |of: fn(&FaultStatistics) -> u64| faults.iter().map(of).sum::<u64>();
    let happened = [
        (sum(|s| s.lost), "lost"),
        (sum(|s| s.corrupted), "damaged"),
        (sum(|s| s.duplicated), "doubled"),
        (sum(|s| s.reordered), "delayed"),
        (network.queues().iter().map(|queue| queue.dropped_packets).sum(), "dropped"),
    ];
    let happened: Vec<String> =
        happened.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what} {n}")).collect();
    if happened.is_empty() {
        return String::new();
    }
    let unusable: u64 = cards.iter().map(|card| card.unusable()).sum();
    let unusable = match unusable {
        0 => String::new(),
        n => format!(", and the cards could not use {} that arrived", counted(n, "packet", false)),
    };
    let lines: Vec<String> = network.lost_packets().iter().map(ToString::to_string).collect();
    let makes_up = match reliable(cards) {
        Some(_) => "a card recovers from this only with transport.reliable=true",
        None => "a card of this design does not recover from this",
    };
    format!(
        "\n  note: of the packets, the network {}{unusable}; {makes_up}{}",
        happened.join(", "),
        listed(&lines)
    )
}

/// Returns the names of failed links and nodes with the numbers of their lost packets. The text is empty if there are
/// none. Retransmission cannot recover these packets.
fn failures_note(network: &Network) -> String {
    let mut causes = Causes::default();
    for (from, to, cause, times) in network.causes() {
        if cause.is_failure() {
            causes.add(from, to, cause, times);
        }
    }
    let lost = causes
        .0
        .iter()
        .map(|(text, _, times)| format!("\n  note: {text}; {} lost", counted(*times, "packet", true)));
    lost.collect()
}

/// Whether the cards retransmit packets that the network lost. `None` if their design has no retransmission.
fn reliable(cards: &[Rc<dyn Card>]) -> Option<bool> {
    cards.first().and_then(|card| card.is_reliable())
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
