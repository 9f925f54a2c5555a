//! Tests messages between hosts with failing transfers and dropped sends. The resources of such messages are freed, and
//! other messages continue.

use super::messages::{Node, pair, pattern};
use nicety_kernel::{Signal, timeout};
use nicety_nic_core::{LARGEST_TAG, Tags};
use nicety_nic_nfp::{ChannelError, ChannelFailure, MessageError, WINDOW};
use nicety_types::{Duration, Path, Time};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

/// The tag of the last message.
const END: u64 = LARGEST_TAG;
const ROOM: usize = 400_000;

/// Returns whether a message may have this error when transfers fail or its send was dropped.
fn expected(error: &MessageError) -> bool {
    matches!(
        error,
        MessageError::Channel(ChannelError::Failed(ChannelFailure::Dma { .. }))
            | MessageError::Abandoned { .. }
            | MessageError::Refused { .. }
            | MessageError::NoRoom { .. }
    )
}

/// Both hosts send these messages to each other, each message from its own thread. A message is its size, and the time
/// after which its thread drops the send, if any. Both hosts receive until the last message. Returns the number of
/// failed sends, and that of failed receives.
fn exchange(messages: &[(usize, Option<u64>)], errors: u32, seed: u64) -> (u32, u32) {
    let (may_fail, errors) = (errors > 0, format!("dma.errors={errors} %"));
    let (mut world, nodes) = pair(&crate::spec(&[&errors, "driver.retries=0"]), seed);
    let failed = [Rc::new(Cell::new(0)), Rc::new(Cell::new(0))];
    for node in nodes {
        let (me, other) = (node.sim.node().0, 1 - node.sim.node().0);
        let left = Rc::new(Cell::new(messages.len()));
        let ended = Signal::new(&node.sim);
        for (number, &(len, limit)) in messages.iter().enumerate() {
            let (node, left, ended, failed) = (node.clone(), left.clone(), ended.clone(), failed[0].clone());
            node.sim.clone().spawn_program(format!("sender {number}"), async move {
                let address = node.buffer(&pattern(len, number));
                let mut path = Path::from(Time::ZERO);
                let send = node.messenger.send(&mut path, other, number as u64, address, len as u64);
                let result = match limit {
                    Some(limit) => timeout(&node.sim, Duration::from_ns(limit), send).await.unwrap_or(Ok(())),
                    None => send.await,
                };
                if let Err(error) = result {
                    assert!(expected(&error), "{error}");
                    failed.set(failed.get() + 1);
                }
                left.set(left.get() - 1);
                ended.notify_all();
            });
        }
        let last = node.clone();
        node.sim.clone().spawn_program("last", async move {
            ended.wait_until(|| left.get() == 0).await;
            // These are more messages than lanes and windows have room for, so all lanes and windows must have become
            // free.
            for number in 0..2 * WINDOW as usize {
                let address = last.buffer(&pattern(40 + number, 7));
                let mut path = Path::from(last.sim.now());
                let bytes = (40 + number) as u64;
                let _ = last.messenger.send(&mut path, other, END - 1, address, bytes).await;
            }
            let (address, mut path) = (last.buffer(&[1]), Path::from(last.sim.now()));
            last.messenger.send(&mut path, other, END, address, 1).await.unwrap();
        });
        let failed = failed[1].clone();
        node.sim.clone().spawn_program("receiver", async move {
            let mut counted = 0;
            loop {
                let (address, mut path) = (node.buffer(&[0; ROOM]), Path::from(node.sim.now()));
                let posted =
                    node.messenger.post(&path, Some(other), Tags::ANY, address, ROOM as u64).unwrap();
                match node.messenger.received(&mut path, posted).await {
                    Ok(arrival) if arrival.tag == END => break,
                    Ok(arrival) if arrival.tag == END - 1 => counted += 1,
                    Ok(arrival) => {
                        let len = arrival.bytes as usize;
                        assert_eq!(node.bytes(address, len), pattern(len, arrival.tag as usize), "{me}");
                    }
                    Err(error) => {
                        assert!(expected(&error), "{error}");
                        failed.set(failed.get() + 1);
                    }
                }
            }
            assert!(may_fail || counted == 2 * WINDOW, "{counted}");
        });
    }
    world.run().unwrap_or_else(|error| panic!("{error}"));
    (failed[0].get(), failed[1].get())
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(12))]

    #[test]
    fn messages_that_fail_or_are_dropped_hold_nothing(
        messages in prop::collection::vec(
            (prop_oneof![0..80usize, 80..5000usize, 60_000..300_000usize],
             prop_oneof![Just(None), (0..400_000u64).prop_map(Some), (0..20_000u64).prop_map(Some)]),
            1..25,
        ),
        errors in prop_oneof![Just(0u32), 1..40u32],
        seed in 0..1000u64,
    ) {
        let failed = exchange(&messages, errors, seed);
        prop_assert!(errors > 0 || failed == (0, 0), "{failed:?}");
    }
}

#[test]
fn a_transfer_that_fails_ends_its_message_at_both_hosts() {
    let messages = vec![(200_000, None); 20];
    let (sends, receives) = exchange(&messages, 3, 1);
    // Each of the forty messages transfers 49 pages to the card, and 49 pages to the other host.
    assert!(sends > 10 && receives > sends, "{sends} sends and {receives} receives failed");
}

#[test]
fn a_receive_that_is_too_small_lets_its_sender_go() {
    let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
    a.sim.clone().spawn_program("sender", async move {
        let (address, mut path) = (a.buffer(&[0; 5000]), Path::from(Time::ZERO));
        let error = a.messenger.send(&mut path, 1, 3, address, 5000).await.unwrap_err();
        assert_eq!(error, MessageError::Refused { rank: 1, bytes: 5000 });
        assert!(error.to_string().contains("rank 1 has no room for a message of 5000 bytes"), "{error}");
        a.messenger.send(&mut path, 1, 4, address, 5000).await.unwrap();
    });
    b.sim.clone().spawn_program("receiver", async move {
        let (address, mut path) = (b.buffer(&[0; 5000]), Path::from(Time::ZERO));
        let posted = b.messenger.post(&path, None, Tags::ANY, address, 4999).unwrap();
        assert!(matches!(b.messenger.received(&mut path, posted).await, Err(MessageError::NoRoom { .. })));
        let posted = b.messenger.post(&path, None, Tags::ANY, address, 5000).unwrap();
        assert_eq!(b.messenger.received(&mut path, posted).await.unwrap().tag, 4);
    });
    world.run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn messages_need_a_thread_for_each_channel_and_no_more() {
    let (mut world, nodes) = pair(&crate::spec(&["limits.threads=18"]), 1);
    for node in nodes {
        for number in 0..12u64 {
            let (node, other): (Node, u32) = (node.clone(), 1 - node.sim.node().0);
            node.sim.clone().spawn_program(format!("thread {number}"), async move {
                let mut path = Path::from(Time::ZERO);
                let (out, back) = (node.buffer(&pattern(9000, number as usize)), node.buffer(&[0; 9000]));
                let posted =
                    node.messenger.post(&path, Some(other), Tags::exactly(number), back, 9000).unwrap();
                node.messenger.send(&mut path, other, number, out, 9000).await.unwrap();
                node.messenger.received(&mut path, posted).await.unwrap();
                assert_eq!(node.bytes(back, 9000), pattern(9000, number as usize));
            });
        }
    }
    world.run().unwrap_or_else(|error| panic!("{error}"));
}
