//! Errors in specs name the place of the error and a correction.

use nicety_nic_core::read;
use nicety_nic_spin::{DESIGN, SpinSpec};
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::Duration;

fn with(name: &str, overrides: &[&str]) -> Result<SpinSpec, String> {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load(name, &overrides, SHIPPED).map_err(|errors| errors.to_string())?;
    let (card, _) = read(&spec, &[DESIGN]).map_err(|errors| errors.to_string())?;
    card.of::<SpinSpec>().cloned().map_err(|error| error.to_string())
}

#[test]
fn shipped_cards_are_read_with_every_key() {
    // `read` refuses keys that no section reads.
    let discrete = with("spin-discrete", &[]).unwrap();
    let integrated = with("spin-integrated", &[]).unwrap();
    assert_eq!(discrete.host.post, Duration::from_ns(65));
    assert_eq!(discrete.link.latency, Duration::from_ps(33_400));
    assert_eq!(discrete.link.gap.cover(4096), Duration::from_ps(81_920));
    assert_eq!(discrete.send_gap, Duration::from_ps(6_700));
    assert_eq!((discrete.match_first, discrete.match_further), (Duration::from_ns(30), Duration::from_ns(2)));
    assert_eq!((discrete.hpu.cores, discrete.hpu.clock.hz()), (4, 2_500_000_000));
    assert_eq!(discrete.packet_payload, 4096);
    // The two cards differ only in the path to host memory.
    assert_eq!(integrated.link.latency, discrete.link.latency);
    assert_eq!(integrated.hpu.cycle_limit, discrete.hpu.cycle_limit);
    assert_ne!(format!("{:?}", integrated.bus), format!("{:?}", discrete.bus));
}

#[test]
fn errors_name_their_place_and_a_remedy() {
    for (text, expected) in [
        ("link.latncy=1 ns", &["link.latncy", "latency"][..]),
        ("lnk.latency=1 ns", &["lnk", "link"]),
        ("link.latency=0 ns", &["link.latency", "at least 1 ps", "33.4 ns"]),
        ("barrier.latency=0 ns", &["barrier.latency", "at least 1 ps"]),
        ("hpu.isa=rv128imac", &["hpu.isa", "rv32imac_zicsr"]),
        ("hpu.isa=rv32imafdc", &["hpu.isa", "rv32imac_zicsr"]),
        ("hpu.misaligned=maybe", &["hpu.misaligned", "trap", "cost"]),
        ("buffer.packets=0", &["buffer.packets", "1"]),
        ("hpu.cores=0", &["hpu.cores", "1"]),
        ("hpu.cores=2000", &["hpu.cores", "1024"]),
        ("send.queue=0", &["send.queue"]),
        ("packet.payload=4 B", &["packet.payload", "8"]),
        ("bus.latency=250", &["bus.latency", "ns"]),
        ("hpu.clock=0 GHz", &["hpu.clock"]),
        ("memory.state=l3", &["memory.state", "ideal, core, l1"]),
        (
            "memory.cluster=3",
            &[
                "memory.cluster",
                "4 cores (hpu.cores) do not divide into clusters of 3",
                "e.g. --set memory.cluster=2",
            ],
        ),
        ("memory.l2.load=20", &["memory.l2.load", "nothing lies in this level", "memory.state = \"l2\""]),
    ] {
        let error = with("spin-discrete", &[text]).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{text}: no '{part}' in\n{error}");
        }
    }
}

