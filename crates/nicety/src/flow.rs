//! Parses the flow control of the network, as users write it: a word, and options that change its defaults.
//!
//! ```text
//! credits
//! none,buffer=1Mi,per=shared,alpha=1/2
//! pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535
//! ```

use crate::Error;
use crate::cards::Card;
use nicety_fabric::{Alpha, Buffering, FlowControl, NetworkSpec, PauseSpec, Per, Topology};
use nicety_spec::units::{parse_bytes, parse_count};
use std::ops::RangeInclusive;

/// Maximum buffer memory of a switch: 1 TiB.
const LARGEST: u64 = 1 << 40;
/// Keys of every flow control without credits, and the additional keys of `pfc`.
const KEYS: [&str; 3] = ["buffer", "per", "alpha"];
const PAUSE_KEYS: [&str; 4] = ["xoff", "xon", "headroom", "quanta"];

/// Parses the text of a flow control.
///
/// # Errors
/// [`Error::Input`] with the key and a correction.
pub fn parse(text: &str) -> Result<FlowControl, Error> {
    read(text).map_err(|problem| Error::Input(format!("flow control: {problem}")))
}

/// Checks that this topology and this flow control can connect `hosts` hosts with this card.
///
/// # Errors
/// [`Error::Input`] when the topology or the flow control does not suit the hosts or the card.
pub fn check(flow: FlowControl, topology: Topology, hosts: u32, card: &Card) -> Result<(), Error> {
    let node = card.spec.node();
    let parts = NetworkSpec { link: node.link, switch: node.switch, router: node.router };
    let links = vec![node.link; hosts as usize];
    let checked = topology.check_flow(&links, &parts, (flow, card.spec.largest_packet()));
    checked.map_err(|error| Error::Input(error.of_options(true)))
}

fn read(text: &str) -> Result<FlowControl, String> {
    let mut parts = text.split(',').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    match kind {
        "credits" if parts.is_empty() => Ok(FlowControl::Credits),
        "credits" => {
            Err("credits have no parameters; set the buffers by switch.buffer and buffer.packets".to_owned())
        }
        "none" => settings(&parts, false).map(|(buffering, _)| FlowControl::None(buffering)),
        "pfc" => settings(&parts, true).map(|(buffering, pause)| FlowControl::Pfc(buffering, pause)),
        _ => Err(format!("there is no '{}'; write credits, none or pfc, as in none,buffer=1Mi", shown(kind))),
    }
}

fn settings(parts: &[&str], pauses: bool) -> Result<(Buffering, PauseSpec), String> {
    let (mut buffering, mut pause) = (Buffering::default(), PauseSpec::default());
    let mut seen: Vec<&str> = Vec::new();
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            format!("'{}' has no value; write KEY=VALUE, as in none,buffer=1Mi", shown(part))
        })?;
        let (key, value) = (key.trim(), value.trim());
        if seen.contains(&key) {
            return Err(format!("{key}: it appears twice"));
        }
        seen.push(key);
        match key {
            "buffer" => buffering.size = Some(size(key, value, 1..=LARGEST)?),
            "per" => {
                buffering.per = match value {
                    "port" => Per::Port,
                    "shared" => Per::Shared,
                    _ => return Err(format!("per: '{}' is neither port nor shared", shown(value))),
                }
            }
            "alpha" => buffering.alpha = alpha(value)?,
            "xoff" if pauses => pause.xoff = Some(size(key, value, 1..=LARGEST)?),
            "xon" if pauses => pause.xon = Some(size(key, value, 0..=LARGEST)?),
            "headroom" if pauses => pause.headroom = Some(size(key, value, 0..=LARGEST)?),
            "quanta" if pauses => {
                let quanta = parse_count(value).ok().and_then(|quanta| u16::try_from(quanta).ok());
                pause.quanta = quanta.filter(|&quanta| quanta > 0).ok_or_else(|| {
                    format!("quanta: '{}' is no whole number from 1 to 65535", shown(value))
                })?;
            }
            _ if PAUSE_KEYS.contains(&key) => {
                return Err(format!("{key}: only pfc has pauses; write pfc,{key}={}", shown(value)));
            }
            _ => {
                let more: &[&str] = if pauses { &PAUSE_KEYS } else { &[] };
                let keys = [&KEYS, more].concat().join(", ");
                return Err(format!("{}: there is no such key; the keys are {keys}", shown(key)));
            }
        }
    }
    if seen.contains(&"alpha") && buffering.per == Per::Port {
        return Err("alpha: only for a shared buffer; write per=shared, or leave alpha out".to_owned());
    }
    Ok((buffering, pause))
}

