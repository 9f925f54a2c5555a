//! Compares random programs on many channels, in random orders of events, with a model without mailboxes.

use crate::common::*;
use nicety_channels::*;
use proptest::prelude::*;

/// A model of rendezvous alone: a message is transferred when both ends are at the lane.
struct Model {
    places: [Vec<usize>; 2],
    results: [Vec<Vec<Outcome>>; 2],
}

impl Model {
    fn run(scenario: &Scenario) -> Model {
        let programs = [&scenario.threads, &scenario.contexts];
        let mut model = Model {
            places: programs.map(|p| vec![0; p.len()]),
            results: programs.map(|p| vec![Vec::new(); p.len()]),
        };
        while let Some((thread, context)) = model.pair(scenario) {
            let (host, card) = (
                &scenario.threads[thread][model.places[0][thread]],
                &scenario.contexts[context][model.places[1][context]],
            );
            let (sender, receiver) =
                if matches!(host, Op::Send { .. }) { (host, card) } else { (card, host) };
            let (Op::Send { kind, bytes, .. }, Op::Receive { guards, .. }) = (sender, receiver) else {
                unreachable!()
            };
            let (_, expected_kind, expected) = guards[0];
            let result = if *kind != expected_kind {
                Err(Failure::KindMismatch { sent: *kind })
            } else if *bytes != expected {
                Err(Failure::SizeMismatch { sent: *bytes, expected })
            } else {
                Ok(expected)
            };
            for (side, process) in [(0, thread), (1, context)] {
                model.places[side][process] += 1;
                model.results[side][process].push((0, result));
            }
        }
        model
    }

    /// Returns a thread and a context that are at the two ends of a lane.
    fn pair(&self, scenario: &Scenario) -> Option<(usize, usize)> {
        let at = |side: usize, programs: &[Vec<Op>], process: usize| {
            let op = programs[process].get(self.places[side][process])?;
            op.lanes([Side::Host, Side::Card][side]).first().copied()
        };
        (0..scenario.threads.len()).find_map(|thread| {
            let lane = at(0, &scenario.threads, thread)?;
            let context = (0..scenario.contexts.len())
                .find(|context| at(1, &scenario.contexts, *context) == Some(lane))?;
            Some((thread, context))
        })
    }
}

fn size_and_kind() -> impl Strategy<Value = (u32, Kind)> {
    prop_oneof![
        (1..=56u32).prop_map(|n| (n, Kind::Direct)),
        (1..=60_000u32).prop_map(|n| (n, Kind::Indirect)),
        Just((56, Kind::Direct)),
        Just((6 * 4096, Kind::Indirect)),
        Just((6 * 4096 + 1, Kind::Indirect)),
    ]
}

fn op(send: bool, on: usize, kind: Kind, bytes: u32, deadline: Deadline) -> Op {
    if send {
        Op::Send { on, kind, bytes, deadline }
    } else {
        Op::Receive { guards: vec![(on, kind, bytes)], deadline }
    }
}

/// Generates programs in which every lane has one thread and one context. The calls come from exchanges in one order, so that all
/// exchanges can take place. Then a few calls are removed or swapped, so that some exchanges cannot take place or do not match.
fn programs(timeouts: bool) -> impl Strategy<Value = Scenario> {
    let exchanges =
        prop::collection::vec((0..6usize, any::<bool>(), size_and_kind(), any::<[u8; 2]>()), 1..40);
    let changes = prop::collection::vec((any::<bool>(), any::<u16>(), any::<u16>(), size_and_kind()), 0..4);
    let owners = prop::collection::vec((0..5usize, 0..5usize), 12);
    (exchanges, changes, owners, 1..4u8, 1..4u8, 0..3u8).prop_map(
        move |(exchanges, changes, owners, readers, writers, mode)| {
            let (mut threads, mut contexts) = (vec![Vec::new(); 5], vec![Vec::new(); 5]);
            for (on, to_card, (bytes, kind), deadlines) in exchanges {
                let (thread, context) = owners[2 * on + usize::from(to_card)];
                let [host, card] = deadlines.map(|d| (timeouts && d < 64).then_some(u64::from(d)));
                // The index of a call has four bits in the first byte of its message.
                if threads[thread].len() < 16 && contexts[context].len() < 16 {
                    threads[thread].push(op(to_card, on, kind, bytes, host));
                    contexts[context].push(op(!to_card, on, kind, bytes, card));
                }
            }
            for (host, process, place, (bytes, kind)) in changes {
                let programs = if host { &mut threads } else { &mut contexts };
                let program = &mut programs[process as usize % 5];
                if program.is_empty() {
                    continue;
                }
                let place = place as usize % program.len();
                match (mode, &mut program[place]) {
                    (0, _) => {}
                    (1, _) => drop(program.remove(place)),
                    (_, Op::Send { bytes: b, kind: k, .. }) => (*b, *k) = (bytes, kind),
                    (_, Op::Receive { guards, .. }) => (guards[0].1, guards[0].2) = (kind, bytes),
                    _ => {}
                }
            }
            Scenario {
                managers: (readers, writers),
                page_bytes: PAGE_BYTES,
                ..Scenario::new(6, threads, contexts)
            }
        },
    )
}

