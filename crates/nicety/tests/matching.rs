//! Tests that receives match messages on a card of every design: by source, by all bits of the tag, and in order.

use nicety::{Cluster, ClusterConfig, Error, Host, LARGEST_TAG, Tags, Topology, cards};
use nicety_types::Duration;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const CARDS: [&str; 5] = ["spin-discrete", "nfp-4000", "qnix", "apenet-v5", "niagara2-niu"];

/// Two lengths in bytes. Every design sends a short message at once. Some designs hold a long message until its receive is
/// posted.
const SHORT: u64 = 8;
const LONG: u64 = 20_000;

/// A message to rank 0.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: u32,
    tag: u64,
    bytes: u64,
}

/// A receive of rank 0.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    source: Option<u32>,
    tags: Tags,
}

/// Delays of receives and of sends, in microseconds. Each pair is the delay before the first one, and that between two
/// of them.
#[derive(Clone, Copy, Debug)]
struct Times {
    receives: (u64, u64),
    sends: (u64, u64),
}

/// The delay between sends, in microseconds. It is longer than the transfer of a long message, so no later short
/// message overtakes a long one.
const APART: u64 = 300;

const RECEIVES_FIRST: Times = Times { receives: (0, 0), sends: (3_000, APART) };
const MESSAGES_FIRST: Times = Times { receives: (10_000, 50), sends: (0, APART) };
const SIDE_BY_SIDE: Times = Times { receives: (60, 330), sends: (0, APART) };

fn run<F>(card: &str, program: impl Fn(Host) -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    // Each thread has a CPU, so that no thread waits while another one pauses.
    let card = cards::load(card, &["host.cores=32".to_owned()])?;
    let config = ClusterConfig { topology: Topology::Star, ..ClusterConfig::new(3, card) };
    let mut cluster = Cluster::new(config)?;
    for rank in 0..3 {
        cluster.program(rank, &program);
    }
    cluster.run().map(|_| ())
}

async fn pause(host: &Host, us: u64) {
    host.compute(Duration::from_us(us)).await;
}

/// Returns the number of the message that each receive took.
fn taken(card: &str, messages: &[Message], wanted: &[Wanted], times: Times) -> Vec<usize> {
    let found = Rc::new(RefCell::new(Vec::new()));
    let ran = run(card, |host| {
        let (messages, wanted, found) = (messages.to_vec(), wanted.to_vec(), found.clone());
        async move {
            if host.rank() == 0 {
                pause(&host, times.receives.0).await;
                let mut posted = Vec::new();
                for Wanted { source, tags } in wanted {
                    let buffer = host.alloc(LONG)?;
                    posted.push((host.post_recv_matching(&buffer, source, tags).await?, buffer));
                    pause(&host, times.receives.1).await;
                }
                for (pending, buffer) in posted {
                    let received = host.received(pending).await?;
                    let number = usize::from(buffer.read(0, 1)[0]);
                    let Message { from, tag, bytes } = messages[number];
                    assert_eq!((received.source, received.tag, received.length), (from, tag, bytes));
                    found.borrow_mut().push(number);
                }
                return Ok(());
            }
            // Each send has its own thread, so that a message that waits at its sender does not block later messages.
            let mut sending = Vec::new();
            pause(&host, times.sends.0).await;
            for (number, Message { from, tag, bytes }) in messages.into_iter().enumerate() {
                if from == host.rank() {
                    let buffer = host.alloc(bytes)?;
                    buffer.write(0, &[number as u8]);
                    sending.push(host.spawn(move |host| async move { host.send(&buffer, 0, tag).await }));
                }
                pause(&host, times.sends.1).await;
            }
            for sent in sending {
                sent.join().await?;
            }
            Ok(())
        }
    });
    ran.unwrap_or_else(|error| panic!("{card}, {times:?}: {error}"));
    found.take()
}

