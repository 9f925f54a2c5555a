//! Explores small configurations with every order of events.
//!
//! The exploration visits every state. It checks that no sequence of steps returns to an earlier state, so every run
//! ends. In every end state, no channel has two waiting ends, both ends agree on the transfers, and all managers are
//! idle.

use crate::common::*;
use nicety_channels::Kind::{Direct, Indirect};
use nicety_channels::{Failure, Kind};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of an exploration.
struct Found {
    /// The end states: no step is possible in them.
    ends: Vec<System>,
}

/// A hash of a state with 128 bits, computed in one pass. It has two sums of folded products, with different factors.
#[derive(Default)]
struct Fingerprint([u64; 2]);

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word) ^ (chunk.len() as u64) << 60);
        }
    }

    fn write_u64(&mut self, word: u64) {
        for (half, factor) in self.0.iter_mut().zip([0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93]) {
            let product = u128::from(*half ^ word ^ factor) * u128::from(factor);
            *half = (product as u64 ^ (product >> 64) as u64).wrapping_add(word.rotate_left(29));
        }
    }

    fn finish(&self) -> u64 {
        self.0[0]
    }
}

fn fingerprint(system: &System) -> u128 {
    let mut hasher = Fingerprint::default();
    system.hash(&mut hasher);
    u128::from(hasher.0[0]) << 64 | u128::from(hasher.0[1])
}

fn explore(name: &str, scenario: &Scenario, at_least: usize) -> Found {
    let mut frontier = vec![(0u32, System::new(scenario))];
    let mut known = HashMap::from([(fingerprint(&frontier[0].1), 0u32)]);
    // For each state, the earlier state and the action that first reached it. `steps` has all steps.
    let mut came: Vec<(u32, Option<Action>)> = vec![(0, None)];
    let mut steps: Vec<(u32, u32)> = Vec::new();
    let mut ends = Vec::new();
    let fail = |came: &[(u32, Option<Action>)], mut at: u32, last: Option<Action>, what: &str| -> ! {
        let mut path: Vec<Action> = last.into_iter().collect();
        while let (before, Some(action)) = came[at as usize] {
            path.push(action);
            at = before;
        }
        path.reverse();
        panic!("{name}: {what}, after {path:#?}");
    };
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for (number, system) in frontier {
            let actions = system.actions(scenario);
            if actions.is_empty() {
                if let Err(what) = system.check_end(scenario) {
                    fail(&came, number, None, &what);
                }
                ends.push(system);
                continue;
            }
            for action in actions {
                let mut after = system.clone();
                match catch_unwind(AssertUnwindSafe(|| after.apply(scenario, action))) {
                    Ok(Ok(())) => {}
                    Ok(Err(what)) => fail(&came, number, Some(action), &what),
                    Err(_) => fail(&came, number, Some(action), "panicked"),
                }
                let fresh = known.len() as u32;
                let to = match known.entry(fingerprint(&after)) {
                    Entry::Occupied(entry) => *entry.get(),
                    Entry::Vacant(entry) => {
                        entry.insert(fresh);
                        came.push((number, Some(action)));
                        next.push((fresh, after));
                        fresh
                    }
                };
                steps.push((number, to));
            }
        }
        frontier = next;
    }
    assert!(is_acyclic(known.len(), &steps), "{name}: a run can go on for ever");
    let states = known.len();
    println!("{name}: {states} states, {} steps, {} ends", steps.len(), ends.len());
    assert!(states >= at_least, "{name}: {states} states, and at least {at_least} are there");
    Found { ends }
}

/// Returns whether the states have a topological order (Kahn's algorithm).
fn is_acyclic(states: usize, steps: &[(u32, u32)]) -> bool {
    let mut into = vec![0u32; states];
    let mut first = vec![0usize; states + 1];
    for (from, to) in steps {
        into[*to as usize] += 1;
        first[*from as usize + 1] += 1;
    }
    for i in 0..states {
        first[i + 1] += first[i];
    }
    let mut place = first.clone();
    let mut out = vec![0u32; steps.len()];
    for (from, to) in steps {
        out[place[*from as usize]] = *to;
        place[*from as usize] += 1;
    }
    let mut ready: Vec<usize> = (0..states).filter(|s| into[*s] == 0).collect();
    let mut ordered = 0;
    while let Some(state) = ready.pop() {
        ordered += 1;
        for to in &out[first[state]..first[state + 1]] {
            into[*to as usize] -= 1;
            if into[*to as usize] == 0 {
                ready.push(*to as usize);
            }
        }
    }
    ordered == states
}

impl Found {
    /// Checks that every program ended, for every order of events.
    fn all_end(&self, scenario: &Scenario) {
        assert!(self.ends.iter().all(|end| end.all_ended(scenario)));
    }

