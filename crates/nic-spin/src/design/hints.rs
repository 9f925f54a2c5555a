//! Deadlock hints: dropped messages, messages without a receive, triggered operations below their threshold, and cards
//! with handlers that may not have answered.

use crate::Card;
use crate::host::match_bits::tag_of;
use nicety_nic_core::{LISTED, counted};
use std::rc::Rc;

/// Returns all hints, as notes on a deadlock.
pub(crate) fn hints(cards: &[(u32, Rc<Card>)]) -> String {
    dropped(cards) + &unreceived(cards) + &triggered(cards) + &handled(cards)
}

fn dropped(cards: &[(u32, Rc<Card>)]) -> String {
    let of_rank = |(rank, card): &(u32, Rc<Card>)| {
        let statistics = card.statistics();
        statistics.first_dropped().map(|first| (*rank, statistics.dropped_total(), first))
    };
    let found: Vec<_> = cards.iter().filter_map(of_rank).collect();
    let mut text: String = found
        .iter()
        .take(LISTED)
        .map(|(rank, count, first)| {
            let (the_first, what) = (if *count == 1 { ":" } else { ", the first" }, first);
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
    text
}

/// Reports messages of `send` without a receive.
fn unreceived(cards: &[(u32, Rc<Card>)]) -> String {
    let of_rank = |(rank, card): &(u32, Rc<Card>)| {
        card.unreceived().map(|(first, count)| (*rank, first, u64::from(count)))
    };
    let found: Vec<_> = cards.iter().filter_map(of_rank).collect();
    let mut text: String = found
        .iter()
        .take(LISTED)
        .map(|(rank, first, count)| {
            let (the_first, verb) = if *count == 1 { (":", "waits") } else { (", the first", "wait") };
            format!(
                "\n  note: at rank {rank}, {} {verb} for a recv{the_first} one of {} bytes from rank {}, \
                 tag {}",
                counted(*count, "message"),
                first.length,
                first.source.0,
                tag_of(first.match_bits),
            )
        })
        .collect();
    let others = &found[found.len().min(LISTED)..];
    if !others.is_empty() {
        let messages = others.iter().map(|(_, _, count)| count).sum();
        text += &format!(
            "\n  note: {} at {} wait for a recv",
            counted(messages, "message"),
            counted(others.len() as u64, "more rank")
        );
    }
    if !found.is_empty() {
        text += "\n  note: a recv takes messages of its source and tag; a recv without source or tag takes any message";
    }
    text
}

/// Reports triggered operations below their threshold.
fn triggered(cards: &[(u32, Rc<Card>)]) -> String {
    let of_rank =
        |(rank, card): &(u32, Rc<Card>)| card.waiting_triggered().map(|(first, count)| (*rank, first, count));
    let found: Vec<_> = cards.iter().filter_map(of_rank).collect();
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

fn handled(cards: &[(u32, Rc<Card>)]) -> String {
    let of_rank = |(rank, card): &(u32, Rc<Card>)| {
        let runs = card.processors().handler_statistics().runs;
        (runs > 0).then(|| (*rank, runs, card.packets_sent()))
    };
    let found: Vec<_> = cards.iter().filter_map(of_rank).collect();
    let mut text: String = found
        .iter()
        .take(LISTED)
        .map(|(rank, runs, packets)| {
            format!(
                "\n  note: {} ran on the card of rank {rank}, which sent {} in all; \
                 check the rank, match bits and offset of their puts, and how often they count",
                counted(*runs, "handler"),
                counted(*packets, "packet"),
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