#[test]
fn receives_take_what_their_source_and_bits_say_in_order() {
    let short = |from, tag| Message { from, tag, bytes: SHORT };
    let long = |from, tag| Message { from, tag, bytes: LONG };
    let wanted = |source, bits, ignore| Wanted { source, tags: Tags { bits, ignore } };
    let any = |source| Wanted { source, tags: Tags::ANY };
    let top = 1 << 62;
    let cases: [(&[Message], &[Wanted], &[usize]); 4] = [
        // The receives ignore bits of the tag. The ignored bits of the receive's own tag have no effect.
        (
            &[short(1, 0x501), long(1, 0x501), short(1, 0x7), long(1, 0x5ff), short(1, 0x601)],
            &[
                wanted(None, 0x500, 0xff),
                wanted(Some(1), 0x501, 0),
                wanted(None, 0x5aa, 0xff),
                any(Some(1)),
                wanted(None, 0x001, 0xf00),
            ],
            &[0, 1, 3, 2, 4],
        ),
        // The tags differ in the upper half, up to the last bit.
        (
            &[
                short(1, LARGEST_TAG),
                long(1, top),
                short(1, 1 << 32 | 5),
                long(1, 5),
                long(1, top | 1 << 32 | 5),
            ],
            &[
                wanted(None, 5, 0),
                wanted(None, 1 << 32 | 5, 0),
                wanted(None, 5, top | 1 << 32),
                wanted(None, top, top - 1),
                wanted(None, top, 0),
            ],
            &[3, 2, 4, 0, 1],
        ),
        // A message takes the first matching posted receive, and a receive the first matching early message.
        (
            &[short(1, 1), long(1, 2), short(1, 1), short(1, 3)],
            &[any(None), wanted(None, 1, 0), any(None), wanted(None, 2, 1)],
            &[0, 2, 1, 3],
        ),
        // Receives accept one source or any, and two senders send at the same time.
        (
            &[short(1, 9), long(2, 9), short(1, 9), short(2, 8)],
            &[wanted(Some(2), 9, 0), any(Some(1)), wanted(None, 8, 0), any(None)],
            &[1, 0, 3, 2],
        ),
    ];
    for card in CARDS {
        for (number, (messages, wanted, expected)) in cases.iter().enumerate() {
            for times in [RECEIVES_FIRST, MESSAGES_FIRST, SIDE_BY_SIDE] {
                assert_eq!(
                    taken(card, messages, wanted, times),
                    *expected,
                    "{card}, case {number}, {times:?}"
                );
            }
        }
    }
}

/// The reference pairs each message with the first matching receive. For each receive, it returns the index of its
/// message. The pairs do not depend on times.
fn paired(messages: &[Message], wanted: &[Wanted]) -> Vec<Option<usize>> {
    let mut of_receives = vec![None; wanted.len()];
    for (number, message) in messages.iter().enumerate() {
        let fits = |(at, wanted): (usize, &Wanted)| {
            let Tags { bits, ignore } = wanted.tags;
            let differ = (0..64).any(|bit| ignore >> bit & 1 == 0 && (bits ^ message.tag) >> bit & 1 == 1);
            of_receives[at].is_none() && !differ
        };
        if let Some(at) = wanted.iter().enumerate().position(fits) {
            of_receives[at] = Some(number);
        }
    }
    of_receives
}

fn few_bits() -> impl Strategy<Value = u64> {
    let bit = prop::sample::select(vec![0, 1, 2, 1 << 31, 1 << 32, 1 << 62]);
    prop::collection::vec(bit, 1..4).prop_map(|bits| bits.into_iter().fold(0, |all, bit| all | bit))
}