/// Makes calls and completes steps in flight in the order of `choices`, until none are left.
fn run(scenario: &Scenario, choices: &[u16]) -> Result<System, TestCaseError> {
    let mut system = System::new(scenario);
    let mut choices = choices.iter().cycle();
    for _ in 0..1_000_000 {
        let actions = system.actions(scenario);
        if actions.is_empty() {
            system.check_end(scenario).map_err(TestCaseError::fail)?;
            return Ok(system);
        }
        let choice = usize::from(*choices.next().unwrap()) % actions.len();
        system.apply(scenario, actions[choice]).map_err(TestCaseError::fail)?;
    }
    Err(TestCaseError::fail("a run that does not end"))
}

fn choices() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 97)
}

proptest! {
    /// In every order of events, exactly the messages that rendezvous allows are transferred.
    #[test]
    fn programs_do_what_the_model_does(scenario in programs(false), choices in choices()) {
        let system = run(&scenario, &choices)?;
        let model = Model::run(&scenario);
        for (processes, results) in [(&system.threads, &model.results[0]), (&system.contexts, &model.results[1])] {
            for (process, results) in processes.iter().zip(results) {
                prop_assert_eq!(&process.results, results);
            }
        }
    }

    /// DMA errors within the limit of retries do not change the results of programs.
    #[test]
    fn dma_errors_are_not_seen_by_programs(scenario in programs(false), choices in choices()) {
        let scenario = Scenario { dma_errors: 9, retries: 9, ..scenario };
        let system = run(&scenario, &choices)?;
        let model = Model::run(&scenario);
        for (processes, results) in [(&system.threads, &model.results[0]), (&system.contexts, &model.results[1])] {
            for (process, results) in processes.iter().zip(results) {
                prop_assert_eq!(&process.results, results);
            }
        }
        prop_assert!(system.retried <= 9);
    }

    /// With timeouts and errors, both ends still agree, and no two processes wait for each other. At the end, all
    /// managers are idle and all pages are unpinned.
    #[test]
    fn nothing_is_left_behind(
        scenario in programs(true),
        choices in choices(),
        dma_errors in 0..9u8,
        pin_errors in 0..3u8,
        retries in 0..3u8,
    ) {
        let scenario = Scenario { dma_errors, pin_errors, retries, ..scenario };
        run(&scenario, &choices)?;
    }

    /// A thread and a context receive all messages to them by selections.
    #[test]
    fn selections_take_everything_once(
        kinds in prop::collection::vec((any::<bool>(), size_and_kind()), 2..6),
        managers in (1..4u8, 1..4u8),
        turn in 0..6usize,
        choices in choices(),
    ) {
        let mut guards: [Vec<_>; 2] = Default::default();
        let (mut threads, mut contexts) = (vec![Vec::new()], vec![Vec::new()]);
        for (on, (to_card, (bytes, kind))) in kinds.iter().enumerate() {
            let sends = vec![op(true, on, *kind, *bytes, None)];
            guards[usize::from(*to_card)].push((on, *kind, *bytes));
            if *to_card { threads.push(sends) } else { contexts.push(sends) }
        }
        for (into, guards) in [(&mut threads, &guards[0]), (&mut contexts, &guards[1])] {
            let mut guards = guards.clone();
            if let Some(turn) = turn.checked_rem(guards.len()) {
                guards.rotate_left(turn);
            }
            into[0] = guards.iter().map(|_| Op::Receive { guards: guards.clone(), deadline: None }).collect();
        }
        let scenario = Scenario { managers, page_bytes: PAGE_BYTES, ..Scenario::new(kinds.len(), threads, contexts) };
        prop_assert!(run(&scenario, &choices)?.all_ended(&scenario));
    }
}