#[test]
fn memories_that_do_not_divide_are_refused() {
    for (overrides, expected) in [
        (
            &["memory.state=l2", "memory.l2.banks=6"][..],
            &[
                "memory.l2.banks",
                "1048576 bytes, which do not divide into 6 banks of 4 bytes",
                "e.g. --set memory.l2.banks=4",
            ][..],
        ),
        (
            &["memory.data=l1", "memory.cluster=2", "memory.l1.banks=3", "memory.l1.interleave=64 B"],
            &[
                "memory.l1.banks",
                "2 clusters of 3 banks of 64 bytes in a row",
                "e.g. --set memory.l1.banks=2",
            ],
        ),
        (
            &["memory.data=l1", "memory.l1.width=6 B", "memory.l1.interleave=16 B"],
            &[
                "memory.l1.width",
                "16 bytes in a row (interleave) do not divide into accesses of 6 bytes",
                "e.g. --set memory.l1.width=4B",
            ],
        ),
        (
            &["memory.data=l1", "memory.l1.atomics=core", "memory.l1.load=5", "memory.l1.atomic_occupancy=5"],
            &["memory.l1.atomic_occupancy", "from its load, 5 cycles", "write 6 or more"],
        ),
        (
            &["memory.data=l1", "memory.l1.interleave=6 B"],
            &["--set memory.l1.interleave=6 B: 6 bytes in a row", "accesses of 4 bytes", "interleave=4B"],
        ),
        (
            &["memory.data=l1", "memory.l1.interleave=12 B"],
            &["--set memory.l1.interleave=12 B: hpu.memory has", "1 banks of 12 bytes", "interleave=8B"],
        ),
        (
            &["memory.data=l1", "memory.l1.interleave=6 B", "memory.l1.width=3 B", "memory.l1.banks=3"],
            &[
                "hpu.memory: hpu.memory has 1048576 bytes, which do not divide into 3 banks of 6",
                "\"1048590 B\"",
            ],
        ),
        (
            &["memory.data=l1", "memory.l1.banks=64", "hpu.memory=1000000 B"],
            &["--set memory.l1.banks=64: hpu.memory has 1000000 bytes", "e.g. --set memory.l1.banks=50"],
        ),
        (
            &["memory.data=l1", "hpu.memory=1000001 B"],
            &["--set hpu.memory=1000001 B: hpu.memory has 1000001 bytes", "e.g. --set hpu.memory=1000004B"],
        ),
        (&["memory.data=l1", "memory.l1.interleave=2 B"], &["memory.l1.interleave", "from 4 B to 1 MiB"]),
        (
            &["memory.data=l1", "hpu.cycles.load=3", "memory.l1.load=2"],
            &["memory.l1.load", "takes 3 cycles (hpu.cycles.load)", "write 3 or more"],
        ),
        (
            &["memory.data=l1", "hpu.cores=200"],
            &["memory.data", "200 cores cannot share a level at 2.5 GHz", "198", "contended = false"],
        ),
    ] {
        let error = with("spin-discrete", overrides).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{overrides:?}: no '{part}' in\n{error}");
        }
    }
    // The memory level is uncontended, or the number of cores is the maximum.
    for overrides in [
        &["memory.data=l1", "hpu.cores=200", "memory.l1.contended=false"][..],
        &["memory.data=l1", "hpu.cores=198"],
        &["memory.state=l1", "hpu.cores=12", "hpu.memory=768 KiB", "memory.cluster=4", "memory.l1.banks=64"],
    ] {
        assert!(with("spin-discrete", overrides).is_ok(), "{overrides:?}");
    }
}

#[test]
fn threads_that_cannot_be_are_refused() {
    for (overrides, expected) in [
        (&["hpu.threads=0"][..], &["hpu.threads", "1"][..]),
        (&["hpu.issue=2"], &["hpu.issue", "has 1", "raise hpu.threads"]),
        (&["hpu.threads=2", "hpu.issue=3"], &["hpu.issue", "has 2", "write 2 or fewer"]),
        (&["hpu.threads=64", "hpu.cores=100"], &["hpu.threads", "more than 1024 threads", "16 cores"]),
        // A cycle of 2.5 GHz has room for 198 processors in turn.
        (&["hpu.threads=64"], &["hpu.threads", "256 threads cannot share cores at 2.5 GHz", "at most 198"]),
        (&["hpu.threads=2", "hpu.pipeline=out-of-order"], &["hpu.threads", "cores that execute in order"]),
        (&["hpu.ring=0"], &["hpu.ring", "1"]),
    ] {
        let error = with("spin-discrete", overrides).unwrap_err();
        assert!(expected.iter().all(|part| error.contains(part)), "{overrides:?}: {error}");
        assert!(!error.trim_end().contains('\n'), "{error}");
    }
    let spec = with("spin-discrete", &["hpu.threads=4", "hpu.issue=2"]).unwrap().hpu;
    assert_eq!((spec.cores, spec.threads, spec.issue), (16, 4, 2));
}

