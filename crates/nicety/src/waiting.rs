//! What may be why programs wait for what never comes, as notes on a deadlock.

use crate::host::MESSAGES;
use crate::node::NodeCard;
use crate::processes::PortReport;
use nicety_nic::nfp::QueueCounters;
use nicety_nic::spin::Card;
use nicety_portals::{DropReason, DroppedMessage};
use std::rc::Rc;

/// Most cards of which each note is told.
const LISTED: usize = 8;

/// Messages that nobody took, and handlers that did not answer, explain many a deadlock.
pub(crate) fn notes(cards: &[NodeCard]) -> String {
    // All cards of a cluster are of one design.
    let with_portals: Vec<Rc<Card>> = cards.iter().filter_map(|card| card.spin().ok().cloned()).collect();
    dropped(&with_portals) + &triggered(&with_portals) + &handled(&with_portals) + &processes(cards)
}

/// What processes of cards do, or with what they have ended too early.
fn processes(cards: &[NodeCard]) -> String {
    let of_rank = |(rank, card): (usize, &NodeCard)| {
        let doings =
            card.nfp().map_or_else(|_| Vec::new(), |card| [card.doings(), frames(&card.port())].concat());
        doings.into_iter().map(move |doing| (rank, doing))
    };
    let found: Vec<(usize, String)> = cards.iter().enumerate().flat_map(of_rank).collect();
    let mut text: String = found
        .iter()
        .take(LISTED)
        .map(|(rank, doing)| format!("\n  note: on the card of rank {rank}, {doing}"))
        .collect();
    let others = found.len().saturating_sub(LISTED) as u64;
    if others > 0 {
        text += &format!("\n  note: and there are {} on the cards", more(others));
    }
    text
}

/// Frames of a card's port that nobody took.
fn frames(port: &PortReport) -> Vec<String> {
    let of = |queue: &QueueCounters| {
        let QueueCounters { queue, unclaimed, waiting, .. } = *queue;
        let waits = format!("{} of queue {queue} for a process to receive", counted(waiting, "frame"));
        let dropped = format!("{} for queue {queue}, which nobody had opened", counted(unclaimed, "frame"));
        let waits = (waiting > 0).then(|| format!("the port keeps {waits}"));
        waits.into_iter().chain((unclaimed > 0).then(|| format!("the port dropped {dropped}")))
    };
    port.queues.iter().flat_map(of).collect()
}

fn dropped(cards: &[Rc<Card>]) -> String {
    let of_rank = |(rank, card): (usize, &Rc<Card>)| {
        let statistics = card.statistics();
        statistics.first_dropped().map(|first| (rank, statistics.dropped_total(), first))
    };
    let found: Vec<_> = cards.iter().enumerate().filter_map(of_rank).collect();
    let mut text: String = found
        .iter()
        .take(LISTED)
        .map(|(rank, count, first)| {
            let (the_first, what) = (if *count == 1 { ":" } else { ", the first" }, described(first));
            format!(
                "\n  note: the card of rank {rank} dropped {}{the_first} {what}",
                counted(*count, "message")
            )
        })
        .collect();
    let others = &found[found.len().min(LISTED)..];
    if !others.is_empty() {
        let messages = others.iter().map(|(_, count, _)| count).sum();
        text += &format!(
            "\n  note: the cards of {} dropped {}",
            counted(others.len() as u64, "more rank"),
            counted(messages, "message")
        );
    }
    if found.iter().any(|(_, _, first)| unreceived(first)) {
        text += "\n  note: send and recv want their receive posted, with the right rank and tag: post it with \
                 post_recv, meet at a barrier, and only then send";
    }
    text
}

/// Whether it is a message of `send` that came before its receive.
fn unreceived(message: &DroppedMessage) -> bool {
    message.pt == MESSAGES && message.reason == DropReason::NoMatch
}

fn described(message: &DroppedMessage) -> String {
    if unreceived(message) {
        return format!(
            "one from rank {}, tag {}, for which there was no receive",
            message.source.0, message.match_bits
        );
    }
    message.to_string()
}

/// Triggered operations whose time has not come.
fn triggered(cards: &[Rc<Card>]) -> String {
    let of_rank = |(rank, card): (usize, &Rc<Card>)| {
        card.waiting_triggered().map(|(first, count)| (rank, first, count))
    };
    let found: Vec<_> = cards.iter().enumerate().filter_map(of_rank).collect();
    let mut text: String = found
        .iter()
        .take(LISTED)
        .map(|(rank, first, count)| {
            let others = match count - 1 {
                0 => String::new(),
                n => format!("; {} with it", counted(n.into(), "other triggered operation")),
            };
            let (what, threshold, value) = (first.what, first.threshold, first.value.total());
            format!(
                "\n  note: on the card of rank {rank}, a triggered {what} waits for a counter to reach \
                 {threshold}; it is at {value}{others}"
            )
        })
        .collect();
    let others = found.len().saturating_sub(LISTED) as u64;
    if others > 0 {
        text +=
            &format!("\n  note: triggered operations wait on the cards of {}", counted(others, "more rank"));
    }
    text
}

fn handled(cards: &[Rc<Card>]) -> String {
    let of_rank = |(rank, card): (usize, &Rc<Card>)| {
        let runs = card.handler_statistics().runs;
        (runs > 0).then(|| (rank, runs, card.packets_sent()))
    };
    let found: Vec<_> = cards.iter().enumerate().filter_map(of_rank).collect();
    let mut text: String = found
        .iter()
        .take(LISTED)
        .map(|(rank, runs, packets)| {
            format!(
                "\n  note: {} ran on the card of rank {rank}, which sent {} in all; did {} answer, and to the right \
                 rank, match bits and offset?",
                counted(*runs, "handler"),
                counted(*packets, "packet"),
                if *runs == 1 { "it" } else { "they" },
            )
        })
        .collect();
    let others = &found[found.len().min(LISTED)..];
    if !others.is_empty() {
        let (runs, packets) = others.iter().fold((0, 0), |(r, p), (_, runs, sent)| (r + runs, p + sent));
        text += &format!(
            "\n  note: {} ran on the cards of {}, which sent {} in all",
            counted(runs, "handler"),
            counted(others.len() as u64, "more rank"),
            counted(packets, "packet")
        );
    }
    text
}

/// So many further processes.
fn more(processes: u64) -> String {
    format!("{processes} more process{}", if processes == 1 { "" } else { "es" })
}

fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
