//! The records of a message at both nodes: the send at the sender, and the outcome at the target.

use crate::support::code::{Code, payload, result};
use crate::support::*;
use nicety_fabric::{Faults, LinkFaults, Place, Rates};
use nicety_kernel::Config;
use nicety_portals::EventKind;
use nicety_types::{Level, NodeId, Recorder};

fn recorder() -> Recorder {
    Recorder::new(Level::Messages, 100)
}

/// Returns the outcome of each arrived message, and whether the message is complete.
fn outcomes(recorder: &Recorder) -> Vec<(&'static str, bool)> {
    recorder.take().messages.arrived().map(|row| (row.outcome, row.completed.is_some())).collect()
}

#[test]
fn messages_to_match_entries_say_how_they_ended() {
    let (sender, target) = (recorder(), recorder());
    let both = [sender.clone(), target.clone()];
    let mut rig = Rig::recorded(&[], Config::default(), &Faults::default(), both);
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&[1; 8]), 0);
        a.start().await;
        for match_bits in [0, 1, 9] {
            a.put(&nicety_portals::PutRequest { match_bits, ..request }).await.unwrap();
        }
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&[0; 8]);
        b.append(entry(&memory, 0)).await.unwrap();
        let fails = payload(Code::new().returns(result::FAIL));
        b.append_with(entry(&memory, 1), &fails, &[]).await.unwrap();
        for _ in 0..2 {
            b.event(EventKind::Put).await;
        }
    });
    rig.run();
    assert_eq!(outcomes(&target), [("ok", true), ("handler error", true), ("dropped", false)]);
    let sent: Vec<_> = sender.take().messages.sent().collect();
    let sent: Vec<_> = sent.iter().map(|row| (row.kind, row.by.name(), row.bytes, row.target)).collect();
    assert_eq!(sent, [("put", "host", 8, NodeId(1)); 3]);
}

#[test]
fn a_message_that_never_comes_whole_is_under_way() {
    let target = recorder();
    let second = LinkFaults {
        from: Place::Host(0),
        to: Place::Host(1),
        rates: Rates::default(),
        down: vec![],
        drop: vec![2],
    };
    let faults = Faults { links: vec![second], ..Faults::default() };
    let mut rig = Rig::recorded(&[], Config::default(), &faults, [Recorder::off(), target.clone()]);
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&[1; 8192]), 0);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async move |b| {
        b.append(entry(&b.alloc(&[0; 8192]), 0)).await.unwrap();
        b.start().await;
    });
    rig.run();
    assert_eq!(outcomes(&target), [("in flight", false)]);
}
