//! The C programs on the card: their results and their cycles.
//!
//! `tests/data/*.elf` are `handlers/nfp/*.c`, compiled for the instruction set of the shipped card.

use nicety_apps::pcsa;
use nicety_nic_nfp::{NfpSpec, crc32};
use nicety_spec::{SHIPPED, Spec, parse_override};
use pcsa::{Counted, Frame};

const PCSA: &[u8] = include_bytes!("data/pcsa.elf");

/// The shipped card, with overrides.
pub(crate) fn spec(overrides: &[&str]) -> NfpSpec {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load("nfp-4000", &overrides, SHIPPED).unwrap();
    let (card, _) = nicety::designs::read(&spec).unwrap();
    card.of::<NfpSpec>().unwrap().clone()
}

/// Returns numbers that look random.
pub(crate) fn numbers(seed: u64) -> impl Iterator<Item = u32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    })
}

/// Returns the number of trailing ones, computed from the definition and summed over all sketches.
fn expected_sum(addresses: &[u32]) -> u32 {
    let mut sketches = [0u32; 2048];
    for &address in addresses {
        let hash = crc32(0, address);
        sketches[hash as usize % 2048] |= 1 << (hash >> 11).trailing_ones();
    }
    sketches.iter().map(|sketch| sketch.trailing_ones()).sum()
}

#[test]
fn addresses_are_counted() {
    let distinct = 30_000;
    let mut addresses: Vec<u32> = numbers(1).take(distinct).collect();
    addresses.extend_from_within(..distinct / 2);
    let expected = expected_sum(&addresses);
    for (cores, contexts) in [(1, 1), (1, 8), (3, 5), (26, 2)] {
        let run = pcsa::run(&spec(&[]), PCSA, &addresses, cores, contexts, None).unwrap();
        assert_eq!(run.sum, expected, "{cores} x {contexts}");
        // The error is below three standard errors of 0.78 / sqrt(2048).
        let error = run.estimate() / distinct as f64 - 1.0;
        assert!(error.abs() < 3.0 * 0.78 / 2048f64.sqrt(), "{error}");
    }
}

#[test]
fn an_update_sleeps_for_two_accesses_to_cls() {
    let addresses: Vec<u32> = numbers(2).take(16).collect();
    let run = |updates: usize| pcsa::run(&spec(&[]), PCSA, &addresses[..updates], 1, 1, None).unwrap();
    let (one, two) = (run(1), run(2));
    // One more update has two references, of 37 and 38 cycles. An update of NFComms computes for 49 cycles, 39 of them for the
    // CRC. The RV32 code of the C program takes the same cycles for the CRC, and 17 cycles for the rest.
    assert_eq!(two.contexts.asleep - one.contexts.asleep, 75);
    assert_eq!(two.contexts.references - one.contexts.references, 2);
    assert_eq!(two.contexts.computing - one.contexts.computing, 39 + 17);
    assert_eq!(two.cycles - one.cycles, 39 + 17 + 75);
}

#[test]
fn contexts_hide_the_sleep() {
    let addresses: Vec<u32> = numbers(3).take(512).collect();
    let cycles = |contexts| pcsa::run(&spec(&[]), PCSA, &addresses, 1, contexts, None).unwrap().cycles;
    let runs: Vec<u64> = (1..=8).map(cycles).collect();
    // An update computes for 56 cycles and sleeps for 75 cycles. With two contexts, two updates take at least 131 cycles and
    // the switches. So the second context can use only a part of the sleep. With three or more contexts, the core is busy.
    assert!(runs[1] < runs[0] * 3 / 5, "{runs:?}");
    assert!(runs[2] < runs[1], "{runs:?}");
    let eight = pcsa::run(&spec(&[]), PCSA, &addresses, 1, 8, None).unwrap();
    assert!(eight.core.asleep < eight.cycles / 20, "{eight:?}");
    assert_eq!(eight.core.elapsed(), eight.cycles);
    assert_eq!(eight.contexts.elapsed(), 8 * eight.cycles);
}

