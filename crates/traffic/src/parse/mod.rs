//! The parser of expressions. This file splits an expression into items, checks their names, and parses the remaining
//! items. `source` parses the items that describe frames, and `times` the items that describe due times.
//!
//! ```text
//! EXPRESSION = WORD | KEY=VALUE, separated by spaces; a value with spaces is in double quotes
//! words      udp, tcp, ip6, imix, loop
//! source     capture=FILE, or of a template: src dst (ADDRESS or ADDRESS/BITS), sport dport (PORT or PORT-PORT), flows, zipf,
//!            size (BYTES, BYTES-BYTES, BYTES:WEIGHT,BYTES:WEIGHT or imix)
//! times      rate (wire, recorded, 10Gbps or 5Mpps), arrivals (paced, poisson or burst:FRAMES), packets, cut (pad)
//! target     to (RANK), start (TIME)
//! ```

use crate::error::TrafficError;
use crate::expression::{Source, Traffic};
use crate::form::Form;
use nicety_spec::units::{UnitError, parse_count};
use std::ops::{Range, RangeInclusive};

mod source;
#[cfg(test)]
mod tests;
mod times;

/// Maximum length of an expression in bytes.
const LONGEST: usize = 4096;
/// Maximum number of frames in a run.
const MOST_PACKETS: u64 = 1_000_000_000_000;
/// Maximum rank.
const MOST_RANK: u64 = u32::MAX as u64;
/// Default number of frames of a template.
const USUAL_PACKETS: u64 = 100_000;

const WORDS: [&str; 5] = ["udp", "tcp", "ip6", "imix", "loop"];
const KEYS: [&str; 14] = [
    "capture", "src", "dst", "sport", "dport", "flows", "zipf", "size", "rate", "arrivals", "packets", "cut",
    "to", "start",
];

/// A word, or a key with its value.
struct Item<'t> {
    /// The item's range in the expression.
    at: Range<usize>,
    key: &'t str,
    /// The value and its range. `None` for a word.
    value: Option<(&'t str, Range<usize>)>,
}

/// The items of an expression, without duplicates.
struct Items<'t> {
    text: &'t str,
    items: Vec<Item<'t>>,
}

impl Traffic {
    /// Parses an expression.
    ///
    /// # Errors
    /// When it is invalid or contradicts itself. The error has the place and a correction.
    pub fn parse(text: &str) -> Result<Traffic, TrafficError> {
        let items = Items::of(text)?;
        let source = match items.find("capture") {
            Some(_) => items.capture()?,
            None => Source::Template(items.template()?),
        };
        let rate = items.rate(&source)?;
        let arrivals = items.arrivals(rate)?;
        let packets = match (items.value("packets"), &source) {
            (Some((value, at)), _) => Some(items.whole(value, &at, "packets", 1..=MOST_PACKETS)?),
            (None, Source::Template(_)) => Some(USUAL_PACKETS),
            (None, Source::Capture { looped: false, .. }) => None,
            (None, Source::Capture { .. }) => {
                let at = items.find("loop").expect("it is looped").at.clone();
                return items.wrong(at, "a capture that is looped never ends; write loop packets=10M");
            }
        };
        let rank = |(value, at): (&str, Range<usize>)| items.whole(value, &at, "a rank", 0..=MOST_RANK);
        let to = items.value("to").map(rank).transpose()?.map(|rank| rank as u32);
        let start_ps = items.start()?;
        let says = (items.find("src").is_some(), items.find("dst").is_some());
        let is_imix =
            items.find("imix").is_some() || items.value("size").is_some_and(|(size, _)| size == "imix");
        let size_at =
            items.value("size").map(|(_, at)| at).or(items.find("imix").map(|item| item.at.clone()));
        let (text, form) = (text.to_owned(), Form::Frame);
        Ok(Traffic { text, source, rate, arrivals, packets, to, start_ps, says, is_imix, size_at, form })
    }
}