#[test]
fn caches_of_all_cores_that_cannot_be_are_refused() {
    let cached = [
        "memory.state=l2",
        "memory.l2.cached=true",
        "memory.cache.size=4 KiB",
        "memory.cache.coherence=none",
    ];
    let second = [&cached[..], &["memory.cache.second.size=8 KiB", "memory.cache.second.fill=9"]].concat();
    let outer = [&second[..], &["memory.l2.outer=true"]].concat();
    assert!(with("spin-discrete", &outer).is_ok());
    let third = ["memory.cache.third.size=16 KiB", "memory.cache.third.fill=20"];
    assert!(with("spin-discrete", &[&outer[..], &third, &["memory.cache.deposit=third"]].concat()).is_ok());
    for (given, more, expected) in [
        (&cached[..], &["memory.l2.outer=true"][..], &["memory.l2.outer", "there is no second cache"][..]),
        (&second, &[], &["memory.cache.second.size", "memory.l2.outer = true"]),
        (&cached, &third, &["memory.cache.third.size", "no second cache before"]),
        (&outer, &["memory.cache.deposit=third"], &["memory.cache.deposit", "there is no third cache"]),
        (&outer, &["memory.cache.deposit=fourth"], &["memory.cache.deposit", "none, second or third"]),
        (&outer, &["memory.cache.second.size=12 KiB"], &["memory.cache.second.size", "a power of two"]),
        (&outer, &["memory.l2.first=5", "memory.l2.cached=false"], &["memory.l2.outer", "no data caches"]),
        (
            &["memory.state=l2", "memory.l2.contended=false", "memory.l2.first=5"],
            &[],
            &["memory.l2.first", "fixed time", "cached = true"],
        ),
    ] {
        let overrides = [given, more].concat();
        let error = with("spin-discrete", &overrides).unwrap_err();
        assert!(expected.iter().all(|part| error.contains(part)), "{overrides:?}: {error}");
    }
    // A second cache with a wrong size has one error.
    let error = with("spin-discrete", &[&outer[..], &["memory.cache.second.ways=3"]].concat()).unwrap_err();
    assert!(error.contains("memory.cache.second.ways") && error.matches("error").count() <= 1, "{error}");
}

#[test]
fn data_caches_that_cannot_be_are_refused() {
    let cached = ["memory.state=l2", "memory.l2.cached=true"];
    let sized = [&cached[..], &["memory.cache.size=4 KiB", "memory.cache.invalidate=5"]].concat();
    let all = [&sized[..], &["memory.cache.transfer=5"]].concat();
    for (given, more, expected) in [
        (
            &cached[..],
            &[][..],
            &["memory.l2.cached", "there are no data caches", "write memory.cache.size"][..],
        ),
        (&[], &["memory.cache.size=4 KiB"], &["memory.cache.size", "no level", "memory.l2.cached = true"]),
        (&cached, &["memory.cache.ways=2"], &["[memory.cache]", "size = "]),
        (&sized, &[], &["[memory.cache]", "transfer = "]),
        (&all, &["memory.cache.line=48 B"], &["memory.cache.line", "a power of two", "line=32B"]),
        (
            &all,
            &["memory.cache.ways=3"],
            &[
                "memory.cache.ways",
                "4096 bytes do not divide into sets of 3 lines of 64 bytes",
                "e.g. --set memory.cache.ways=2",
            ],
        ),
        (
            &all,
            &["memory.cache.size=1000 B"],
            &["memory.cache.size", "1000 bytes are not a whole number of lines of 64 bytes", "size=1024B"],
        ),
        (
            &all,
            &["memory.cache.size=12 KiB"],
            &["memory.cache.size", "192 sets of 1 lines of 64 bytes", "\"8192 B\" or \"16384 B\""],
        ),
        (&all, &["memory.cache.of=rack"], &["memory.cache.of", "core or cluster"]),
        (&all, &["memory.cache.coherence=none"], &["memory.cache.invalidate", "without coherence"]),
        (&all, &["memory.cache.writes=through"], &["memory.cache.transfer", "write through", "leave it out"]),
        (
            &all,
            &["hpu.cycles.load=3", "memory.l2.load=9", "memory.cache.load=2"],
            &["memory.cache.load", "takes 3 cycles (hpu.cycles.load)", "write 3 or more"],
        ),
        (
            &all,
            &["hpu.memory=1000032 B", "memory.l2.interleave=32 B"],
            &["memory.cache.line", "1000032 bytes, which do not divide into lines of 64 bytes", "1000064 B"],
        ),
        (
            &all,
            &["memory.l2.contended=false", "hpu.cores=200"],
            &["memory.state", "200 cores cannot share a level", "remove data caches"],
        ),
    ] {
        let overrides = [given, more].concat();
        let error = with("spin-discrete", &overrides).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{overrides:?}: no '{part}' in\n{error}");
        }
    }
    let error = with("pspin", &[&all[..], &["memory.l2.contended=false"]].concat()).unwrap_err();
    assert!(error.contains("hpu.interface") && error.contains("cached = false"), "{error}");
    let cache = with("spin-discrete", &all).unwrap().hpu.memories.cache.unwrap();
    assert_eq!((cache.shape.sets(), cache.of_core, cache.load, cache.transfer), (64, true, 1, 5));
}

