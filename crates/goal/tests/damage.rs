//! Damaged files of every format. Each file is read or refused without a panic, in memory proportional to its length. A schedule
//! that was read is consistent.

use crate::memory::peak;
use crate::schedules::{any_schedule, cases, packed, read, written};
use crate::trace::{any_calls, program, traced};
use nicety_goal::trace::{self, AmbiguousCalls, World};
use nicety_goal::{Builder, ReadError, Schedule, binary, text};
use nicety_host::{NoiseTrace, Timeline};
use nicety_types::{Duration, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::cell::Cell;

/// One damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    /// A byte is replaced by another one.
    Byte(Index, u8),
    /// A bit is flipped.
    Bit(Index, u8),
    /// The end is missing.
    Cut(Index),
    /// A part in the middle is missing.
    Without(Index, Index),
    /// A part of another file, or of this file, is inserted or overwrites bytes.
    Splice(Index, Index, Index, bool),
    /// A number in digits is replaced by another one.
    Digits(Index, &'static str),
    /// Bytes are replaced by a number at the limit of its type.
    Word(Index, u64, bool),
}

/// Numbers at which readers may fail.
const DIGITS: [&str; 10] = [
    "0",
    "-1",
    "1",
    "255",
    "256",
    "4294967295",
    "4294967296",
    "1000000000000",
    "18446744073709551615",
    "18446744073709551616",
];
const WORDS: [u64; 8] = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX as u64, 1 << 40, u64::MAX, u64::MAX - 7];

fn any_damage() -> impl Strategy<Value = Vec<Damage>> {
    let at = any::<Index>;
    let one = prop_oneof![
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        2 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Bit(at, bit)),
        1 => at().prop_map(Damage::Cut),
        1 => (at(), at()).prop_map(|(from, to)| Damage::Without(from, to)),
        2 => (at(), at(), at(), any::<bool>()).prop_map(|(at, from, to, other)| Damage::Splice(at, from, to, other)),
        3 => (at(), proptest::sample::select(&DIGITS[..])).prop_map(|(at, digits)| Damage::Digits(at, digits)),
        1 => (at(), proptest::sample::select(&WORDS[..]), any::<bool>()).prop_map(|(at, word, long)| Damage::Word(at, word, long)),
    ];
    vec(one, 1..5)
}