#[test]
fn a_process_that_reads_outside_names_its_line() {
    let short = spec(&["memory.ctm.size=64 B", "memory.emem.size=64 B", "memory.imem.size=64 B"]);
    let error = pcsa::run(&short, PCSA, &[0; 100], 1, 1, None).unwrap_err().to_string();
    assert!(error.contains("400 bytes at offset 0 reach past the end of EMEM"), "{error}");
    let no_cls = spec(&["memory.cls.size=4 KiB"]);
    let addresses: Vec<u32> = numbers(1).take(100).collect();
    let error = pcsa::run(&no_cls, PCSA, &addresses, 1, 1, None).unwrap_err().to_string();
    assert!(error.contains("microengine 0, context 0: load of 4 bytes from 0x2000"), "{error}");
    assert!(error.contains("in update at pcsa.c:"), "{error}");
}

/// The measurement of NFComms: one to eight contexts share eight updates, and one context starts all.
#[test]
fn eight_updates() {
    let addresses: Vec<u32> = numbers(4).take(8).collect();
    let run = |contexts| pcsa::share(&spec(&[]), PCSA, &addresses, contexts, None).unwrap();
    let one = run(1);
    assert_eq!(one.sum, expected_sum(&addresses));
    // Eight updates sleep for 75 cycles each, because of CLS. No other reference leaves the microengine.
    assert_eq!((one.core.asleep, one.core.switching, one.contexts.references), (8 * 75, 0, 16));
    let update = pcsa::share(&spec(&[]), PCSA, &addresses[..7], 1, None).unwrap().core.computing;
    let update = one.core.computing - update;
    for contexts in 2..=8 {
        let more = run(contexts);
        assert_eq!((more.core.elapsed(), more.sum), (more.cycles, one.sum));
        // One context starts all others. So each further context costs only a signal and its own end.
        let each = (more.core.computing - one.core.computing).div_ceil(contexts as u64 - 1);
        assert!(each < update / 2, "{contexts}: {each} of {update}");
        assert!(more.core.asleep < one.core.asleep / 3 && more.core.switching > 0, "{contexts}: {more:?}");
        assert!(more.cycles < one.cycles * 2 / 3, "{contexts}: {more:?}");
    }
    // In the measurement of NFComms, one context takes 1129 cycles, 526 of them for computing. Eight contexts take 616 cycles,
    // 574 of them for computing or switching.
    assert_eq!((one.cycles, one.core.computing), (1103, 503));
    let eight = run(8);
    assert_eq!((eight.cycles, eight.core.computing, eight.core.switching), (691, 643, 48));
    let error = pcsa::share(&spec(&[]), PCSA, &[0; 257], 1, None).unwrap_err().to_string();
    assert_eq!(error, "257 addresses, but local memory has room for 256; write 1 to 256");
}

/// Returns a packet with `tags` VLAN tags. It is IPv6 if the source address has 16 bytes, and IPv4 otherwise.
fn packet(source: &[u8], tags: usize, len: usize) -> Frame {
    let mut payload = Vec::new();
    let kind: u16 = if source.len() == 4 { 0x0800 } else { 0x86dd };
    for tag in 0..tags {
        let next = if tag + 1 < tags { 0x8100 } else { kind };
        payload.extend([0, 7]);
        payload.extend(next.to_be_bytes());
    }
    match source.len() {
        4 => payload.extend([&[0x45][..], &[0; 11], source, &[1; 4]].concat()),
        _ => payload.extend([&[0x60][..], &[0; 7], source, &[1; 16]].concat()),
    }
    payload.resize(payload.len().max(len), 9);
    Frame { station: [2; 6], kind: if tags > 0 { 0x8100 } else { kind }, payload }
}

