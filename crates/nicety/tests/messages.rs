//! Tests `send` and `recv` on every card, in either order.

use nicety::{Buffer, Cluster, ClusterConfig, Error, Faults, Host, Rates, Run, Topology, cards};
use nicety_types::{Duration, Level, Slice};
use proptest::prelude::*;
use std::rc::Rc;

fn run<F>(card: &str, overrides: &[&str], ranks: u32, program: impl Fn(Host) -> F) -> Result<Run, Error>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    run_with(card, overrides, ranks, Faults::default(), program)
}

fn run_with<F>(
    card: &str,
    overrides: &[&str],
    ranks: u32,
    faults: Faults,
    program: impl Fn(Host) -> F,
) -> Result<Run, Error>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let topology = match ranks {
        1 => Topology::Alone,
        2 => Topology::Pair,
        _ => Topology::Star,
    };
    let card = cards::load(card, &overrides)?;
    let recording = Level::Everything;
    let config = ClusterConfig { topology, recording, faults, ..ClusterConfig::new(ranks, card) };
    let mut cluster = Cluster::new(config)?;
    for rank in 0..ranks {
        cluster.program(rank, &program);
    }
    cluster.run()
}

fn bytes(len: u64, seed: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + seed * 31 + i / 251) as u8).collect()
}

fn filled(host: &Host, len: u64, seed: u64) -> Result<Buffer, Error> {
    let buffer = host.alloc(len)?;
    buffer.write(0, &bytes(len, seed));
    Ok(buffer)
}

const CARDS: [&str; 9] = [
    "spin-discrete",
    "spin-integrated",
    "qnix",
    "nfp-4000",
    "apenet-v5",
    "niagara2-neptune",
    "niagara2-niu",
    "xeon-oplin",
    "ethernet-100g",
];
const LATE: Duration = Duration::from_ns(300_000);

/// Receives a message of length `len`. On cards that allow it, the message arrives long before its receive.
async fn receive_late(host: &Host, from: u32, len: u64) -> Result<(), Error> {
    let into = host.alloc(len)?;
    host.compute(LATE).await;
    let received = host.recv(&into, Some(from), Some(4)).await?;
    assert_eq!((received.source, received.tag, received.length), (from, 4, len));
    assert!(into.read(0, len) == bytes(len, 9), "{len} bytes");
    Ok(())
}

// The sizes are near limits of the cards: eager messages, programmed I/O, frames and pages.
#[test]
fn a_late_receive_gets_its_message_on_every_card() {
    for card in CARDS {
        for len in [0, 8, 2048, 2049, 1 << 20] {
            let pair = run(card, &[], 2, |host| async move {
                match host.rank() {
                    0 => host.send(&filled(&host, len, 9)?, 1, 4).await,
                    _ => receive_late(&host, 0, len).await,
                }
            });
            assert!(pair.is_ok(), "{card}, {len} bytes: {:?}", pair.err());
            for ranks in [1, 2] {
                let own = run(card, &[], ranks, |host| async move {
                    let sender = host.spawn(move |host| async move {
                        let (rank, from) = (host.rank(), filled(&host, len, 9)?);
                        host.send(&from, rank, 4).await
                    });
                    receive_late(&host, host.rank(), len).await?;
                    sender.join().await
                });
                assert!(own.is_ok(), "{card}, {len} bytes to itself, {ranks} ranks: {:?}", own.err());
            }
        }
    }
}

/// Returns the duration of a call in picoseconds, and checks that the times of its path's stages add up to this
/// duration.
async fn timed<T>(host: &Host, call: impl AsyncFnOnce() -> Result<T, Error>) -> Result<u64, Error> {
    let start = host.now();
    host.restart_path();
    call().await?;
    let (took, path) = (host.now().since(start), host.path());
    assert_eq!(path.stages().map(|(_, time)| time).sum::<Duration>(), took, "{path:?}");
    Ok(took.ps())
}