    /// Returns the set of outcomes of the runs. An outcome is a text with the results of all threads and contexts, in
    /// order.
    fn results(&self) -> BTreeSet<String> {
        let results = |end: &System| {
            let mut text = String::new();
            for (name, processes) in [("thread", &end.threads), ("context", &end.contexts)] {
                for (i, process) in processes.iter().enumerate() {
                    let calls = process.results.iter().map(|(guard, result)| match result {
                        Ok(bytes) => format!("{bytes}@{guard}"),
                        Err(failure) => format!("{failure:?}"),
                    });
                    text += &format!("{name} {i}: {}; ", calls.collect::<Vec<_>>().join(", "));
                }
            }
            text.trim_end_matches("; ").to_string()
        };
        self.ends.iter().map(results).collect()
    }

    fn assert_results(&self, expected: &[&str]) {
        assert_eq!(self.results(), expected.iter().map(|s| s.to_string()).collect());
    }
}

fn select(guards: &[(usize, Kind, u32)]) -> Op {
    Op::Receive { guards: guards.to_vec(), deadline: None }
}

#[test]
fn there_and_back_on_one_channel() {
    let s = Scenario::new(1, vec![vec![send(0, 1), receive(0, 2)]], vec![vec![receive(0, 1), send(0, 2)]]);
    let found = explore("there and back", &s, 50);
    found.all_end(&s);
    found.assert_results(&["thread 0: 1@0, 2@0; context 0: 1@0, 2@0"]);
}

#[test]
fn direct_messages_of_three_channels_share_one_manager_or_two() {
    let programs = || {
        let threads =
            vec![vec![send(0, 1), receive(0, 2)], vec![receive(1, 4), send(1, 3)], vec![send(2, 5)]];
        let contexts =
            vec![vec![receive(0, 1), send(0, 2)], vec![send(1, 4), receive(1, 3)], vec![receive(2, 5)]];
        Scenario::new(3, threads, contexts)
    };
    for (managers, at_least) in [((1, 1), 35_000), ((2, 1), 50_000)] {
        let s = Scenario { managers, ..programs() };
        explore("three channels", &s, at_least).all_end(&s);
    }
}

#[test]
fn a_message_whose_target_never_comes_blocks_no_other() {
    for managers in [(1, 1), (2, 2)] {
        let threads = vec![vec![send(0, 1)], vec![receive(0, 1)], vec![send(1, 2), receive(1, 3)]];
        let contexts = vec![vec![receive(1, 2), send(1, 3)], vec![send(2, 9)], vec![receive(2, 9)]];
        let s = Scenario { managers, ..Scenario::new(3, threads, contexts) };
        let found = explore("a target that never comes", &s, 7_000);
        for end in &found.ends {
            assert_eq!((end.threads[2].pc, end.contexts[0].pc), (2, 2));
            assert_eq!((end.threads[0].pc, end.threads[1].pc, end.contexts[1].pc), (0, 0, 0));
        }
    }
}

#[test]
fn indirect_messages_of_two_lists_go_both_ways_at_once() {
    let s = Scenario::new(
        2,
        vec![vec![send_indirect(0, 7)], vec![receive_indirect(1, 7)]],
        vec![vec![receive_indirect(0, 7)], vec![send_indirect(1, 7)]],
    );
    let found = explore("two indirect", &s, 8_000);
    found.all_end(&s);
    found.assert_results(&["thread 0: 7@0; thread 1: 7@0; context 0: 7@0; context 1: 7@0"]);
}

#[test]
fn two_indirect_messages_the_same_way_share_one_manager_or_two() {
    for managers in [(1, 1), (2, 2)] {
        let s = Scenario {
            managers,
            page_bytes: 3,
            ..Scenario::new(
                3,
                vec![
                    vec![send_indirect(0, 7)],
                    vec![send_indirect(1, 7)],
                    vec![receive_indirect(2, 7), send(2, 1)],
                ],
                vec![
                    vec![receive_indirect(0, 7)],
                    vec![receive_indirect(1, 7)],
                    vec![send_indirect(2, 7), receive(2, 1)],
                ],
            )
        };
        explore("two indirect the same way", &s, 20_000).all_end(&s);
    }
}