/// Returns the file with all damages, applied in order.
fn damaged(file: &[u8], other: &[u8], all: &[Damage]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for damage in all {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        match damage {
            Damage::Byte(at, byte) => bytes[at.index(length)] = *byte,
            Damage::Bit(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Damage::Cut(at) => bytes.truncate(at.index(length)),
            Damage::Without(from, to) => {
                let (from, to) = (from.index(length), to.index(length));
                bytes.drain(from.min(to)..from.max(to));
            }
            Damage::Splice(at, from, to, from_other) => {
                let source = if *from_other { other.to_vec() } else { bytes.clone() };
                if !source.is_empty() {
                    let (from, to) = (from.index(source.len()), to.index(source.len()));
                    let at = at.index(length);
                    bytes.splice(at..at, source[from.min(to)..from.max(to)].iter().copied());
                }
            }
            Damage::Digits(at, digits) => {
                let places: Vec<usize> = (0..length).filter(|&at| is_number_at(&bytes, at)).collect();
                if !places.is_empty() {
                    let begin = *at.get(&places);
                    let end = begin + bytes[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    bytes.splice(begin..end, digits.bytes());
                }
            }
            Damage::Word(at, word, long) => {
                let at = at.index(length);
                let size = if *long { 8 } else { 4 }.min(length - at);
                bytes[at..at + size].copy_from_slice(&word.to_le_bytes()[..size]);
            }
        }
    }
    bytes
}

/// Returns whether a number in digits begins at this position.
fn is_number_at(bytes: &[u8], at: usize) -> bool {
    bytes[at].is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_digit())
}

/// Fails if reading took more memory than some buffers plus `a_byte` bytes for each byte of the file.
fn in_little_memory<T>(file: &[u8], a_byte: u64, read: impl FnOnce() -> T) -> T {
    let (found, bytes) = peak(read);
    let most = (256 << 10) + a_byte * file.len() as u64;
    assert!(bytes <= most, "{bytes} B of memory for a file of {} B", file.len());
    found
}

/// Fails if the schedule that was read cannot be written in both formats.
fn whole(found: Result<Schedule, ReadError>) {
    match found {
        Ok(schedule) => {
            let goal = written(&schedule);
            let again = binary::read(&packed(&read(&goal))[..], &mut |_| true).unwrap();
            assert_eq!(written(&again), goal);
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.interrupted),
    }
}

/// Lines of a trace of noise.
fn any_noise() -> impl Strategy<Value = String> {
    vec((0..5_000_000_u64, 1..100_000_u64, any::<bool>()), 1..12).prop_map(|intervals| {
        let mut begin = 0;
        let mut text = "# ns\n".to_owned();
        for (gap, duration, comment) in intervals {
            begin += gap;
            let ps = |ps: u64| format!("{}.{:03}", ps / 1000, ps % 1000);
            text += &format!("{} {}{}\n", ps(begin), ps(duration), if comment { " # daemon" } else { "" });
            begin += duration;
        }
        text
    })
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn damaged_binary_is_read_or_refused(one in any_schedule(), other in any_schedule(), damage in any_damage()) {
        let bytes = damaged(&packed(&one), &packed(&other), &damage);
        whole(in_little_memory(&bytes, 16, || binary::read(&bytes[..], &mut |_| true)));
    }

    #[test]
    fn damaged_text_is_read_or_refused(
        one in any_schedule(),
        other in any_schedule(),
        damage in any_damage(),
        labels in prop_oneof![Just(text::DuplicateLabels::Unique), Just(text::DuplicateLabels::LastWins)],
    ) {
        let bytes = damaged(written(&one).as_bytes(), written(&other).as_bytes(), &damage);
        whole(in_little_memory(&bytes, 64, || text::read(&bytes[..], labels, &mut |_| true)));
    }

    #[test]
    fn damaged_mpi_traces_are_read_or_refused(
        (ranks, choices) in any_calls(),
        damage in any_damage(),
        other in any_damage(),
        which in any::<Index>(),
    ) {
        let which = which.index(ranks as usize) as u32;
        let whole_ones: Vec<Vec<u8>> = (0..ranks).map(|rank| {
            let calls = program(ranks, rank, &choices);
            traced(rank, ranks, &calls.iter().map(String::as_str).collect::<Vec<_>>()).into_bytes()
        }).collect();
        let next = |rank: u32| &whole_ones[((rank + 1) % ranks) as usize];
        let files: Vec<Vec<u8>> = (0..ranks).zip(&whole_ones).map(|(rank, file)| match rank {
            0 => damaged(file, next(rank), &damage),
            _ if rank == which => damaged(file, next(rank), &other),
            _ => file.clone(),
        }).collect();
        let interrupted = Cell::new(false);
        let found = in_little_memory(&files.concat(), 512, || {
            let (mut builder, mut world, mut unsaid) = (Builder::new(), World::default(), AmbiguousCalls::default());
            for file in &files {
                if let Err(error) = trace::read(&file[..], ranks, &mut world, &mut unsaid, &mut builder, &mut || true) {
                    interrupted.set(error.interrupted);
                    return None;
                }
            }
            Some(builder.finish())
        });
        prop_assert!(!interrupted.get());
        if let Some(schedule) = found {
            whole(Ok(schedule));
        }
    }

    #[test]
    fn damaged_noise_is_read_or_refused(
        one in any_noise(),
        other in any_noise(),
        damage in any_damage(),
        offset in any::<Index>(),
        work in 0..1_000_000_u64,
    ) {
        let bytes = damaged(one.as_bytes(), other.as_bytes(), &damage);
        let text = String::from_utf8_lossy(&bytes);
        match in_little_memory(&bytes, 64, || NoiseTrace::parse(&text)) {
            Ok(trace) => {
                let offset = offset.index(usize::try_from(trace.length_ps()).unwrap_or(usize::MAX)) as u64;
                let mut timeline = Timeline::recorded(trace.into(), offset);
                let (mut left, mut at) = (Duration::from_ps(work), Time::ZERO);
                let mut worked = Duration::ZERO;
                // Noise may take most of the time: allow this many intervals.
                let end = timeline.work(Time::ZERO, &mut left, &mut 10_000, |noisy, from, to| {
                    assert_eq!(from, at);
                    at = to;
                    worked += if noisy { Duration::ZERO } else { to.since(from) };
                });
                prop_assert_eq!(end, at);
                prop_assert_eq!((worked + left).ps(), work);
            }
            Err(wrong) => prop_assert!(wrong.line <= text.lines().count(), "{wrong}"),
        }
    }
}