#[test]
fn the_card_takes_sources_out_of_packets() {
    let mut packets = Vec::new();
    let mut sources = Vec::new();
    for (number, word) in numbers(5).take(600).enumerate() {
        packets.push(packet(&word.to_le_bytes(), number % 4, 40 + number % 1400));
        sources.push(word);
    }
    // The hashes of these two sources are known: sixteen zeros, and the bytes from 0 to 15.
    let counting: Vec<u8> = (0..16).collect();
    packets.extend([packet(&[0; 16], 0, 0), packet(&counting, 1, 0)]);
    sources.extend([0x8134_cdf8, 0x1915_73dd]);
    // Frames without a source: ARP; a length in place of a type; an IP version that does not exist; a tag with nothing behind.
    packets.push(Frame { station: [0; 6], kind: 0x0806, payload: vec![0x45; 46] });
    packets.push(Frame { station: [0; 6], kind: 40, payload: vec![0x45; 40] });
    packets.push(Frame { station: [0; 6], kind: 0x0800, payload: vec![0x55; 60] });
    packets.push(Frame { station: [0; 6], kind: 0x8100, payload: vec![0x81; 46] });
    let bytes: u64 = packets.iter().map(|frame| frame.payload.len().max(46) as u64 + 38).sum();
    let mut left = packets.into_iter();
    let run = pcsa::replay(&spec(&[]), PCSA, 2048, None, move || left.next()).unwrap();
    assert_eq!(run.counted, Counted { ipv4: 600, ipv6: 2, other: 4 });
    assert_eq!(run.sum, expected_sum(&sources));
    // The frames follow each other at 10 Gb/s, with 800 ps per byte. Nothing stalled the wire.
    assert_eq!((run.sent.ps(), run.wire.ps()), (bytes * 800, bytes * 800));
    assert!(run.time > run.sent);
}

#[test]
fn frames_that_the_port_drops_are_not_waited_for() {
    // The first six IEEE 802.3 lengths are invalid: 0; above the payload; above the payload padded to 46 bytes. A length equal
    // to the padded payload is valid.
    let kinds = [(0u16, 46), (0, 10), (300, 82), (1500, 1499), (47, 40), (0x5ff, 46), (46, 40), (1500, 1500)];
    let frames = kinds.map(|(kind, len)| Frame { station: [2; 6], kind, payload: vec![0xaa; len] });
    let mut packets = frames.to_vec();
    packets.insert(3, packet(&[10, 0, 0, 1], 0, 46));
    packets.push(packet(&[10, 0, 0, 2], 0, 46));
    let bytes: u64 = packets.iter().map(|frame| frame.payload.len().max(46) as u64 + 38).sum();
    let mut left = packets.into_iter();
    let run = pcsa::replay(&spec(&[]), PCSA, 2048, None, move || left.next()).unwrap();
    assert_eq!((run.counted, run.dropped), (Counted { ipv4: 2, ipv6: 0, other: 2 }, 6));
    // The dropped frames occupied the wire, too.
    assert_eq!(run.wire.ps(), bytes * 800);
    let mut left = kinds[..2]
        .iter()
        .map(|&(kind, _)| Frame { kind, ..Frame::default() })
        .collect::<Vec<_>>()
        .into_iter();
    let none = pcsa::replay(&spec(&[]), PCSA, 2048, None, move || left.next()).unwrap();
    assert_eq!((none.counted, none.dropped), (Counted::default(), 2));
}

#[test]
fn a_card_that_is_too_slow_holds_the_wire_up() {
    // One microengine cannot process the 14.9 million packets per second of the wire.
    let slow = spec(&["hpu.cores=1"]);
    let mut left = numbers(6).take(1000).map(|word| packet(&word.to_le_bytes(), 0, 46));
    let run = pcsa::replay(&slow, PCSA, 2048, None, move || left.next()).unwrap();
    assert_eq!(run.counted.ipv4, 1000);
    assert_eq!(run.wire.ps(), 1000 * 84 * 800);
    assert!(run.sent > run.wire, "{run:?}");
    let none = pcsa::replay(&spec(&[]), PCSA, 2048, None, || None).unwrap();
    assert_eq!((none.counted, none.sum), (Counted::default(), 0));
}

#[test]
fn fresh_addresses_each_set_a_bit() {
    let addresses = pcsa::fresh(16_384);
    let mut sketches = vec![0u32; 2048];
    for &address in &addresses {
        let hash = crc32(0, address);
        let (sketch, bit) = (&mut sketches[hash as usize % 2048], 1 << (hash >> 11).trailing_ones());
        assert_eq!(*sketch & bit, 0, "{address}");
        *sketch |= bit;
    }
    assert_eq!(pcsa::fresh(100), addresses[..100]);
}