/// Returns the intervals in which messages waited for their receives.
fn waits(ran: &Run) -> Vec<Slice> {
    let slices = ran.recording.resources.iter().map(|usage| usage.slice);
    slices.filter(|slice| slice.resource == nicety_nic_spin::resources::UNEXPECTED).collect()
}

/// Checks the duration of a receive that begins long after its message of length `len` has arrived.
fn late(len: u64, expected: u64) -> Run {
    run("spin-discrete", &[], 2, |host| async move {
        if host.rank() == 0 {
            return host.send(&filled(&host, len, 1)?, 1, 4).await;
        }
        let into = host.alloc(len)?;
        host.compute(LATE).await;
        let took = timed(&host, async || host.recv(&into, None, None).await).await?;
        assert_eq!(took, expected, "{len} bytes");
        assert!(into.read(0, len) == bytes(len, 1));
        Ok(())
    })
    .unwrap()
}

// The receive takes the append's post, bus, event and notice, and then the copy. For 8 bytes, the source's cache line
// and the destination's cache line arrive after 51 ns. These lines and the line that is written back are 192 bytes at
// 150 GiB/s. The 32 lines of 2 KiB arrive in four rounds.
#[test]
fn an_eager_message_that_came_first_is_copied_at_its_receive() {
    let found = 65_000 + 250_000 + 250_000 + 65_000;
    late(0, found);
    late(8, found + 51_000 + 1193);
    let ran = late(2048, found + 4 * 51_000);
    let recorded = &ran.recording.messages().next().unwrap();
    let [wait] = waits(&ran)[..] else { panic!("one message waited") };
    assert_eq!((wait.message, Some(wait.start)), (Some(recorded.id), recorded.matched));
    assert_eq!(wait.end.ps(), LATE.ps() + 65_000 + 250_000 + 250_000);
    assert_eq!(recorded.noticed.map(|at| at.ps()), Some(wait.end.ps() + 65_000));
}

// The receiver fetches the message with a get. The request takes post, bus, link and match, and crosses the sender's
// bus, as do the data. Then the data take the link at its gap per byte, a reply's match of 2 ns, deposit and event, and
// notice.
#[test]
fn a_longer_message_that_came_first_waits_at_its_sender() {
    let found = 65_000 + 250_000 + 250_000 + 65_000;
    let asked = 65_000 + 250_000 + 33_400 + 30_000;
    let ran = late(4096, found + asked + 500_000 + 81_920 + 33_400 + 2_000 + 63_898 + 250_000 + 65_000);
    // The whole message crossed the link twice, and the receiver's host memory once.
    let mut sent: Vec<_> = ran.recording.messages().map(|m| (m.posted, m.kind, m.bytes, m.outcome)).collect();
    sent.sort_unstable();
    let sent: Vec<_> = sent.into_iter().map(|(_, kind, bytes, outcome)| (kind, bytes, outcome)).collect();
    assert_eq!(sent, [("put", 4096, "ok"), ("ack", 0, "ok"), ("get", 0, "ok"), ("reply", 4096, "ok")]);
    assert_eq!(ran.nodes[1].memory.written, 4096);
}

// If the receive is posted, a long message takes the time of a put, as in the timing contract for a put of 64 KiB. The
// sender continues when it has the acknowledgement.
#[test]
fn a_long_message_whose_receive_is_there_takes_what_a_put_takes() {
    let ran = run("spin-discrete", &[], 2, |host| async move {
        let (len, from) = (65_536, filled(&host, 65_536, 1)?);
        if host.rank() == 0 {
            host.barrier().await;
            let took = timed(&host, async || host.send(&from, 1, 4).await).await?;
            let deposited = 65_000 + 250_000 + 1_310_720 + 33_400 + 2_000 + 63_898;
            assert_eq!(took, deposited + 33_400 + 2_000 + 250_000 + 65_000);
            return Ok(());
        }
        let into = host.alloc(len)?;
        let pending = host.post_recv(&into, None, None).await?;
        host.barrier().await;
        let start = host.now();
        host.received(pending).await?;
        assert_eq!(host.now().since(start).ps(), 2_040_018);
        assert!(into.read(0, len) == bytes(len, 1));
        Ok(())
    });
    let ran = ran.unwrap();
    assert_eq!(waits(&ran), []);
}