/// Reads a number of bytes, such as `4096`, `64Ki` or `1 MiB`.
fn size(key: &str, text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let why = match parse_bytes(text) {
        Ok(bytes) if range.contains(&bytes) => return Ok(bytes),
        Ok(_) => String::new(),
        Err(error) => format!(" ({error})"),
    };
    let (least, most) = (range.start(), "1Ti");
    Err(format!(
        "{key}: '{}' is no number of bytes from {least} to {most}{why}; write one such as 64Ki",
        shown(text)
    ))
}

/// Reads a fraction, such as `2`, `1/8` or `0.5`.
fn alpha(text: &str) -> Result<Alpha, String> {
    let wrong = || format!("alpha: '{}' is no number above 0; write one such as 1, 8 or 1/2", shown(text));
    let fraction = match (text.split_once('/'), text.split_once('.')) {
        (Some((numerator, denominator)), _) => numerator.parse().ok().zip(denominator.parse().ok()),
        (None, Some((whole, part))) if (1..=6).contains(&part.len()) => {
            let digits = format!("{whole}{part}");
            let denominator = 10u64.pow(part.len() as u32);
            digits
                .parse()
                .ok()
                .filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()))
                .zip(Some(denominator))
        }
        (None, Some(_)) => None,
        (None, None) => text.parse().ok().zip(Some(1)),
    };
    let within = |number: u64| (1..1 << 32).contains(&number);
    let (numerator, denominator) = fraction.filter(|&(a, b)| within(a) && within(b)).ok_or_else(wrong)?;
    Ok(Alpha::new(numerator, denominator))
}