/// A block of 16 addresses takes 16 updates of 56 + 75 cycles. The read of 64 bytes from CTM sleeps for 75 + 7 cycles, and its
/// instructions take 16 cycles. An update of a bit that is already set makes no second reference. This saves 38 cycles of sleep
/// and 4 cycles of instructions. The branch around the reference costs 2 more cycles.
#[test]
fn the_rate_of_the_card_is_that_of_its_updates() {
    let spec = spec(&["hpu.cores=1"]);
    let rates = pcsa::rates(&spec, PCSA, 1, None).unwrap();
    let cycles = |rate: f64| (16.0 * 600e6 / rate * 1e3).round() / 1e3;
    assert_eq!(cycles(rates.fresh), 16.0 * 131.0 + 82.0 + 16.0);
    assert_eq!(cycles(rates.settled), 16.0 * (131.0 - 38.0 - 4.0 + 2.0) + 82.0 + 16.0);
}

#[test]
fn blocks_from_the_host_give_the_sum_of_the_whole() {
    for (cores, blocks) in [(14, vec![24_576, 24_576, 1, 20_000, 17]), (3, vec![5, 300]), (60, vec![15; 40])]
    {
        let spec = spec(&[&format!("hpu.cores={cores}")]);
        let total = blocks.iter().sum::<usize>();
        let addresses: Vec<u32> = numbers(6).take(total).collect();
        let (mut sizes, mut rest) = (blocks.clone().into_iter(), addresses.clone());
        let next = move |block: &mut Vec<u32>| {
            assert!(block.is_empty());
            block.extend(rest.drain(..sizes.next().unwrap_or(0)));
        };
        let run = pcsa::stream(&spec, PCSA, 2048, None, next).unwrap();
        assert_eq!((run.addresses, run.blocks), (total as u64, blocks.len() as u64));
        assert_eq!(run.sum, expected_sum(&addresses), "{cores}");
    }
}

#[test]
fn counting_nothing_takes_the_time_of_its_messages() {
    let run = pcsa::stream(&spec(&[]), PCSA, 2048, None, |_| ()).unwrap();
    assert_eq!((run.addresses, run.blocks, run.sum), (0, 0, 0));
    // Five threads announce the end, and one thread receives the sum. This takes some tens of microseconds.
    assert!((20_000_000..200_000_000).contains(&run.time.ps()), "{run:?}");
}

#[test]
fn invalid_streams_are_refused() {
    let error = |overrides: &[&str], sketches| {
        pcsa::stream(&spec(overrides), PCSA, sketches, None, |_| ()).unwrap_err().to_string()
    };
    for sketches in [0, 8, 2047, 32_768] {
        let error = error(&[], sketches);
        assert!(error.contains("write a power of two from 16 to 16384"), "{error}");
    }
    let narrow = error(&["hpu.contexts=1", "hpu.cores=13"], 2048);
    assert!(narrow.contains("the last island has only one context, which reads blocks"), "{narrow}");
    let small = error(&["memory.ctm.size=128 KiB"], 2048);
    assert!(small.contains("two blocks of addresses take 196672 bytes, but CTM has only 131072"), "{small}");
    let few = error(&["limits.channels=2"], 2048);
    assert!(few.contains("no channel is left of 2"), "{few}");
}

#[test]
fn a_transfer_that_fails_too_often_ends_the_run() {
    let mut blocks = 0;
    let next = move |block: &mut Vec<u32>| {
        blocks += 1;
        block.extend((blocks < 5).then_some(0..9000).into_iter().flatten());
    };
    let failing = spec(&["dma.errors=1"]);
    let error = pcsa::stream(&failing, PCSA, 2048, None, next).unwrap_err().to_string();
    assert!(error.contains("the process ended too early, with -4") || error.contains("DMA"), "{error}");
    let some = spec(&["dma.errors=0.05"]);
    let addresses: Vec<u32> = (0..9000).collect();
    let mut blocks = vec![addresses.clone(), addresses.clone()].into_iter();
    let run =
        pcsa::stream(&some, PCSA, 2048, None, move |block| block.extend(blocks.next().into_iter().flatten()));
    assert_eq!(run.unwrap().sum, expected_sum(&addresses));
}

#[test]
fn programs_that_the_card_cannot_run_are_refused() {
    let error = pcsa::run(&spec(&[]), PCSA, &[1], 61, 1, None).unwrap_err().to_string();
    assert!(error.contains("61 microengines, but the card has 60"), "{error}");
    let error = pcsa::run(&spec(&[]), crate::tours::TSP, &[1], 1, 1, None).unwrap_err().to_string();
    assert!(error.contains("no symbol pcsa_count is defined"), "{error}");
}