fn tags() -> impl Strategy<Value = Tags> {
    let ignore = prop_oneof![4 => Just(0), 3 => few_bits(), 1 => Just(LARGEST_TAG), 1 => Just(!0)];
    (few_bits(), ignore).prop_map(|(bits, ignore)| Tags { bits, ignore })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16 * ProptestConfig::default().cases / 256))]

    /// Every card pairs messages and receives as the reference does, in any order of arrival.
    #[test]
    fn every_card_pairs_messages_and_receives_alike(
        messages in prop::collection::vec((few_bits(), prop::sample::select(vec![SHORT, LONG])), 1..10),
        wanted in prop::collection::vec((prop_oneof![Just(None), Just(Some(1))], tags()), 0..10),
        (receives, sends) in ((0..900u64, 0..500u64), (0..900u64, APART..500)),
    ) {
        let messages: Vec<_> =
            messages.into_iter().map(|(tag, bytes)| Message { from: 1, tag, bytes }).collect();
        let wanted: Vec<_> = wanted.into_iter().map(|(source, tags)| Wanted { source, tags }).collect();
        // Receives without a message are removed, and receives for messages without one are added.
        let pairs = paired(&messages, &wanted);
        let (mut receives_paired, mut expected) = (Vec::new(), Vec::new());
        for (wanted, message) in wanted.iter().zip(&pairs) {
            if let Some(message) = message {
                receives_paired.push(*wanted);
                expected.push(*message);
            }
        }
        for (number, message) in messages.iter().enumerate() {
            if !pairs.contains(&Some(number)) {
                receives_paired.push(Wanted { source: None, tags: Tags::exactly(message.tag) });
                expected.push(number);
            }
        }
        prop_assert_eq!(paired(&messages, &receives_paired), expected.iter().copied().map(Some).collect::<Vec<_>>());
        for card in CARDS {
            let found = taken(card, &messages, &receives_paired, Times { receives, sends });
            prop_assert_eq!(&found, &expected, "{}", card);
        }
    }
}

#[test]
fn tags_beyond_63_bits_are_refused_and_waits_name_the_bits() {
    for card in CARDS {
        run(card, |host| async move {
            let buffer = host.alloc(8)?;
            let tag = LARGEST_TAG + 1;
            for error in [
                host.send(&buffer, 1, tag).await.unwrap_err(),
                host.recv(&buffer, None, Some(tag)).await.unwrap_err(),
                host.post_recv_matching(&buffer, None, Tags { bits: !0, ignore: !0 })
                    .await
                    .map(|_| ())
                    .unwrap_err(),
            ] {
                let text = error.to_string();
                assert!(matches!(error, Error::Input(_)), "{text}");
                let said = "is too large: tags of messages have 63 bits, 0 to 9223372036854775807";
                assert!(text.starts_with("tag ") && text.contains(said), "{text}");
            }
            Ok(())
        })
        .unwrap();
        for (tags, said) in [
            (Tags { bits: 0x500, ignore: 0xff }, "a message from rank 1, tag 0x500 except for the bits 0xff"),
            (Tags { bits: 5, ignore: 1 << 63 }, "a message from rank 1, tag 5"),
            (Tags { bits: 5, ignore: LARGEST_TAG }, "a message from rank 1, any tag"),
        ] {
            let waits = run(card, |host| async move {
                if host.rank() == 0 {
                    host.recv_matching(&host.alloc(8)?, Some(1), tags).await?;
                }
                Ok(())
            });
            let error = waits.unwrap_err();
            let line = |line: &str| line.split(" -> ").any(|part| part.trim_end_matches(';').ends_with(said));
            assert!(
                matches!(error, Error::Deadlock(_)) && error.to_string().lines().any(line),
                "{card}: {error}"
            );
        }
    }
}

/// Cards that report unexpected messages and return cancelled receives.
const TELLING: [&str; 4] = ["spin-discrete", "nfp-4000", "apenet-v5", "niagara2-niu"];