// Messages of one sender with one tag are received in the order of sending, wherever they wait for their receives.
#[test]
fn messages_of_one_sender_keep_their_order() {
    for card in CARDS {
        let ran = run(card, &[], 2, |host| async move {
            let sizes = [8, 5000, 0, 2048, 2049, 70_000, 1, 3000];
            if host.rank() == 0 {
                for (i, len) in sizes.into_iter().enumerate() {
                    host.send(&filled(&host, len, i as u64)?, 1, 4).await?;
                }
                return Ok(());
            }
            host.compute(LATE).await;
            for (i, len) in sizes.into_iter().enumerate() {
                let into = host.alloc(100_000)?;
                // Half of the receives accept any source and tag.
                let (source, tag) = if i % 2 == 0 { (None, None) } else { (Some(0), Some(4)) };
                let received = host.recv(&into, source, tag).await?;
                let found = (received.source, received.tag, received.length);
                assert_eq!(found, (0, 4, len), "message {i}");
                assert!(into.read(0, len) == bytes(len, i as u64), "message {i}");
            }
            Ok(())
        });
        assert!(ran.is_ok(), "{card}: {:?}", ran.err());
    }
}

// Both programs post their receives too late, and are then in send or in a barrier. The library must still make
// progress in the sense of MPI.
#[test]
fn a_posted_receive_makes_progress_whatever_its_program_does() {
    for card in CARDS {
        let ran = run(card, &[], 2, |host| async move {
            let (other, len) = (1 - host.rank(), 10_000);
            let (from, into) = (filled(&host, len, 1)?, host.alloc(len)?);
            let early = host.spawn(move |host| async move {
                let from = filled(&host, len, 2)?;
                host.send(&from, other, 1).await
            });
            host.compute(LATE).await;
            let first = host.alloc(len)?;
            let pending =
                (host.post_recv(&first, None, Some(1)).await?, host.post_recv(&into, None, Some(2)).await?);
            host.send(&from, other, 2).await?;
            early.join().await?;
            host.barrier().await;
            host.received(pending.1).await?;
            host.received(pending.0).await?;
            assert!(into.read(0, len) == bytes(len, 1));
            assert!(first.read(0, len) == bytes(len, 2));
            Ok(())
        });
        assert!(ran.is_ok(), "{card}: {:?}", ran.err());
    }
}

/// Sends `count` messages of `len` bytes before the first receive.
fn flood(overrides: &[&str], count: u64, len: u64) -> Result<Run, Error> {
    run("spin-discrete", overrides, 2, |host| async move {
        if host.rank() == 0 {
            for i in 0..count {
                host.send(&filled(&host, len, i)?, 1, i).await?;
            }
            return Ok(());
        }
        host.compute(LATE).await;
        let into = host.alloc(len)?;
        for i in (0..count).rev() {
            host.recv(&into, None, Some(i)).await?;
            assert!(into.read(0, len) == bytes(len, i), "message {i}");
        }
        Ok(())
    })
}