/// Returns the beginning of a user's text, for an error.
fn shown(text: &str) -> String {
    text.chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_word_and_what_differs() {
        let none = |buffering| Ok(FlowControl::None(buffering));
        assert_eq!(parse("credits"), Ok(FlowControl::Credits));
        assert_eq!(parse("none"), none(Buffering::default()));
        for text in
            ["none,buffer=1Mi", "none, buffer = 1048576", "none,buffer=1024 KiB", "none,buffer=1048576B"]
        {
            assert_eq!(
                parse(text),
                none(Buffering { size: Some(1 << 20), ..Buffering::default() }),
                "{text}"
            );
        }
        for (text, alpha) in [("1/2", (1, 2)), ("0.125", (125, 1000)), ("8", (8, 1))] {
            let buffering = Buffering { size: None, per: Per::Shared, alpha: Alpha::new(alpha.0, alpha.1) };
            assert_eq!(parse(&format!("none,per=shared,alpha={text}")), none(buffering));
        }
        let pause = PauseSpec { xoff: Some(1 << 17), xon: Some(0), headroom: Some(40 << 10), quanta: 9 };
        let buffering = Buffering { size: Some(1 << 18), ..Buffering::default() };
        assert_eq!(
            parse("pfc,buffer=256Ki,xoff=128Ki,xon=0,headroom=40Ki,quanta=9,per=port"),
            Ok(FlowControl::Pfc(buffering, pause))
        );
    }

    #[test]
    fn sizes_have_the_spellings_of_specs() {
        let size = |text: &str| match parse(&format!("none,buffer={text}")).unwrap() {
            FlowControl::None(buffering) => buffering.size,
            _ => None,
        };
        for text in ["8000", "8k", "8K", "8kB", "8KB", "8 kB", "8000 B"] {
            assert_eq!(size(text), Some(8_000), "{text}");
        }
        for text in ["8Ki", "8KiB", "8 KiB", "8192B"] {
            assert_eq!(size(text), Some(8_192), "{text}");
        }
        assert_eq!(size("1Ti"), Some(LARGEST));
    }

    #[test]
    fn errors_say_what_to_write() {
        for (text, wrong) in [
            ("", "there is no ''; write credits, none or pfc"),
            ("red", "there is no 'red'; write credits, none or pfc, as in none,buffer=1Mi"),
            ("credits,buffer=1Ki", "credits have no parameters"),
            ("none,buffer", "'buffer' has no value; write KEY=VALUE"),
            ("none,buffer=0", "buffer: '0' is no number of bytes from 1 to 1Ti; write one such as 64Ki"),
            ("none,buffer=-1", "buffer: '-1' is no number of bytes"),
            ("none,buffer=1.3 B", "buffer: '1.3 B' is no number of bytes"),
            ("none,buffer=2Ti", "buffer: '2Ti' is no number of bytes"),
            ("none,buffer=8kb", "8 kB is 8000 B, and 8 KiB is 8192 B; write one of the two"),
            ("none,buffer=99999999999999999999", "is no number of bytes"),
            ("none,buffer=18446744073709551615Gi", "is no number of bytes"),
            ("none,buffer=1Ki,buffer=2Ki", "buffer: it appears twice"),
            ("none,xoff=1Ki", "xoff: only pfc has pauses; write pfc,xoff=1Ki"),
            ("none,size=1Ki", "size: there is no such key; the keys are buffer, per, alpha"),
            ("pfc,size=1Ki", "the keys are buffer, per, alpha, xoff, xon, headroom, quanta"),
            ("none,per=queue", "per: 'queue' is neither port nor shared"),
            ("none,alpha=2", "alpha: only for a shared buffer; write per=shared"),
            ("none,per=shared,alpha=0", "alpha: '0' is no number above 0"),
            ("none,per=shared,alpha=1/0", "alpha: '1/0' is no number above 0"),
            ("none,per=shared,alpha=1.", "is no number above 0"),
            ("none,per=shared,alpha=+.5", "is no number above 0"),
            ("pfc,quanta=0", "quanta: '0' is no whole number from 1 to 65535"),
            ("pfc,quanta=65536", "quanta: '65536' is no whole number from 1 to 65535"),
        ] {
            let Err(Error::Input(found)) = parse(text) else { panic!("{text} was read") };
            assert!(found.starts_with("flow control: ") && found.contains(wrong), "{text}: {found}");
        }
        assert!(parse(&"x".repeat(100_000)).unwrap_err().to_string().len() < 200);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn nearly_right_texts_do_not_panic(
            parts in prop::collection::vec(
                "(none|pfc|credits|buffer|per|alpha|xoff|xon|headroom|quanta)? ?=? ?([0-9./]{0,22}(Ki|MiB|Gi| B)?|shared|port)?",
                0..6,
            )
        ) {
            let _ = parse(&parts.join(","));
            let _ = parse(&format!("pfc,{}", parts.join(",")));
        }

        #[test]
        fn any_sizes_are_read(buffer in 1..=LARGEST, headroom in 0..=LARGEST, quanta in 1..=u16::MAX) {
            let text = format!("pfc,buffer={buffer},headroom={headroom}B,quanta={quanta}");
            let buffering = Buffering { size: Some(buffer), ..Buffering::default() };
            let pause = PauseSpec { headroom: Some(headroom), quanta, ..PauseSpec::default() };
            prop_assert_eq!(parse(&text), Ok(FlowControl::Pfc(buffering, pause)));
        }
    }
}