#[test]
fn a_probe_finds_the_first_early_message_that_fits_and_leaves_it() {
    for card in TELLING {
        run(card, |host| async move {
            let messages = [(0x501, SHORT), (0x502, LONG), (0x7, SHORT)];
            if host.rank() == 1 {
                for (tag, bytes) in messages {
                    let buffer = host.alloc(bytes)?;
                    let _ = host.spawn(move |host| async move { host.send(&buffer, 0, tag).await });
                    pause(&host, 100).await;
                }
            }
            if host.rank() > 0 {
                return Ok(());
            }
            let five = Tags { bits: 0x5aa, ignore: 0xff };
            let start = host.now();
            assert_eq!(host.probe(None, Tags::ANY).await?, None, "{card}: it is too early");
            assert!(host.now() > start, "{card}: a loop of probes comes to its end");
            pause(&host, 5_000).await;
            let probed = async |source, tags| -> Result<_, Error> {
                Ok(host.probe(source, tags).await?.map(|found| (found.source, found.tag, found.length)))
            };
            let buffer = host.alloc(LONG)?;
            for (tag, bytes) in messages {
                let tags = if tag > 0xff { five } else { Tags::exactly(tag) };
                let expected = Some((1, tag, bytes));
                assert_eq!(probed(None, tags).await?, expected, "{card}");
                assert_eq!(probed(Some(1), Tags::ANY).await?, expected, "{card}: it is still there");
                assert_eq!(probed(Some(2), tags).await?, None, "{card}");
                assert_eq!(probed(None, Tags::exactly(0x500)).await?, None, "{card}");
                let received = host.recv_matching(&buffer, Some(1), tags).await?;
                assert_eq!((received.tag, received.length), (tag, bytes), "{card}");
            }
            assert_eq!(probed(None, Tags::ANY).await?, None, "{card}: all are taken");
            let error = host.probe(Some(3), Tags::ANY).await.unwrap_err().to_string();
            assert!(error.contains("there is no rank 3"), "{error}");
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{card}: {error}"));
    }
}

#[test]
fn a_probe_takes_the_time_of_its_card() {
    for (card, picoseconds) in [
        // The probe takes post, two crossings of the bus and notice. match.command, the matching unit's work on a
        // command, is zero.
        ("spin-discrete", 65_000 + 250_000 + 250_000 + 65_000),
        // The probe takes library.call.
        ("nfp-4000", 50_000),
    ] {
        run(card, |host| async move {
            for probes in [true, false] {
                let pending = host.post_recv(&host.alloc(8)?, None, None).await?;
                pause(&host, 10).await;
                let start = host.now();
                if probes {
                    assert_eq!(host.probe(Some(0), Tags::ANY).await?, None);
                } else {
                    assert!(host.cancel(pending).await?.is_none());
                }
                assert_eq!(host.now().since(start).ps(), picoseconds, "{card}, {probes}");
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{card}: {error}"));
    }
}

#[test]
fn a_receive_that_is_given_up_takes_no_message_and_none_is_lost() {
    for card in TELLING {
        // Rank 1 sends 100 us after its start. The receive is cancelled before the message, during its transfer, and
        // after it.
        for us in (0..200).step_by(9).chain([1_000]) {
            for bytes in [SHORT, LONG] {
                let given_up = Rc::new(RefCell::new(None));
                let told = given_up.clone();
                let ran = run(card, |host| {
                    let told = told.clone();
                    async move {
                        match host.rank() {
                            0 => {
                                let (first, second) = (host.alloc(LONG)?, host.alloc(LONG)?);
                                let pending = host.post_recv(&first, None, Some(4)).await?;
                                let behind = host.post_recv(&second, None, None).await?;
                                pause(&host, us).await;
                                let back = host.cancel(pending).await?;
                                told.replace(Some(back.is_none()));
                                let taken = match back {
                                    // The receive has taken the message, so no message is left for the next receive.
                                    Some(pending) => {
                                        let received = host.received(pending).await?;
                                        assert!(host.cancel(behind).await?.is_none());
                                        received
                                    }
                                    None => host.received(behind).await?,
                                };
                                assert_eq!((taken.source, taken.tag, taken.length), (1, 4, bytes));
                            }
                            1 => {
                                pause(&host, 100).await;
                                host.send(&host.alloc(bytes)?, 0, 4).await?;
                            }
                            _ => {}
                        }
                        Ok(())
                    }
                });
                ran.unwrap_or_else(|error| panic!("{card}, {us} us: {error}"));
                let given_up = given_up.take().expect("asked");
                // On an Ethernet card, the library reads nothing before its program waits.
                let expected = us < 100 || card == "niagara2-niu";
                assert!(given_up == expected || (100..200).contains(&us), "{card}, {us} us");
            }
        }
    }
}

#[test]
fn virtual_interfaces_keep_their_messages_and_receives() {
    run("qnix", |host| async move {
        let pending = host.post_recv(&host.alloc(8)?, None, None).await?;
        let probed = host.probe(None, Tags::ANY).await.unwrap_err().to_string();
        assert_eq!(probed, "a card of design qnix has no command that probes for messages");
        let cancelled = host.cancel(pending).await.map(|_| ()).unwrap_err().to_string();
        assert_eq!(cancelled, "a card of design qnix has no command that cancels a posted receive");
        Ok(())
    })
    .unwrap();
}
