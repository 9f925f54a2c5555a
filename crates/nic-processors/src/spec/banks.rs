//! Errors between the keys of a level's banks. Each error proposes a value that fits all other keys.

use crate::spec::divisor::divisor_near;
use nicety_hpu::BankTiming;
use nicety_spec::{Reader, Remedy, Section};

/// Least and most bytes of HPU memory.
pub(super) const MEMORY: std::ops::RangeInclusive<u64> = 64..=64 << 20;
/// Bytes of a word. A word lies in one bank.
const WORD: u64 = 4;

/// HPU memory, divided among the memories of a level.
#[derive(Clone, Copy)]
pub(super) struct Divided {
    pub(super) bytes: u64,
    pub(super) memories: u64,
}

/// Refuses banks that do not divide their level's memory. `memory` is given if anything in it has an address. Blames
/// the conflicting key that was changed last.
pub(super) fn check(reader: &Reader<'_>, s: &Section<'_>, banks: &BankTiming, memory: Option<Divided>) {
    let (count, interleave, width) =
        (u64::from(banks.banks), u64::from(banks.interleave), u64::from(banks.width));
    let part = memory.map(|memory| memory.bytes / memory.memories);
    let interleave_near = || {
        let rows = part.filter(|part| part.is_multiple_of(count * width)).map(|part| part / (count * width));
        let rows = match (part, rows) {
            (Some(_), None) => return None,
            // Without a memory to divide: a whole number of accesses.
            (None, _) => (interleave / width).max(1),
            (_, Some(rows)) => divisor_near(rows, interleave / width),
        };
        Some(width * rows).filter(|near| *near >= WORD)
    };
    let bytes = |bytes: u64| format!("{bytes} B");
    let hpu = reader.section("hpu");
    let remedy = |section, key, value| Remedy { section, key, value };
    let mut remedies = Vec::new();
    let message;
    if width > interleave || !interleave.is_multiple_of(width) {
        message =
            format!("{interleave} bytes in a row (interleave) do not divide into accesses of {width} bytes");
        remedies.extend(interleave_near().map(|near| remedy(s, "interleave", bytes(near))));
        remedies.push(remedy(s, "width", bytes(divisor_near(interleave, width))));
    } else if let (Some(part), Some(memory)) = (part, memory)
        && !part.is_multiple_of(count * interleave)
    {
        let all =
            if memory.memories > 1 { format!("{} clusters of ", memory.memories) } else { String::new() };
        message = format!(
            "hpu.memory has {} bytes, which do not divide into {all}{count} banks of {interleave} bytes in a row",
            memory.bytes
        );
        let rows = memory.memories * count * interleave;
        let above = Some(memory.bytes.next_multiple_of(rows)).filter(|above| MEMORY.contains(above));
        let near = above.unwrap_or(memory.bytes / rows * rows);
        if MEMORY.contains(&near) {
            remedies.push(remedy(&hpu, "memory", bytes(near)));
        }
        remedies.extend(interleave_near().map(|near| remedy(s, "interleave", bytes(near))));
        if part.is_multiple_of(interleave) {
            let near = divisor_near(part / interleave, count);
            remedies.push(remedy(s, "banks", near.to_string()));
        }
    } else {
        return;
    }
    s.refuse_one(&message, &remedies, "banks", "change the number of banks and the interleave");
}
