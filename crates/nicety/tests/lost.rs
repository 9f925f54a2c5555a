//! Tests that a run fails if its network loses data that nothing resends, even if all programs end. This holds for
//! every card and every cause of loss, unless the loss is allowed.

use nicety::ethernet::SocketKind;
use nicety::{
    Allowed, Cluster, ClusterConfig, Error, FailureKind, Faults, Host, Run, Sockets, cards, faults,
};
use nicety_portals::{Md, MdOptions, PutRequest};
use nicety_types::{Duration, NodeId};

/// The number of messages or datagrams.
const MESSAGES: u64 = 10;
/// All cards without TCP on their hosts.
const CARDS: [&str; 8] =
    ["apenet-6", "apenet-v4", "apenet-v5", "nfp-4000", "pspin", "qnix", "spin-discrete", "spin-integrated"];
const SOCKETS: [&str; 5] = ["ethernet-100g", "niagara2-neptune", "niagara2-niu", "spin-100g", "xeon-oplin"];

fn config(card: &str, overrides: &[&str], lines: &str) -> ClusterConfig {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let faults: Faults = faults::parse(lines).unwrap();
    ClusterConfig { faults, ..ClusterConfig::new(2, cards::load(card, &overrides).unwrap()) }
}

/// Rank 0 sends, and no rank receives.
fn unnoticed(config: ClusterConfig) -> Result<Run, Error> {
    let mut cluster = Cluster::new(config)?;
    cluster.program(0, async |host| {
        host.barrier().await;
        let buffer = host.alloc(8)?;
        for tag in 0..MESSAGES {
            host.send(&buffer, 1, tag).await?;
        }
        Ok(())
    });
    cluster.program(1, async |host| {
        host.barrier().await;
        Ok(())
    });
    cluster.run()
}

/// Rank 0 sends datagrams. Rank 1 receives those that arrive.
fn datagrams(config: ClusterConfig) -> Result<Run, Error> {
    const PORT: u16 = 9;
    async fn bound(host: &Host) -> Result<u32, Error> {
        let sockets = host.socket()?;
        let socket = sockets.open(SocketKind::Datagram);
        sockets.bind(socket, PORT).await?;
        host.barrier().await;
        Ok(socket)
    }
    let mut cluster = Cluster::new(config)?;
    cluster.program(0, async |host| {
        let socket = bound(&host).await?;
        for _ in 0..MESSAGES {
            host.socket()?.send_to(socket, &[7; 8], (Sockets::address(1), PORT).into()).await?;
        }
        Ok(())
    });
    cluster.program(1, async |host| {
        bound(&host).await?;
        host.pause(Duration::from_us(10_000)).await;
        Ok(())
    });
    cluster.run()
}

/// Returns the failure of kind `lost` of a run that allows this kind.
fn allowed(run: Result<Run, Error>) -> nicety::Failure {
    let failures = run.unwrap().failures();
    let [lost] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((lost.kind, lost.rank), (FailureKind::Lost, 0), "{}", lost.text);
    lost.clone()
}

#[test]
fn lost_data_that_nobody_misses_fails_the_run_on_every_card() {
    for card in CARDS {
        let overrides: &[&str] = if card.starts_with("apenet") { &["link.retries=0"] } else { &[] };
        for (lines, cause) in [
            ("loss=1", "lost by chance"),
            ("loss=0.5,seed=3", "lost by chance"),
            ("corrupt=1", "damaged"),
            ("fail=hosts.0->hosts.1@0us..1000000us", "the link hosts.0 -> hosts.1 is down"),
            ("fail=hosts.1@0us", "hosts.1 is down"),
        ] {
            let error = unnoticed(config(card, overrides, lines)).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Undelivered(_)) && error.exit_status() == 1, "{card}: {text}");
            assert!(text.contains(cause) && text.contains("not retransmitted"), "{card}, {lines}: {text}");
            for kinds in ["lost", "all"] {
                // A card may also refuse a damaged packet.
                let kinds: Allowed = if lines == "corrupt=1" { Allowed::ALL } else { kinds.parse().unwrap() };
                let run = unnoticed(ClusterConfig { allowed: kinds, ..config(card, overrides, lines) });
                let failures = run.unwrap().failures();
                let lost: Vec<_> = failures.iter().filter(|found| found.kind == FailureKind::Lost).collect();
                let [lost] = &lost[..] else { panic!("{card}, {lines}: {failures:?}") };
                assert!(lost.text.contains(cause), "{card}, {lines}: {}", lost.text);
                let all = lines == "loss=1" || lines.starts_with("fail");
                assert!(
                    if all { lost.times == MESSAGES } else { lost.times > 0 },
                    "{card}, {lines}: {lost:?}"
                );
            }
        }
        // Nothing is lost on a network without faults.
        assert_eq!(unnoticed(config(card, overrides, "")).unwrap().failures(), [], "{card}");
    }
}

#[test]
fn data_that_is_sent_again_is_not_lost() {
    let reliable = ["transport.reliable=true"];
    assert_eq!(unnoticed(config("spin-discrete", &reliable, "loss=0.2")).unwrap().failures(), []);
    for card in SOCKETS {
        let run = unnoticed(config(card, &[], "loss=0.2,seed=5")).unwrap();
        assert!(run.network.faults.iter().any(|link| link.lost > 0), "{card}");
        assert_eq!(run.failures(), [], "{card}");
    }
}

#[test]
fn messages_that_a_card_gives_up_may_be_allowed() {
    let given_up = || config("spin-discrete", &["transport.reliable=true"], "fail=hosts.1@0us");
    let puts = |config| {
        let mut cluster = Cluster::new(config)?;
        cluster.program(0, async |host| {
            let (portals, buffer) = (host.portals()?, host.alloc(8)?);
            let options = MdOptions::EVENT_SEND_DISABLE;
            let md = Md { start: buffer.address(), length: 8, options, ..Md::default() };
            portals.put(&PutRequest::new(portals.md_bind(md)?, 8, NodeId(1), 1, 0)).await
        });
        cluster.run()
    };
    let error = puts(given_up()).unwrap_err();
    assert!(error.to_string().contains("1 message was not delivered"), "{error}");
    let failure = allowed(puts(ClusterConfig { allowed: "lost".parse().unwrap(), ..given_up() }));
    assert_eq!(failure.text, "hosts.1 is down from 0 ns on; 1 message was not delivered");
    assert_eq!(failure.times, 1);
}

#[test]
fn datagrams_that_the_network_loses_are_lost_data() {
    for card in SOCKETS {
        for lines in ["loss=1", "fail=hosts.0->hosts.1@0us"] {
            let error = datagrams(config(card, &[], lines)).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Undelivered(_)), "{card}: {text}");
            assert!(text.contains("10 packets were not delivered"), "{card}: {text}");
            let lost = "lost".parse().unwrap();
            let failure = allowed(datagrams(ClusterConfig { allowed: lost, ..config(card, &[], lines) }));
            assert_eq!(failure.times, MESSAGES, "{card}, {lines}: {}", failure.text);
        }
        assert_eq!(datagrams(config(card, &[], "")).unwrap().failures(), [], "{card}");
    }
}
