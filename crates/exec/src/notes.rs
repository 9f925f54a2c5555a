//! Replaces messages of cards by messages of the program in texts. A card's tag has additional bits, and a card's message
//! additional bytes.

use crate::places::{DATA_BYTES, HAS_DATA, MOST_ON_HOST, Places, UNTAGGED, tags};
use nicety::Error;

const BYTES: &str = " bytes from rank ";
const TAG: &str = ", tag ";
const PAIR: &str = ", pair ";
const NOTE: &str = "  note: ";

/// Returns the error of a run, with ranks and tags of the program in its text.
pub(crate) fn explained(error: Error, places: Places) -> Error {
    match error {
        Error::Deadlock(text) => Error::Deadlock(readable(&text, places)),
        Error::Program(text) => Error::Program(readable(&text, places)),
        Error::Undelivered(text) => Error::Undelivered(readable(&text, places)),
        other => other,
    }
}

/// Replaces the card's messages in a text by the program's messages. A card's message has the form `104 bytes from rank 0, tag
/// 2305843009213694012`.
pub(crate) fn readable(text: &str, places: Places) -> String {
    text.split('\n').map(|line| readable_line(line, places)).collect::<Vec<_>>().join("\n")
}

fn readable_line(line: &str, places: Places) -> String {
    let is_note = line.starts_with(NOTE);
    if let Some(line) = blocked_line(line, places) {
        return line;
    }
    let Some((at, host, tag, end)) = message(line) else { return line.to_owned() };
    let kind = tag & (HAS_DATA | UNTAGGED);
    if !is_note && kind == 0 {
        return line.to_owned();
    }
    let digits = line[..at].len() - line[..at].trim_end_matches(|digit: char| digit.is_ascii_digit()).len();
    let Ok(bytes) = line[at - digits..at].parse::<u64>() else { return line.to_owned() };
    let head = if tag & HAS_DATA != 0 { DATA_BYTES } else { 0 };
    let tag_text = match tag & UNTAGGED {
        0 => format!(", {}", tags(places.own(tag), 0)),
        _ => ", without a tag".to_owned(),
    };
    let mut before = line[..at - digits].to_owned();
    if places.are_shared() && is_note {
        before = before.replacen("at rank ", "at host ", 1);
    }
    let (bytes, rank) = (bytes.saturating_sub(head), places.source(host, tag));
    format!("{before}{bytes}{BYTES}{rank}{tag_text}{}", &line[end..])
}

/// Replaces a line about blocked sends of a pair of processes, such as `at rank 0, 2 sends to rank 1, pair 3, wait`.
fn blocked_line(line: &str, places: Places) -> Option<String> {
    let (from, rest) = number(line.strip_prefix(NOTE)?.strip_prefix("at rank ")?)?;
    let (sends, to) = rest.split_once(" to rank ")?;
    let (to, rest) = number(to)?;
    let (pair, rest) = number(rest.strip_prefix(PAIR)?)?;
    let rest = rest.strip_prefix(',')?;
    let host = |host: u64| u32::try_from(host).ok().filter(|host| host.checked_mul(MOST_ON_HOST).is_some());
    let pair = u32::try_from(pair).ok().filter(|pair| *pair < places.pairs().count())?;
    let (from, to) = places.ranks([host(from)?, host(to)?], pair);
    Some(format!("{NOTE}at rank {from}{sends} to rank {to}{rest}"))
}

/// Finds a message in a line. Returns the position of its length, its host, its tag, and the position of its end.
fn message(line: &str) -> Option<(usize, u32, u64, usize)> {
    let at = line.find(BYTES)?;
    let (host, rest) = number(&line[at + BYTES.len()..])?;
    let (tag, after) = number(rest.strip_prefix(TAG)?)?;
    // In a card's text, 'rank' is a host. A host may have several ranks of the program.
    let host = u32::try_from(host).ok().filter(|host| host.checked_mul(MOST_ON_HOST).is_some())?;
    Some((at, host, tag, line.len() - after.len()))
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_named_as_their_program_does() {
        let one = Places::new(4, 1).unwrap();
        for (card, program) in [
            // Tag 60. The message has four additional bytes of data.
            (
                "  note: at rank 1, 1 message is there: one of 104 bytes from rank 0, tag 2305843009213694012",
                "  note: at rank 1, 1 message is there: one of 100 bytes from rank 0, tag 60",
            ),
            // Communicator 1 of MPICH.
            (
                "  note: one of 8 bytes from rank 2, tag 68719476741, and more",
                "  note: one of 8 bytes from rank 2, tag 5 with the bits 0x1000000000 (for MPI, a communicator or its protocol), and more",
            ),
            (
                "  note: one of 12 bytes from rank 2, tag 6917529027641081856",
                "  note: one of 8 bytes from rank 2, without a tag",
            ),
            (
                "a message of 12 bytes from rank 2, tag 2305843009213693953, came",
                "a message of 8 bytes from rank 2, tag 1, came",
            ),
            (
                "  waits for a receive of 4 bytes from rank 3, tag 7",
                "  waits for a receive of 4 bytes from rank 3, tag 7",
            ),
            ("  note: bytes from rank x, tag 7", "  note: bytes from rank x, tag 7"),
            (
                "  note: one of 8 bytes from rank 99999999999, tag 7",
                "  note: one of 8 bytes from rank 99999999999, tag 7",
            ),
            (
                "  note: one of 8 bytes from rank 536870912, tag 7",
                "  note: one of 8 bytes from rank 536870912, tag 7",
            ),
            ("nothing", "nothing"),
        ] {
            assert_eq!(readable(card, one), program);
            assert_eq!(readable(&format!("{card}\n{card}"), one), format!("{program}\n{program}"));
        }
    }

    #[test]
    fn processes_of_a_host_are_named_by_their_ranks() {
        let places = Places::new(4, 2).unwrap();
        // From rank 3, which is the second process of host 1, to rank 0.
        let tag = places.between(3, 0, 9);
        let text = format!("  note: at rank 0, one of 8 bytes from rank 1, tag {tag}");
        assert_eq!(readable(&text, places), "  note: at host 0, one of 8 bytes from rank 3, tag 9");
        // From the second process of host 0 to the first process of host 1.
        let text = "  note: at rank 0, 2 sends to rank 1, pair 1, wait: there";
        assert_eq!(readable(text, places), "  note: at rank 1, 2 sends to rank 2 wait: there");
        for odd in
            ["rank 1, pair 4, wait", "rank 999999999, pair 1, wait", "rank 1, pair 1 wait", "rank 1 wait"]
        {
            let text = format!("  note: at rank 0, 2 sends to {odd}");
            assert_eq!(readable(&text, places), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(  note: )?.{0,20}[0-9]{0,25} bytes from rank [0-9]{0,12}(, tag [0-9]{0,22})?.{0,9}") {
            let _ = readable(&text, Places::new(8, 3).unwrap());
        }
    }
}