/// A message has seven pages, and the host retries once. One, two or more DMA errors are in the first list, in the
/// second list, or in both.
#[test]
fn dma_errors_are_retried_and_then_fail_at_both_ends() {
    let done = "thread 0: 7@0, 1@0; context 0: 7@0, 1@0";
    let first = "Dma { done: 0, outstanding: 7 }";
    let second = "Dma { done: 6, outstanding: 1 }";
    let [first, second] = [first, second].map(|f| format!("thread 0: {f}, 1@0; context 0: {f}, 1@0"));
    for errors in 1..=2 {
        let mut to_card = Scenario::new(
            1,
            vec![vec![send_indirect(0, 7), send(0, 1)]],
            vec![vec![receive_indirect(0, 7), receive(0, 1)]],
        );
        let mut to_host = Scenario::new(
            1,
            vec![vec![receive_indirect(0, 7), receive(0, 1)]],
            vec![vec![send_indirect(0, 7), send(0, 1)]],
        );
        for (name, s) in [("errors to the card", &mut to_card), ("errors to the host", &mut to_host)] {
            s.dma_errors = errors;
            let found = explore(name, s, 500 * errors as usize);
            found.all_end(s);
            match errors {
                1 => found.assert_results(&[done]),
                _ => found.assert_results(&[done, &first, &second]),
            }
        }
    }
}

/// Either end may time out at any moment. Then the other end's call has already succeeded, or it continues to wait.
#[test]
fn timeouts_at_both_ends() {
    let expected = [
        "thread 0: Timeout, 1@0; context 0: Timeout, 1@0",
        "thread 0: Timeout, 1@0; context 0: 1@0",
        "thread 0: 1@0, 1@0; context 0: 1@0, 1@0",
        "thread 0: 1@0; context 0: Timeout, 1@0",
    ];
    let (out, into) = (vec![send(0, 1).until(1), send(0, 1)], vec![receive(0, 1).until(1), receive(0, 1)]);
    let s = Scenario::new(1, vec![out.clone()], vec![into.clone()]);
    explore("timeouts to the card", &s, 300).assert_results(&expected);
    let s = Scenario::new(1, vec![into], vec![out]);
    explore("timeouts to the host", &s, 250).assert_results(&expected);
}

#[test]
fn timeouts_of_indirect_messages_with_errors() {
    let out = vec![send_indirect(0, 2).until(1), send_indirect(0, 2), send(0, 1)];
    let into = vec![receive_indirect(0, 2).until(1), receive_indirect(0, 2), receive(0, 1)];
    for (name, threads, contexts) in
        [("indirect timeouts to the card", &out, &into), ("indirect timeouts to the host", &into, &out)]
    {
        let s = Scenario {
            dma_errors: 2,
            pin_errors: 1,
            ..Scenario::new(1, vec![threads.clone()], vec![contexts.clone()])
        };
        explore(name, &s, 4_500);
    }
}

/// The same manager serves a timeout on one channel, and a message on another channel.
#[test]
fn timeouts_beside_other_channels() {
    let s = Scenario::new(
        2,
        vec![vec![send(0, 1).until(1), receive(0, 2).until(2)], vec![send(1, 3), receive(1, 4)]],
        vec![vec![receive(0, 1).until(1), send(0, 2).until(2)], vec![receive(1, 3), send(1, 4)]],
    );
    let found = explore("timeouts beside others", &s, 120_000);
    found.all_end(&s);
}