// The library uses a buffer for messages until it lacks room for another eager message. When the buffer is empty, the
// library appends it again.
#[test]
fn buffers_are_used_again_and_end_with_an_error_that_says_what_to_raise() {
    let few = ["messages.eager=64 B", "messages.buffers=3", "messages.buffer=256 B"];
    // After three messages of 64 bytes a buffer has room for a fourth.
    assert!(flood(&few, 12, 64).is_ok());
    let error = flood(&few, 13, 64).unwrap_err();
    assert_eq!(error.exit_status(), 1);
    let text = error.to_string();
    for part in [
        "a message of 64 bytes from rank 0, tag 12, arrived at rank 1 before its receive and is lost",
        "messages.buffers (3)",
        "messages.buffer (256 bytes each)",
        "messages.eager (64 bytes)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Messages longer than messages.eager wait at their senders, and need only headers.
    assert!(flood(&["messages.eager=0 B", "messages.buffers=1"], 1, 64).is_ok());
    let text = flood(&["limits.unexpected_headers=4"], 5, 8).unwrap_err().to_string();
    assert!(text.contains("limits.unexpected_headers (4)"), "{text}");
    // The library's entries do not count against the limits of programs.
    assert!(flood(&["limits.match_entries=1"], 5, 8).is_ok());
    let text = flood(&["host.memory=8 MiB"], 1, 8).unwrap_err().to_string();
    assert!(text.contains("messages.buffers") && text.contains("host.memory"), "{text}");
    // A message without room is lost and fails the run, even if no program waits for it.
    let ran = run("spin-discrete", &["limits.unexpected_headers=1"], 2, |host| async move {
        for tag in 0..2 * (1 - u64::from(host.rank())) {
            host.send(&host.alloc(8)?, 1, tag).await?;
        }
        Ok(())
    });
    assert!(ran.unwrap_err().to_string().contains("tag 1, arrived at rank 1 before its receive and is lost"));
    let rounds = run("spin-discrete", &few, 2, |host| async move {
        for round in 0..10 {
            if host.rank() == 0 {
                for tag in 0..12 {
                    host.send(&filled(&host, 60, round + tag)?, 1, tag).await?;
                }
            }
            host.barrier().await;
            host.compute(LATE).await;
            if host.rank() == 1 {
                for tag in (0..12).rev() {
                    let into = host.alloc(60)?;
                    host.recv(&into, Some(0), Some(tag)).await?;
                    assert!(into.read(0, 60) == bytes(60, round + tag));
                }
            }
            host.barrier().await;
        }
        Ok(())
    });
    assert!(rounds.is_ok(), "{:?}", rounds.err());
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let text =
        run("spin-discrete", &["messages.buffer=1 KiB"], 1, |_| async { Ok(()) }).unwrap_err().to_string();
    assert!(text.contains("a buffer holds at least one message of messages.eager"), "{text}");
}

// The text of a deadlock names messages that no receive has taken, and a waiting sender.
#[test]
fn a_deadlock_names_messages_that_no_receive_has_taken() {
    let error = run("spin-discrete", &[], 2, |host| async move {
        if host.rank() == 0 {
            host.send(&host.alloc(8)?, 1, 3).await?;
            return host.send(&host.alloc(5000)?, 1, 4).await;
        }
        host.recv(&host.alloc(8)?, None, Some(5)).await.map(|_| ())
    });
    let text = error.unwrap_err().to_string();
    for part in [
        "rank 1 to receive its message of tag 4: with 5000 bytes, more than messages.eager (2048)",
        "at rank 1, 2 messages wait for a recv, the first one of 8 bytes from rank 0, tag 3",
        "a message from any rank, tag 5",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

// A receive that is shorter than its message fails, in either order of message and receive.
#[test]
fn a_message_longer_than_its_late_receive_is_cut() {
    for len in [100, 5000] {
        let error = run("spin-discrete", &[], 2, |host| async move {
            if host.rank() == 0 {
                return host.send(&filled(&host, len, 1)?, 1, 4).await;
            }
            host.compute(LATE).await;
            let into = host.alloc(60)?;
            let result = host.recv(&into, None, None).await;
            assert!(into.read(0, 60) == bytes(len, 1)[..60]);
            result.map(|_| ())
        });
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains(&format!("a message of {len} bytes from rank 0 arrived at a recv of 60 bytes")),
            "{text}"
        );
    }
}

const RANKS: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Sent {
    from: u32,
    to: u32,
    tag: u64,
    len: u64,
    /// Delays before the send and before the receive, in nanoseconds.
    pauses: (u64, u64),
}

/// Determines whether the receives of a rank name the source and the tag.
#[derive(Clone, Copy, Debug)]
enum Naming {
    Exactly,
    AnyTag,
    Anything,
}

/// The messages of a run. In the order of the list, every rank could send and receive one message after another without
/// a deadlock. Each rank sends its messages from a separate thread.
#[derive(Clone, Debug)]
struct Traffic {
    messages: Vec<Sent>,
    namings: [Naming; RANKS as usize],
    /// The number of receives that each rank posts before it waits for them, and whether it waits for them in reverse
    /// order.
    ahead: (usize, bool),
    eager: u64,
    buffers: u64,
    buffer: u64,
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let naming = prop_oneof![Just(Naming::Exactly), Just(Naming::AnyTag), Just(Naming::Anything)];
    let namings = [naming.clone(), naming.clone(), naming];
    let limits =
        (prop::sample::select(vec![0u64, 64, 100]), 1..5u64, prop::sample::select(vec![100u64, 128, 400]));
    (limits, namings, (1..5usize, any::<bool>())).prop_flat_map(
        |((eager, buffers, buffer), namings, ahead)| {
            let len =
                prop::sample::select(vec![0, 1, 8, eager.saturating_sub(1), eager, eager + 1, buffer, 5000]);
            let pause = || prop_oneof![Just(0u64), 0..3000u64, Just(20_000u64)];
            let message = (0..RANKS, 0..RANKS, 0..3u64, len, (pause(), pause()))
                .prop_map(|(from, to, tag, len, pauses)| Sent { from, to, tag, len, pauses });
            prop::collection::vec(message, 1..25).prop_map(move |messages| Traffic {
                messages,
                namings,
                ahead,
                eager,
                buffers,
                buffer,
            })
        },
    )
}

/// Runs the traffic. Checks all received bytes, and the order of messages from each sender.
fn carry_out(traffic: &Traffic, more: &[&str], faults: Faults) -> Result<Run, Error> {
    let Traffic { eager, buffers, buffer, .. } = traffic;
    let own = [
        format!("messages.eager={eager} B"),
        format!("messages.buffers={buffers}"),
        format!("messages.buffer={buffer} B"),
    ];
    let overrides: Vec<&str> = own.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let traffic = Rc::new(traffic.clone());
    run_with("spin-discrete", &overrides, RANKS, faults, |host| {
        let traffic = traffic.clone();
        async move {
            let rank = host.rank();
            let all: Vec<(u64, Sent)> = (0..).zip(traffic.messages.iter().copied()).collect();
            let mine: Vec<_> = all.iter().copied().filter(|(_, sent)| sent.from == rank).collect();
            let sender = host.spawn(move |host| async move {
                for (i, Sent { to, tag, len, pauses, .. }) in mine {
                    let from = filled(&host, len, i)?;
                    host.compute(Duration::from_ns(pauses.0)).await;
                    host.send(&from, to, tag).await?;
                    // After the send, the buffer may be used again.
                    from.write(0, &vec![0xee; len as usize]);
                }
                Ok(())
            });
            // The messages that this rank has not yet received, in the order of sending.
            let mut coming: Vec<_> = all.into_iter().filter(|(_, sent)| sent.to == rank).collect();
            let order: Vec<Sent> = coming.iter().map(|(_, sent)| *sent).collect();
            for window in order.chunks(traffic.ahead.0) {
                let mut posted = Vec::new();
                for Sent { from, tag, pauses, .. } in window {
                    host.compute(Duration::from_ns(pauses.1)).await;
                    let (source, tag) = match traffic.namings[rank as usize] {
                        Naming::Exactly => (Some(*from), Some(*tag)),
                        Naming::AnyTag => (Some(*from), None),
                        Naming::Anything => (None, None),
                    };
                    let into = host.alloc(6000)?;
                    posted.push((into.clone(), host.post_recv(&into, source, tag).await?, posted.len()));
                }
                if traffic.ahead.1 {
                    posted.reverse();
                }
                let mut received = Vec::new();
                for (into, pending, place) in posted {
                    received.push((place, into, host.received(pending).await?));
                }
                // Sorted by the order of their receives' posts, the messages of each sender are in the order of
                // sending.
                received.sort_by_key(|(place, ..)| *place);
                for (_, into, got) in received {
                    let exactly = matches!(traffic.namings[rank as usize], Naming::Exactly);
                    let its = |(_, sent): &(u64, Sent)| {
                        sent.from == got.source && (!exactly || sent.tag == got.tag)
                    };
                    let at = coming.iter().position(its).expect("nothing comes twice");
                    let (i, sent) = coming.remove(at);
                    assert_eq!((got.tag, got.length), (sent.tag, sent.len), "message {i}");
                    assert!(into.read(0, sent.len) == bytes(sent.len, i), "message {i}");
                }
            }
            sender.join().await
        }
    })
}

/// Whether the library's buffers have room for all messages that may arrive before their receives. The library uses a
/// buffer until it has no room for another eager message.
fn fits(traffic: &Traffic) -> bool {
    (0..RANKS).all(|rank| {
        let eager = traffic.messages.iter().filter(|sent| sent.to == rank && sent.len <= traffic.eager);
        eager.map(|sent| sent.len).sum::<u64>() <= traffic.buffers * (traffic.buffer - traffic.eager)
    })
}

fn check(traffic: &Traffic, more: &[&str], faults: &Faults) -> Result<(), TestCaseError> {
    match carry_out(traffic, more, faults.clone()) {
        Ok(ran) => {
            let again = carry_out(traffic, more, faults.clone()).unwrap();
            prop_assert_eq!((ran.end, ran.events), (again.end, again.events));
            let rows = |ran: &Run| format!("{:?}", ran.recording.messages().collect::<Vec<_>>());
            prop_assert_eq!(rows(&ran), rows(&again));
            for message in ran.recording.messages() {
                let (Some(stages), Some(completed)) = (&message.stages, message.completed) else { continue };
                let sum = stages.iter().map(|(_, time)| *time).sum::<Duration>();
                prop_assert_eq!(sum, completed.since(message.posted));
            }
        }
        Err(error) => {
            let text = error.to_string();
            prop_assert!(!fits(traffic) && text.contains("messages.buffers"), "{}", text);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64 * ProptestConfig::default().cases / 256))]

    #[test]
    fn whatever_comes_first_every_message_is_received_once_and_in_order(traffic in traffic()) {
        check(&traffic, &[], &Faults::default())?;
    }

    #[test]
    fn so_it_is_on_a_network_that_loses_packets(traffic in traffic(), seed in any::<u64>()) {
        let rates = Rates { loss: 0.05, corruption: 0.02, duplication: 0.05, ..Rates::default() };
        let more = ["transport.reliable=true", "transport.timeout=10 us", "transport.retries=100"];
        check(&traffic, &more, &Faults { seed, rates, ..Faults::default() })?;
    }
}

#[test]
fn nothing_of_a_cluster_outlives_it() {
    for card in CARDS {
        for topology in [Topology::Pair, Topology::Star] {
            let config = ClusterConfig { topology, ..ClusterConfig::new(2, cards::load(card, &[]).unwrap()) };
            let mut cluster = Cluster::new(config).unwrap();
            // Cards refer to the memory of their hosts, so the test checks that the memory is freed.
            let memories: Vec<_> = cluster.memories().iter().map(Rc::downgrade).collect();
            // In a star, the second receive waits for ever. The memory is freed although a call waits.
            let stuck = topology == Topology::Star;
            cluster.program(0, async |host: Host| host.send(&filled(&host, 9000, 1)?, 1, 7).await);
            cluster.program(1, async move |host: Host| {
                let buffer = host.alloc(9000)?;
                for _ in 0..=u32::from(stuck) {
                    host.recv(&buffer, Some(0), Some(7)).await?;
                }
                Ok(())
            });
            assert_eq!(cluster.run().is_err(), stuck, "{card}");
            drop(cluster);
            assert!(memories.iter().all(|memory| memory.upgrade().is_none()), "{card}, {topology}");
        }
    }
}