impl<'t> Items<'t> {
    fn of(text: &'t str) -> Result<Items<'t>, TrafficError> {
        let mut found = Items { text, items: Vec::new() };
        if text.len() > LONGEST {
            let message =
                format!("an expression has at most {LONGEST} bytes, but this one has {}", text.len());
            return Err(TrafficError::new(message));
        }
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at].is_ascii_whitespace() {
                at += 1;
                continue;
            }
            let start = at;
            let mut equals = None;
            let mut quoted = false;
            while at < bytes.len() && (quoted || !bytes[at].is_ascii_whitespace()) {
                match bytes[at] {
                    b'"' => quoted = !quoted,
                    b'=' if equals.is_none() => equals = Some(at),
                    _ => {}
                }
                at += 1;
            }
            if quoted {
                return found.wrong(start..at, "a quotation mark that is not closed; write \" at its end");
            }
            found.push(start..at, equals)?;
        }
        if found.items.is_empty() {
            let message = "the expression is empty; write for example udp dport=53 src=10.0.0.0/8, or \
                           capture=FILE.pcap";
            return Err(TrafficError::new(message));
        }
        Ok(found)
    }

    fn push(&mut self, at: Range<usize>, equals: Option<usize>) -> Result<(), TrafficError> {
        let text = self.text;
        let key = &text[at.start..equals.unwrap_or(at.end)];
        let value = equals.map(|equals| {
            let range = equals + 1..at.end;
            let value = &text[range.clone()];
            let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            (inner.unwrap_or(value), range)
        });
        if value.is_none() && !WORDS.contains(&key) {
            return match KEYS.contains(&key) {
                true => self.wrong(at, format!("{key} has no value; write {key}={}", example(key))),
                false if key.contains(".pcap") || key.contains(".cap") => {
                    self.wrong(at, format!("a file is written as capture={key}"))
                }
                false if key == "paced" || key == "poisson" || key.starts_with("burst:") => {
                    self.wrong(at, format!("the arrival process is written as arrivals={key}"))
                }
                false => self.wrong(
                    at,
                    format!(
                        "there is no word {key}; words are {}, and keys are {}",
                        WORDS.join(", "),
                        keys()
                    ),
                ),
            };
        }
        if let Some((value, range)) = &value {
            if !KEYS.contains(&key) {
                return self.wrong(
                    at.start..range.start - 1,
                    format!("there is no key {key}; write one of {}", keys()),
                );
            }
            if value.is_empty() {
                return self.wrong(at, format!("{key} has no value; write {key}={}", example(key)));
            }
            if value.contains('"') {
                return self.wrong(range.clone(), "put quotation marks around the whole value");
            }
        }
        if self.items.iter().any(|item| item.key == key) {
            return self.wrong(at, format!("{key} is given twice; leave one of the two out"));
        }
        self.items.push(Item { at, key, value });
        Ok(())
    }

    fn wrong<T>(&self, at: Range<usize>, message: impl Into<String>) -> Result<T, TrafficError> {
        Err(TrafficError { place: Some((self.text.to_owned(), at)), message: message.into() })
    }

    fn find(&self, key: &str) -> Option<&Item<'t>> {
        self.items.iter().find(|item| item.key == key)
    }

    fn value(&self, key: &str) -> Option<(&'t str, Range<usize>)> {
        self.find(key)?.value.clone()
    }

    /// Parses a whole number, such as 64, 10M or 4Ki.
    fn whole(
        &self,
        text: &str,
        at: &Range<usize>,
        what: &str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, TrafficError> {
        self.within(parse_count(text), text, at, what, range)
    }

    /// Checks that the number parsed from `text` is in a range.
    fn within(
        &self,
        number: Result<u64, UnitError>,
        text: &str,
        at: &Range<usize>,
        what: &str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, TrafficError> {
        let why = match number {
            Ok(number) if range.contains(&number) => return Ok(number),
            Ok(_) => String::new(),
            Err(error) => format!(" ({error})"),
        };
        let (least, most) = (range.start(), range.end());
        let message =
            format!("{what}: a whole number from {least} to {most}, as in 64, 1500 or 10k, not {text}{why}");
        self.wrong(at.clone(), message)
    }
}

fn keys() -> String {
    KEYS.join(", ")
}

/// Returns an example value of a key.
fn example(key: &str) -> &'static str {
    match key {
        "capture" => "FILE.pcap",
        "src" | "dst" => "10.0.0.0/8",
        "sport" => "1024-65535",
        "dport" => "53",
        "flows" => "1M",
        "zipf" => "1.1",
        "size" => "64:7,590:4,1514:1",
        "rate" => "10Gbps",
        "arrivals" => "poisson",
        "cut" => "pad",
        "to" => "0",
        "start" => "20us",
        _ => "10M",
    }
}