#[test]
fn a_selection_on_the_card_takes_any_one_sender_and_leaves_the_others() {
    let any = || select(&[(0, Direct, 1), (1, Direct, 2), (2, Indirect, 3)]);
    let s = Scenario::new(
        3,
        vec![vec![send(0, 1)], vec![send(1, 2)], vec![send_indirect(2, 3)]],
        vec![vec![any(), any(), any()]],
    );
    for managers in [(1, 1), (2, 1)] {
        let s = Scenario { managers, page_bytes: 2, ..s.clone() };
        let found = explore("selection on the card", &s, 1_700);
        found.all_end(&s);
        // Every order of the three messages occurs.
        let mut expected = Vec::new();
        for [a, b, c] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let name = |i: i32| format!("{}@{i}", i + 1);
            expected.push(format!(
                "thread 0: 1@0; thread 1: 2@0; thread 2: 3@0; context 0: {}, {}, {}",
                name(a),
                name(b),
                name(c)
            ));
        }
        found.assert_results(&expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn a_selection_on_the_host_takes_any_one_sender_and_leaves_the_others() {
    let any = || select(&[(0, Direct, 1), (1, Direct, 2), (2, Indirect, 3)]);
    let s = Scenario::new(
        3,
        vec![vec![any(), any(), any()]],
        vec![vec![send(0, 1)], vec![send(1, 2)], vec![send_indirect(2, 3)]],
    );
    for managers in [(1, 1), (1, 2)] {
        let s = Scenario { managers, page_bytes: 2, ..s.clone() };
        let found = explore("selection on the host", &s, 3_000);
        found.all_end(&s);
        assert_eq!(found.results().len(), 6);
    }
}

/// Selections and senders on both sides may time out, and a buffer may fail to pin.
#[test]
fn selections_with_timeouts_and_failures_to_pin() {
    let any = || select(&[(0, Direct, 1), (1, Indirect, 2)]);
    let (choose, one, two) =
        (vec![any().until(1), any()], vec![send(0, 1).until(1)], vec![send_indirect(1, 2).until(2)]);
    let s = Scenario {
        pin_errors: 1,
        dma_errors: 1,
        ..Scenario::new(2, vec![choose.clone()], vec![one.clone(), two.clone()])
    };
    let found = explore("selection on the host with timeouts", &s, 10_000);
    assert!(found.results().iter().any(|r| r == "thread 0: Pin, 1@0; context 0: 1@0; context 1: Pin"));
    let s = Scenario { pin_errors: 1, dma_errors: 1, ..Scenario::new(2, vec![one, two], vec![choose]) };
    explore("selection on the card with timeouts", &s, 12_000);
}

#[test]
fn mismatches_fail_at_both_ends_and_free_the_manager() {
    let out = vec![send(0, 1), send_indirect(0, 2), send(0, 3), send_indirect(0, 4), send(0, 5)];
    let into =
        vec![receive(0, 2), receive_indirect(0, 3), receive_indirect(0, 3), receive(0, 4), receive(0, 5)];
    let results = "SizeMismatch { sent: 1, expected: 2 }, SizeMismatch { sent: 2, expected: 3 }, \
                   KindMismatch { sent: Direct }, KindMismatch { sent: Indirect }, 5@0";
    let expected = format!("thread 0: {results}; context 0: {results}");
    for (threads, contexts) in [(&out, &into), (&into, &out)] {
        let s = Scenario::new(1, vec![threads.clone()], vec![contexts.clone()]);
        let found = explore("mismatches", &s, 80);
        found.all_end(&s);
        found.assert_results(&[&expected]);
    }
}

/// The card's processes may call before the host subscribes. They may wait at a channel that is closed and opened
/// again.
#[test]
fn subscribing_closing_and_subscribing_again() {
    let (subscribe, close) = (Op::Subscribe { on: 0 }, Op::Close { on: 0 });
    let s = Scenario {
        subscribed: false,
        ..Scenario::new(
            1,
            vec![vec![
                subscribe.clone(),
                receive(0, 1),
                close.clone(),
                subscribe.clone(),
                receive(0, 2),
                close,
            ]],
            vec![vec![send(0, 1), send(0, 2), send(0, 2)], vec![receive(0, 7), receive(0, 7), receive(0, 7)]],
        )
    };
    let found = explore("closing", &s, 2_000);
    // The first message is always received.
    assert!(found.ends.iter().all(|end| end.contexts[0].results[0] == (0, Ok(1))));
    // Either the second message is received, or its call fails at the close and the third message is received.
    for end in &found.ends {
        let results = &end.contexts[0].results;
        assert!(matches!(results[1].1, Ok(2) | Err(Failure::Closed)), "{results:?}");
    }
    assert!(found.results().len() > 3);
}

/// The card handles the reply to the host's last received message before it closes the channel, although different
/// managers serve reply and close.
#[test]
fn closing_right_after_a_receive_with_timeouts_in_flight() {
    let programs = vec![vec![
        receive(0, 1).until(1),
        Op::Close { on: 0 },
        Op::Subscribe { on: 0 },
        receive(0, 2).until(2),
    ]];
    let s = Scenario {
        managers: (2, 2),
        ..Scenario::new(1, programs, vec![vec![send(0, 1).until(1), send(0, 2).until(2)]])
    };
    let found = explore("closing after a receive", &s, 4_000);
    for end in &found.ends {
        assert!(end.threads[0].pc == 4 && end.contexts[0].pc == 2, "everything ends here: {end:?}");
    }
}

/// The only write manager serves another channel while the host's last reply is in the mailbox of a channel that is
/// being closed.
#[test]
fn closing_waits_for_the_last_acknowledgement() {
    let s = Scenario::new(
        2,
        vec![vec![receive(0, 1), Op::Close { on: 0 }], vec![receive(1, 2)]],
        vec![vec![send(0, 1)], vec![send(1, 2)]],
    );
    let found = explore("closing beside another channel", &s, 300);
    found.all_end(&s);
    found.assert_results(&["thread 0: 1@0, 0@0; thread 1: 2@0; context 0: 1@0; context 1: 2@0"]);
}

/// The largest configuration has three channels, both directions, both kinds of message, a selection, timeouts and
/// errors.
#[test]
fn everything_at_once() {
    let s = Scenario {
        dma_errors: 1,
        page_bytes: 4,
        ..Scenario::new(
            3,
            vec![vec![send(0, 1).until(1)], vec![send_indirect(1, 7)], vec![receive(2, 2).until(2)]],
            vec![vec![select(&[(0, Direct, 1), (1, Indirect, 7)]).until(1)], vec![send(2, 2).until(2)]],
        )
    };
    explore("everything", &s, 100_000);
}
