//! Deadlock hints: refused or incomplete messages, lost events, events that no call takes, and processes without
//! registered memory.

use crate::messages::Messenger;
use crate::receive::Incoming;
use crate::wire::Kind;
use crate::{Card, LIBRARY};
use nicety_nic_core::{BlockedSends, at_ranks, counted};
use std::rc::Rc;

/// Returns all hints, as notes on a deadlock.
pub(super) fn hints(nodes: &[(u32, Rc<Card>, Rc<Messenger>)]) -> String {
    let of_card = |fact: fn(&Card) -> Vec<String>| {
        move |(rank, card, _): &(u32, Rc<Card>, _)| -> Vec<(u32, String)> {
            fact(card).into_iter().map(|text| (*rank, text)).collect()
        }
    };
    let facts = [refused, lost, incomplete, gets, queues].map(|fact| {
        let all: Vec<(u32, String)> = nodes.iter().flat_map(of_card(fact)).collect();
        at_ranks(&all)
    });
    let of_library =
        |(rank, _, messenger): &(u32, _, Rc<Messenger>)| Some((*rank, messenger.library.unreceived()?));
    let unreceived: Vec<(u32, String)> = nodes.iter().filter_map(of_library).collect();
    let full: Vec<(u32, String)> = nodes
        .iter()
        .flat_map(|(rank, _, messenger)| {
            let text = |blocked: BlockedSends| (*rank, blocked.text(Some("messages.window")));
            messenger.windows.blocked_sends().into_iter().map(text)
        })
        .collect();
    facts.concat() + &at_ranks(&unreceived) + &at_ranks(&full)
}

fn refused(card: &Card) -> Vec<String> {
    let Some((header, why)) = *card.receive.first_refused.borrow() else { return Vec::new() };
    let count = card.statistics().refused;
    let what = match (header.kind, header.address) {
        (Kind::Get, _) => "get",
        (_, 0) => "send",
        _ => "put",
    };
    let first = if count == 1 { "was refused:" } else { "were refused; the first was" };
    let (bytes, from, to) = (header.bytes, header.from.node.0, process(header.to.process));
    vec![format!(
        "{} {first} a {what} of {bytes} bytes of rank {from} for {to}: {why}",
        counted(count, "message")
    )]
}

fn lost(card: &Card) -> Vec<String> {
    let counted_here = card.statistics();
    let events = (counted_here.events_lost > 0).then(|| {
        let count = counted(counted_here.events_lost, "event");
        format!(
            "{count} found no room in a queue; raise events.entries or events.user, or take events more often"
        )
    });
    let flushed = (counted_here.flushed > 0).then(|| {
        let verb = if counted_here.flushed == 1 { "was" } else { "were" };
        format!(
            "{} {verb} dropped, because the receive side is flushed",
            counted(counted_here.flushed, "packet")
        )
    });
    events.into_iter().chain(flushed).collect()
}

/// Returns a hint for each message with missing packets.
fn incomplete(card: &Card) -> Vec<String> {
    let open = card.receive.open.borrow();
    let of = |incoming: &Rc<Incoming>| {
        let (header, come) = (incoming.header, incoming.come.get());
        let what = if header.kind == Kind::Reply { "the reply to a get" } else { "a message" };
        format!(
            "{come} of the {} bytes of {what} have arrived from rank {}",
            header.bytes, header.from.node.0
        )
    };
    open.values().map(of).collect()
}

/// Returns a hint for each get without any packet of its reply.
fn gets(card: &Card) -> Vec<String> {
    let gets = card.receive.gets.borrow();
    let waiting = gets.values().filter(|get| !get.begun);
    waiting
        .map(|get| format!("a get of {} bytes from rank {} has no reply", get.bytes, get.peer.node.0))
        .collect()
}

/// Returns a hint for each process with events that no call takes. Also for each process that waits for an event
/// although every put to the process is refused.
fn queues(card: &Card) -> Vec<String> {
    let of = |(number, events, waits): (u32, std::collections::BTreeMap<&'static str, u64>, bool)| {
        let names: Vec<String> = events.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let kept = (!names.is_empty())
            .then(|| format!("{} has events that no call has taken: {}", process(number), names.join(", ")));
        let nothing = (number != LIBRARY && waits && !card.translation.regions.has_any(number)).then(|| {
            format!(
                "{} waits for an event but has registered no memory: the card refuses puts to it",
                process(number)
            )
        });
        kept.into_iter().chain(nothing)
    };
    card.events.queued().into_iter().flat_map(of).collect()
}

fn process(number: u32) -> String {
    match number {
        LIBRARY => "the library of send and recv".to_owned(),
        _ => format!("process {number}"),
    }
}
