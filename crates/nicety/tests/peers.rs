//! Tests processes that run parts of a computation. In these tests, the processes are threads.

use nicety::{Error, Exchange, Outcome, Peers};
use nicety_kernel::Parts;
use proptest::prelude::*;
use std::thread;

/// Runs `act` in each of `count` processes, and returns all results.
fn each<T: Send>(count: usize, act: impl Fn(Peers) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let act = &act;
        let running: Vec<_> =
            Peers::in_threads(count).into_iter().map(|peers| scope.spawn(move || act(peers))).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// Runs a part that meets the other parts for `rounds` rounds, and then returns `end`.
fn part(peers: &Peers, rounds: u64, end: Result<u64, Error>) -> Result<Outcome<u64>, Error> {
    peers.run::<String, u64>(|mut connected| {
        for round in 0..rounds {
            if connected.meet(round, &mut [], &mut Vec::new()).is_none() {
                return Err(Error::Deadlock("it never tells this".to_owned()));
            }
        }
        end
    })
}

fn name(outcome: &Result<Outcome<u64>, Error>) -> String {
    match outcome {
        Ok(Outcome::Ended(results)) => format!("{results:?}"),
        Ok(Outcome::Failed) => "failed".to_owned(),
        Ok(Outcome::Interrupted) => "interrupted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn messages_and_words_reach_all() {
    let found = each(3, |peers| {
        let outcome = peers.run::<(usize, String), Vec<String>>(|mut connected| {
            let (own, count) = connected.place();
            let mut seen = Vec::new();
            for round in 0..3 {
                let mut mail: Vec<Vec<_>> = (0..count)
                    .map(|to| (to..round).map(|_| (to, format!("{own}{round}"))).collect())
                    .collect();
                mail[own].clear();
                let mut incoming = Vec::new();
                let words = connected.meet(10 * round as u64 + own as u64, &mut mail, &mut incoming).unwrap();
                assert_eq!(words, [0, 1, 2].map(|other| 10 * round as u64 + other));
                assert!(mail.iter().all(Vec::is_empty) && incoming.iter().all(|(to, _)| *to == own));
                seen.extend(incoming.into_iter().map(|(_, text)| text));
            }
            Ok(seen)
        });
        match outcome {
            Ok(Outcome::Ended(all)) => all,
            _ => panic!("it ends"),
        }
    });
    // Process 0 gets one message from each other process in round 1, and two in round 2. Process 1 gets one from each
    // in round 2.
    assert_eq!(found[0][0], ["11", "21", "12", "12", "22", "22"]);
    assert_eq!(found[0][1], ["02", "22"]);
    assert!(found[0][2].is_empty());
    assert!(found.iter().all(|other| *other == found[0]), "all have all results");
}

#[test]
fn the_first_process_that_leaves_is_told_of() {
    let found = each(3, |peers| match peers.number() {
        1 => {
            let own = peers.leave(2).unwrap();
            assert_eq!(peers.leave(3).unwrap(), own);
            (String::new(), own)
        }
        // The other processes still run, and get the news that a process has left. Their next step does not wait for
        // that process.
        _ => {
            let outcome = name(&part(&peers, 5, Ok(7)));
            assert_eq!(name(&part(&peers, 5, Ok(7))), outcome);
            (outcome, peers.leave(0).unwrap())
        }
    });
    let left = |told: &str| (told.to_owned(), vec![None, Some(2), None]);
    let others = || left("interrupted");
    assert_eq!(found, [others(), left(""), others()]);
    assert_eq!(
        each(2, |peers| peers.leave(peers.number() as u8).unwrap()),
        [(); 2].map(|()| vec![Some(0), Some(1)])
    );
}

#[test]
fn other_inputs_are_found_out() {
    let found =
        each(3, |peers| peers.agree(u64::from(peers.number() == 2)).map_err(|error| error.to_string()));
    assert!(
        found
            .iter()
            .all(|one| one.as_ref().is_err_and(|text| text.starts_with("process 2 has another schedule")))
    );
    assert_eq!(each(3, |peers| peers.agree(7)), [(); 3].map(|()| Ok(())));
}

#[test]
fn other_bytes_are_refused() {
    struct Other;
    impl Exchange for Other {
        fn exchange(&self, mut bytes: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
            bytes[1] = vec![0xff; 12];
            Ok(bytes)
        }
    }
    let error = part(&Peers::new(0, 2, Box::new(Other)), 1, Ok(1)).err().unwrap();
    assert!(matches!(&error, Error::Input(text) if text.contains("process 1 of 2")), "{error}");
}

proptest! {
    /// All processes get the same outcome, regardless of the round and the way in which each part ends.
    #[test]
    fn all_agree(ends in proptest::collection::vec((0..6_u64, 0..4_u8), 2..5)) {
        let found = each(ends.len(), |peers| {
            let (rounds, end) = ends[peers.number()];
            let end = match end {
                0 => Err(Error::Interrupted),
                1 => Err(Error::Program("x".to_owned())),
                other => Ok(u64::from(other)),
            };
            // A second computation ends normally after any first computation.
            [part(&peers, rounds, end), part(&peers, 2, Ok(1))].map(|outcome| name(&outcome))
        });
        prop_assert!(found.iter().all(|other| *other == found[0]), "{found:?}");
        prop_assert_eq!(&found[0][1], &format!("{:?}", vec![1; ends.len()]));
        let first = ends.iter().map(|(rounds, _)| *rounds).min().unwrap();
        let ended_first = || ends.iter().filter(|(rounds, _)| *rounds == first);
        let whole = ended_first().count() == ends.len() && ended_first().all(|(_, end)| *end > 1);
        let expected = match whole {
            true => format!("{:?}", ends.iter().map(|(_, end)| u64::from(*end)).collect::<Vec<_>>()),
            false if ended_first().any(|(_, end)| *end == 0) => "interrupted".to_owned(),
            false => "failed".to_owned(),
        };
        prop_assert_eq!(&found[0][0], &expected);
    }
}