#[test]
fn processors_that_overlap_instructions_say_how_far() {
    let in_order = with("spin-discrete", &[]).unwrap().hpu.core;
    assert_eq!(in_order.overlap, None);
    let core = with("spin-discrete", &["hpu.pipeline=out-of-order"]).unwrap().hpu.core;
    let overlap = core.overlap.unwrap();
    assert_eq!((overlap.width, overlap.window, overlap.mispredict), (3, 40, 8));
    assert_eq!((core.costs.mul, core.costs.load, core.costs.load_use), (3, 3, 0));
    // Instructions that do not overlap have the same cost as in order.
    assert_eq!((core.costs.atomic, core.costs.ecall), (in_order.costs.atomic, in_order.costs.ecall));
    let changed =
        with("spin-discrete", &["hpu.pipeline=out-of-order", "hpu.overlap.mul=5"]).unwrap().hpu.core;
    assert_eq!((changed.costs.mul, in_order.costs.mul), (5, 1));
    for (overrides, expected) in [
        (&["hpu.pipeline=parallel"][..], &["hpu.pipeline", "in-order or out-of-order"][..]),
        (&["hpu.overlap.width=0"], &["hpu.overlap.width", "from 1 to 64"]),
        (
            &["hpu.pipeline=out-of-order", "hpu.overlap.window=5000"],
            &["hpu.overlap.window", "from 1 to 4096"],
        ),
        (&["hpu.pipeline=out-of-order", "hpu.overlap.depth=3"], &["hpu.overlap.depth"]),
        (
            &["hpu.pipeline=out-of-order", "memory.data=l1", "memory.l1.load=2"],
            &["memory.l1.load", "takes 3 cycles (hpu.overlap.load)", "write 3 or more"],
        ),
    ] {
        let error = with("spin-discrete", overrides).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{overrides:?}: no '{part}' in\n{error}");
        }
    }
}

#[test]
fn every_error_is_told_at_once() {
    let error = with("spin-discrete", &["link.latency=0 ns", "hpu.cores=0", "match.nothing=3"]).unwrap_err();
    for key in ["link.latency", "hpu.cores", "match.nothing"] {
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn other_latencies_may_be_zero() {
    let zero =
        ["host.post=0 ns", "host.notice=0 ns", "bus.latency=0 ns", "match.first=0 ns", "send.gap=0 ns"];
    let spec = with("spin-discrete", &zero).unwrap();
    assert!(spec.host.post.is_zero() && spec.send_gap.is_zero());
}

#[test]
fn clusters_and_commands_of_pspin_fit_the_card() {
    let pspin = with("pspin", &[]).unwrap();
    assert_eq!((pspin.hpu.cores, pspin.hpu.memories.cluster), (32, 8));
    assert!(pspin.hpu.pspin.is_some() && pspin.hpu.packets.is_some());
    for (overrides, error) in [
        (&["memory.l1.contended=true"][..], "written for PsPIN do not wait for one another here"),
        (&["memory.cluster=4"], "8 clusters: a task of PsPIN has the scratchpads of 4 clusters"),
        (&["memory.state=l1"], "handler memory of PsPIN, with states and data, is not in a cluster's L1"),
        (&["hpu.stack=4 KiB"], "the stacks of a cluster's 8 cores have 16384 bytes in all"),
        (&["hpu.packets.burst=100 B"], "bursts of 100 bytes do not divide into beats of 64 bytes"),
        (&["hpu.interface=spin"], "hpu.interface"),
        (&["hpu.scheduling=first-come"], "hpu.packets"),
    ] {
        let found = with("pspin", overrides).unwrap_err();
        assert!(found.contains(error), "{overrides:?}: {found}");
    }
}

/// A suggested value can replace the refused value, without any other change.
#[test]
fn suggestions_are_accepted() {
    let mut suggested = Vec::new();
    for overrides in [
        &["memory.cluster=5"][..],
        &["memory.cluster=4"],
        &["memory.cluster=16"],
        &["memory.cluster=64"],
        &["hpu.cores=30"],
        &["hpu.cores=3"],
        &["hpu.cores=48"],
        &["hpu.stack=16 KiB"],
        &["hpu.stack=1 KiB", "memory.cluster=32"],
        &["memory.l1.interleave=3"],
        &["memory.l1.width=0"],
    ] {
        let error = with("pspin", overrides).unwrap_err();
        let (_, value) =
            error.split_once("e.g. --set ").unwrap_or_else(|| panic!("no suggestion in {error}"));
        assert!(!value.contains(char::is_whitespace), "one line, and one error: {error}");
        let mended = [overrides, &[value]].concat();
        assert!(with("pspin", &mended).is_ok(), "{mended:?}: {:?}", with("pspin", &mended).err());
        suggested.push(value.to_owned());
    }
    assert_eq!(
        suggested[..9],
        [
            "memory.cluster=8",
            "memory.cluster=8",
            "memory.cluster=8",
            "memory.cluster=8",
            "hpu.cores=32",
            "hpu.cores=8",
            "hpu.cores=32",
            "hpu.stack=2048B",
            "memory.cluster=16"
        ]
    );
}
