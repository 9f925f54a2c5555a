//! The parser of expressions.
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
use crate::expression::{
    Addresses, Arrivals, Cut, Popularity, Ports, Protocol, Rate, Sizes, Source, Template, Traffic,
};
use crate::form::Form;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Maximum length of an expression.
const LONGEST: usize = 4096;
/// Maximum frames of a run.
const MOST_PACKETS: u64 = 1_000_000_000_000;
/// Maximum flows.
const MOST_FLOWS: u64 = 1 << 40;
/// Maximum exponent of Zipf's law.
const MOST_ZIPF: f64 = 10.0;
/// Maximum frame length: Ethernet's header and the longest IPv4 packet.
const MOST_BYTES: u64 = 14 + 65_535;
/// Default frame size, in bytes.
const USUAL_BYTES: u64 = 64;
/// Maximum number of weighted sizes.
const MOST_SIZES: usize = 1024;
/// Maximum rank.
const MOST_RANK: u64 = u32::MAX as u64;
/// Latest start: an hour, in picoseconds.
const LATEST: u64 = 3600 * 1_000_000_000_000;
/// Default number of frames of a template.
const USUAL_PACKETS: u64 = 100_000;

const WORDS: [&str; 5] = ["udp", "tcp", "ip6", "imix", "loop"];
const KEYS: [&str; 14] = [
    "capture", "src", "dst", "sport", "dport", "flows", "zipf", "size", "rate", "arrivals", "packets", "cut",
    "to", "start",
];

/// A word, or a key with its value.
struct Item<'t> {
    /// Its range in the expression.
    at: Range<usize>,
    key: &'t str,
    /// The value and its range; none for a word.
    value: Option<(&'t str, Range<usize>)>,
}

/// The items of an expression, without duplicates.
struct Items<'t> {
    text: &'t str,
    items: Vec<Item<'t>>,
}

impl Traffic {
    /// Reads an expression.
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
            (Some((value, at)), _) => Some(items.whole(value, &at, "frames", 1..=MOST_PACKETS)?),
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
            let message = format!("an expression has at most {LONGEST} bytes, and this one {}", text.len());
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
            let message =
                "there is nothing in it; write for example udp dport=53 src=10.0.0.0/8, or capture=FILE.pcap";
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
                    self.wrong(at, format!("how packets arrive is written as arrivals={key}"))
                }
                false => self.wrong(
                    at,
                    format!("there is no {key}; words are {}, and keys {}", WORDS.join(", "), keys()),
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
                return self.wrong(range.clone(), "quotation marks are around the whole value");
            }
        }
        if self.items.iter().any(|item| item.key == key) {
            return self.wrong(at, format!("{key} is there twice; leave one of the two out"));
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

    /// Returns a capture. Keys of a template are errors.
    fn capture(&self) -> Result<Source, TrafficError> {
        let (path, _) = self.value("capture").expect("it has a value");
        for key in ["udp", "tcp", "ip6", "imix", "src", "dst", "sport", "dport", "flows", "zipf", "size"] {
            if let Some(item) = self.find(key) {
                let message = format!(
                    "{key} is of made frames, and capture={path} has its own; leave one of the two out"
                );
                return self.wrong(item.at.clone(), message);
            }
        }
        let cut = match self.value("cut") {
            None => Cut::Refuse,
            Some(("pad", _)) => Cut::Pad,
            Some((_, at)) => {
                return self.wrong(at, "write cut=pad, which fills packets up with zeros, or leave it out");
            }
        };
        Ok(Source::Capture { path: path.into(), looped: self.find("loop").is_some(), cut })
    }

    fn template(&self) -> Result<Template, TrafficError> {
        for key in ["loop", "cut"] {
            if let Some(item) = self.find(key) {
                let why = if key == "cut" { "have all their bytes" } else { "never end" };
                let message = format!(
                    "{key} is for captures, and made frames {why}; write capture=FILE, or leave it out"
                );
                return self.wrong(item.at.clone(), message);
            }
        }
        let protocol = match (self.find("udp"), self.find("tcp")) {
            (Some(_), Some(tcp)) => {
                return self.wrong(tcp.at.clone(), "udp and tcp: frames have one of the two; leave one out");
            }
            (None, Some(_)) => Protocol::Tcp,
            _ => Protocol::Udp,
        };
        let (src, dst) = self.both_addresses()?;
        let mut template = Template {
            protocol,
            src,
            dst,
            sport: self.ports("sport", 49_152)?,
            dport: self.ports("dport", 9)?,
            flows: 1,
            popularity: Popularity::Uniform,
            sizes: self.sizes(protocol.headers(src.first.is_ipv6()))?,
        };
        let headers = template.headers();
        template.flows = match self.value("flows") {
            None => headers.min(MOST_FLOWS.into()) as u64,
            Some((value, at)) => {
                let flows = self.whole(value, &at, "flows", 1..=MOST_FLOWS)?;
                if u128::from(flows) > headers {
                    let message = format!(
                        "{flows} flows differ in their headers, and addresses and ports give {headers}; write a larger range, \
                         as in src=10.0.0.0/8 or sport=1024-65535"
                    );
                    return self.wrong(at, message);
                }
                flows
            }
        };
        if let Some((value, at)) = self.value("zipf") {
            let exponent =
                value.parse::<f64>().ok().filter(|exponent| *exponent > 0.0 && *exponent <= MOST_ZIPF);
            let Some(exponent) = exponent else {
                let message =
                    format!("an exponent above 0, and {MOST_ZIPF} at most; write for example zipf=1.1");
                return self.wrong(at, message);
            };
            if template.flows == 1 {
                let message = "there is one flow, so none is more popular; write flows=1M with a range, as in src=10.0.0.0/8";
                return self.wrong(at, message);
            }
            template.popularity = Popularity::Zipf(exponent);
        }
        Ok(template)
    }

    /// Returns source and destination addresses, of one version of IP.
    fn both_addresses(&self) -> Result<(Addresses, Addresses), TrafficError> {
        let (src, dst) = (self.addresses("src")?, self.addresses("dst")?);
        let six = |given: &Option<Addresses>| given.map(|addresses| addresses.first.is_ipv6());
        let ip6 = match (self.find("ip6"), six(&src), six(&dst)) {
            (_, Some(false), Some(true)) | (_, Some(true), Some(false)) => {
                let (_, at) = self.value("dst").expect("it was read");
                return self.wrong(
                    at,
                    "src and dst: one is of IP version 4 and the other of version 6; write two of one version",
                );
            }
            (Some(_), Some(false), _) | (Some(_), _, Some(false)) => {
                let key = if src.is_some() { "src" } else { "dst" };
                let (_, at) = self.value(key).expect("it was read");
                return self.wrong(
                    at,
                    format!(
                        "ip6 and an address of version 4; write for example {key}=2001:db8::/32, or leave ip6 out"
                    ),
                );
            }
            (word, src, dst) => word.is_some() || src == Some(true) || dst == Some(true),
        };
        // The networks for benchmarks: RFC 2544, and RFC 5180 with its erratum.
        let usual: [IpAddr; 2] = match ip6 {
            false => [Ipv4Addr::new(198, 18, 0, 1).into(), Ipv4Addr::new(198, 19, 0, 1).into()],
            true => [
                Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1).into(),
                Ipv6Addr::new(0x2001, 2, 0, 0x8000, 0, 0, 0, 1).into(),
            ],
        };
        let [src, dst] = [(src, usual[0]), (dst, usual[1])]
            .map(|(given, first)| given.unwrap_or(Addresses { first, bits: 0 }));
        Ok((src, dst))
    }

    fn addresses(&self, key: &str) -> Result<Option<Addresses>, TrafficError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        let (address, bits) = match value.split_once('/') {
            None => (value, None),
            Some((address, bits)) => (address, Some(digits(bits))),
        };
        let read = address.parse::<IpAddr>().ok().and_then(|address| {
            let most = if address.is_ipv6() { 128 } else { 32 };
            let bits = bits.unwrap_or(Some(most)).filter(|bits| *bits <= most)?;
            Some((address, (most - bits) as u32, bits))
        });
        let Some((address, free, bits)) = read else {
            return self.wrong(
                at,
                format!(
                    "an address, or a network; write for example {key}=10.0.0.0/8 or {key}=2001:db8::/32"
                ),
            );
        };
        let mask = u128::MAX.checked_shl(free).unwrap_or(0);
        let first: IpAddr = match address {
            IpAddr::V4(address) => Ipv4Addr::from(u32::from(address) & mask as u32).into(),
            IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & mask).into(),
        };
        if first != address {
            return self.wrong(
                at,
                format!(
                    "the network of {address} with {bits} bits begins at {first}; write {key}={first}/{bits}"
                ),
            );
        }
        Ok(Some(Addresses { first, bits: free }))
    }

    fn ports(&self, key: &str, usual: u16) -> Result<Ports, TrafficError> {
        let Some((value, at)) = self.value(key) else { return Ok(Ports { first: usual, last: usual }) };
        let (first, last) = value.split_once('-').unwrap_or((value, value));
        let port = |text: &str| digits(text).and_then(|port| u16::try_from(port).ok());
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Ports { first, last }),
            (Some(first), Some(last)) => {
                self.wrong(at, format!("the first port is the smaller; write {key}={last}-{first}"))
            }
            _ => self.wrong(
                at,
                format!("a port from 0 to 65535, or two with - between; write for example {key}=1024-65535"),
            ),
        }
    }

    /// Returns frame sizes, for headers of `headers` bytes.
    fn sizes(&self, headers: u64) -> Result<Sizes, TrafficError> {
        let (value, at) = match (self.value("size"), self.find("imix")) {
            (Some(_), Some(imix)) => {
                return self.wrong(
                    imix.at.clone(),
                    "imix and size: both say how long frames are; leave one of the two out",
                );
            }
            (None, Some(imix)) => ("imix", imix.at.clone()),
            (Some(size), None) => size,
            (None, None) => return Ok(Sizes::Weighted(vec![(headers.max(USUAL_BYTES), 1)])),
        };
        // Packets that begin with IP may be shorter than frames. Their form is known only when the traffic is opened.
        let range = headers - Form::Packet.in_front()..=MOST_BYTES;
        let bytes =
            |text: &str| self.whole(text, &at, "bytes of a frame or packet, headers included", range.clone());
        let sizes = match value {
            "imix" => Sizes::imix().at_least(headers),
            list if list.contains(':') => {
                let mut sizes = Vec::new();
                for each in list.split(',') {
                    let Some((size, weight)) = each.split_once(':') else {
                        return self.wrong(
                            at.clone(),
                            format!("'{each}' has no weight; write for example size=64:7,590:4,1514:1"),
                        );
                    };
                    sizes.push((bytes(size)?, self.whole(weight, &at, "a weight", 1..=1 << 32)?));
                }
                if sizes.len() > MOST_SIZES {
                    return self.wrong(
                        at.clone(),
                        format!("{} sizes; at most {MOST_SIZES} have weights", sizes.len()),
                    );
                }
                Sizes::Weighted(sizes)
            }
            list if list.contains(',') => {
                return self
                    .wrong(at.clone(), "sizes have weights; write for example size=64:7,590:4,1514:1");
            }
            range if range.contains('-') => {
                let (first, last) = range.split_once('-').expect("it contains one");
                match (bytes(first)?, bytes(last)?) {
                    (first, last) if first > last => {
                        return self.wrong(
                            at.clone(),
                            format!("the first size is the smaller; write size={last}-{first}"),
                        );
                    }
                    (first, last) => Sizes::Range(first, last),
                }
            }
            one => Sizes::Weighted(vec![(bytes(one)?, 1)]),
        };
        Ok(sizes)
    }

    fn rate(&self, source: &Source) -> Result<Rate, TrafficError> {
        let captured = matches!(source, Source::Capture { .. });
        let Some((value, at)) = self.value("rate") else {
            return Ok(if captured { Rate::Recorded } else { Rate::Wire });
        };
        match value {
            "wire" => return Ok(Rate::Wire),
            "recorded" if captured => return Ok(Rate::Recorded),
            "recorded" => {
                return self.wrong(
                    at,
                    "made frames have no recorded times; write rate=wire, rate=10Gbps or rate=5Mpps",
                );
            }
            _ => {}
        }
        let of = |unit: &str| {
            value.strip_suffix(unit).and_then(scaled).filter(|rate| (1..=MOST_RATE).contains(rate))
        };
        let number = ["bps", "b/s", "pps"].iter().find_map(|unit| value.strip_suffix(unit));
        if let Some(number) =
            number.filter(|number| number.parse::<f64>().is_ok() || scaled(number).is_some())
            && of("bps").or_else(|| of("b/s")).or_else(|| of("pps")).is_none()
        {
            let message = match number.contains(['e', 'E']) {
                true => "write the number with k, M, G or T, as in 5Mpps".to_owned(),
                false => format!("a rate is a whole number from 1 to {MOST_RATE} a second, as 5Mpps is"),
            };
            return self.wrong(at, message);
        }
        match (of("bps").or_else(|| of("b/s")), of("pps")) {
            (Some(bits), None) => Ok(Rate::BitsPerSecond(bits)),
            (None, Some(packets)) => Ok(Rate::PacketsPerSecond(packets)),
            _ => self.wrong(
                at,
                "a rate is wire, recorded, bits a second as in 10Gbps, or frames a second as in 5Mpps",
            ),
        }
    }

    fn arrivals(&self, rate: Rate) -> Result<Arrivals, TrafficError> {
        let Some((value, at)) = self.value("arrivals") else { return Ok(Arrivals::Paced) };
        let arrivals = match value {
            "paced" => Arrivals::Paced,
            "poisson" => Arrivals::Poisson,
            _ => match value.strip_prefix("burst:").and_then(scaled).filter(|n| (1..=1 << 32).contains(n)) {
                Some(frames) => Arrivals::Bursts(frames),
                None => {
                    return self.wrong(at, "arrivals are paced, poisson, or bursts of frames as in burst:32");
                }
            },
        };
        match rate {
            Rate::Wire => self
                .wrong(at, "at the wire's rate one frame follows the other; write a rate, as in rate=10Gbps"),
            Rate::Recorded => self.wrong(
                at,
                "frames come when they were recorded; write a rate, as in rate=10Gbps, or leave this out",
            ),
            _ => Ok(arrivals),
        }
    }

    /// Returns the earliest start of the first frame, in picoseconds.
    fn start(&self) -> Result<Option<u64>, TrafficError> {
        let Some((value, at)) = self.value("start") else { return Ok(None) };
        let time = in_units(value, &TIMES).filter(|ps| *ps <= LATEST);
        match time {
            Some(ps) => Ok(Some(ps)),
            None => {
                self.wrong(at, "a time up to an hour, in ps, ns, us, ms or s; write for example start=20us")
            }
        }
    }

    /// Reads a whole number, such as 64, 10M or 4Ki.
    fn whole(
        &self,
        text: &str,
        at: &Range<usize>,
        what: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, TrafficError> {
        match scaled(text) {
            Some(number) if range.contains(&number) => Ok(number),
            _ => {
                let (least, most) = (range.start(), range.end());
                self.wrong(
                    at.clone(),
                    format!(
                        "{what}: a whole number from {least} to {most}, as in 64, 1500 or 10k, not {text}"
                    ),
                )
            }
        }
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

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Reads a whole number with a decimal or binary unit, such as 1.5M or 4Ki.
fn scaled(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("k", 1_000),
        ("K", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ];
    in_units(text, &UNITS).or_else(|| in_units(text, &[("", 1)]))
}

/// Maximum rate, in bits or frames per second.
const MOST_RATE: u64 = 1 << 50;

/// Units of time, in picoseconds.
const TIMES: [(&str, u64); 5] =
    [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];

/// Reads a number with the first of these units that matches its end. None where the product is not whole.
fn in_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, scale) = units.iter().find_map(|(name, scale)| Some((text.strip_suffix(name)?, *scale)))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let above = digits(whole)?.checked_mul(scale)?;
    let ten = 10u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let below = digits(part)?.checked_mul(scale)?;
    if below % ten == 0 { above.checked_add(below / ten) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &str) -> (String, String) {
        let error = Traffic::parse(text).expect_err(text);
        let marked = error.place().map(|at| text[at].to_owned());
        (marked.unwrap_or_default(), error.message)
    }

    #[test]
    fn an_expression_is_read() {
        let traffic = Traffic::parse(
            "udp dport=53 src=10.0.0.0/8  flows=1M zipf=1.1 size=64:7,1514:1 rate=2.5Gbps arrivals=burst:32",
        )
        .unwrap();
        let expected = Template {
            protocol: Protocol::Udp,
            src: Addresses { first: Ipv4Addr::new(10, 0, 0, 0).into(), bits: 24 },
            dst: Addresses { first: Ipv4Addr::new(198, 19, 0, 1).into(), bits: 0 },
            sport: Ports { first: 49_152, last: 49_152 },
            dport: Ports { first: 53, last: 53 },
            flows: 1_000_000,
            popularity: Popularity::Zipf(1.1),
            sizes: Sizes::Weighted(vec![(64, 7), (1514, 1)]),
        };
        assert_eq!(traffic.source, Source::Template(expected));
        assert_eq!(
            (traffic.rate, traffic.arrivals),
            (Rate::BitsPerSecond(2_500_000_000), Arrivals::Bursts(32))
        );
        assert_eq!(traffic.packets, Some(USUAL_PACKETS));
        let capture = Traffic::parse("capture=\"my file.pcap\" loop packets=10M rate=5Mpps cut=pad").unwrap();
        let path = "my file.pcap".into();
        assert_eq!(capture.source, Source::Capture { path, looped: true, cut: Cut::Pad });
        assert_eq!((capture.rate, capture.packets), (Rate::PacketsPerSecond(5_000_000), Some(10_000_000)));
        assert_eq!(Traffic::parse("capture=a.pcap").unwrap().packets, None);
        let Source::Template(template) = Traffic::parse("tcp imix sport=1-3").unwrap().source else {
            panic!()
        };
        assert_eq!((template.sizes, template.flows), (Sizes::imix(), 3));
    }

    #[test]
    fn addresses_or_a_word_say_which_version_of_ip() {
        let template = |text: &str| match Traffic::parse(text).unwrap().source {
            Source::Template(template) => template,
            Source::Capture { .. } => panic!("{text}"),
        };
        let six = template("udp src=2001:db8::/32 flows=1M");
        assert_eq!(six.src, Addresses { first: "2001:db8::".parse().unwrap(), bits: 96 });
        assert_eq!(six.dst, Addresses { first: "2001:2:0:8000::1".parse().unwrap(), bits: 0 });
        assert_eq!(template("udp ip6").src, Addresses { first: "2001:2::1".parse().unwrap(), bits: 0 });
        assert_eq!(template("udp src=::/0 dst=::/0 sport=0-65535 dport=0-65535").flows, MOST_FLOWS);
        // A frame has room for its headers.
        assert_eq!(template("tcp ip6").sizes, Sizes::Weighted(vec![(74, 1)]));
        assert_eq!(template("udp ip6 imix").sizes, Sizes::Weighted(vec![(62, 7), (590, 4), (1514, 1)]));
    }

    #[test]
    fn errors_mark_what_is_wrong_and_say_what_to_write() {
        for (text, marked, words) in [
            ("udp dprt=53", "dprt", "there is no key dprt"),
            ("upd", "upd", "words are udp, tcp"),
            ("udp poisson", "poisson", "written as arrivals=poisson"),
            ("udp rate=1Mpps burst:4", "burst:4", "written as arrivals=burst:4"),
            ("udp cut=pad", "cut=pad", "made frames have all their bytes"),
            ("udp loop", "loop", "made frames never end"),
            ("udp rate=0pps", "0pps", "from 1 to 1125899906842624 a second"),
            ("udp rate=-5Mbps", "-5Mbps", "a rate is wire"),
            ("udp rate=2000Tbps", "2000Tbps", "from 1 to 1125899906842624 a second"),
            ("udp rate=1e6pps", "1e6pps", "write the number with k, M, G or T"),
            ("udp rate=fastpps", "fastpps", "a rate is wire"),
            ("udp dport", "dport", "write dport=53"),
            ("udp dport=", "dport=", "write dport=53"),
            ("udp dport=53 dport=54", "dport=54", "twice"),
            ("udp tcp", "tcp", "leave one out"),
            ("udp dport=70000", "70000", "0 to 65535"),
            ("udp sport=9-3", "9-3", "sport=3-9"),
            ("udp src=10.0.0.1/8", "10.0.0.1/8", "src=10.0.0.0/8"),
            ("udp src=10.0.0.0/8 dst=::1", "::1", "two of one version"),
            ("udp src=2001:db8::/32 dst=10.0.0.1", "10.0.0.1", "two of one version"),
            ("udp ip6 dst=10.0.0.1", "10.0.0.1", "dst=2001:db8::/32"),
            ("udp src=2001:db8::1/64", "2001:db8::1/64", "src=2001:db8::/64"),
            ("udp src=2001:db8::/129", "2001:db8::/129", "src=2001:db8::/32"),
            ("udp src=::1/", "::1/", "an address, or a network"),
            ("udp ip6 size=47", "47", "from 48"),
            ("tcp src=::1 size=59", "59", "from 60"),
            ("capture=a.pcap ip6", "ip6", "has its own"),
            ("udp src=10.0.0.0/33", "10.0.0.0/33", "src=10.0.0.0/8"),
            ("udp flows=1M", "1M", "give 1;"),
            ("udp src=10.0.0.0/24 flows=257", "257", "give 256;"),
            ("udp zipf=1.1", "1.1", "one flow"),
            ("udp sport=1-9 zipf=0", "0", "above 0"),
            ("udp sport=1-9 zipf=nan", "nan", "above 0"),
            ("udp size=27", "27", "from 28"),
            ("tcp size=39", "39", "from 40"),
            ("udp size=64,128", "64,128", "weights"),
            ("udp size=128-64", "128-64", "size=64-128"),
            ("udp imix size=64", "imix", "leave one of the two out"),
            ("udp rate=recorded", "recorded", "no recorded times"),
            ("udp rate=10Gb", "10Gb", "10Gbps"),
            ("udp rate=0pps", "0pps", "5Mpps"),
            ("udp arrivals=poisson", "poisson", "rate=10Gbps"),
            ("capture=a.pcap arrivals=poisson", "poisson", "recorded"),
            ("udp rate=1Mpps arrivals=burst", "burst", "burst:32"),
            ("capture=a.pcap udp", "udp", "has its own"),
            ("capture=a.pcap flows=3", "flows=3", "has its own"),
            ("capture=a.pcap loop", "loop", "packets=10M"),
            ("udp loop", "loop", "for captures"),
            ("udp packets=0", "0", "from 1"),
            ("udp packets=1.5", "1.5", "whole"),
            ("capture=\"a b.pcap", "capture=\"a b.pcap", "not closed"),
            ("a.pcap", "a.pcap", "capture=a.pcap"),
            ("capture=a.pcap cut=zero", "zero", "cut=pad"),
            ("  ", "", "nothing in it"),
        ] {
            let (found, message) = refused(text);
            assert_eq!(found, marked, "{text}: {message}");
            assert!(message.contains(words), "{text}: {message}");
        }
        let shown = Traffic::parse("udp dprt=53").unwrap_err().to_string();
        assert!(shown.starts_with("column 5: there is no key dprt"));
        assert!(shown.ends_with("\n  udp dprt=53\n      ^^^^"), "{shown}");
    }

    #[test]
    fn traffic_for_a_host_says_where_and_when_it_begins() {
        let of = |text: &str| Traffic::parse(text).map(|traffic| (traffic.to, traffic.start_ps));
        assert_eq!(of("udp"), Ok((None, None)));
        assert_eq!(of("udp to=3 start=20us"), Ok((Some(3), Some(20_000_000))));
        for (text, ps) in [("7ps", 7), ("1.5ns", 1_500), ("2ms", 2_000_000_000), ("3600s", LATEST), ("0s", 0)]
        {
            assert_eq!(of(&format!("udp start={text}")), Ok((None, Some(ps))), "{text}");
        }
        for text in [
            "start=20",
            "start=3601s",
            "start=1.5ps",
            "start=us",
            "start=-1us",
            "start=20 us",
            "to=-1",
            "to=4294967296",
        ] {
            assert!(of(&format!("udp {text}")).is_err(), "{text}");
        }
        let first = |text: &str| {
            let (here, there) = (
                (Ipv4Addr::new(10, 0, 0, 2), Ipv6Addr::LOCALHOST),
                (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::UNSPECIFIED),
            );
            match Traffic::parse(text).unwrap().addressed(here, there).source {
                Source::Template(template) => {
                    (template.src.first.to_string(), template.dst.first.to_string())
                }
                Source::Capture { .. } => unreachable!(),
            }
        };
        let pair = |src: &str, dst: &str| (src.to_owned(), dst.to_owned());
        assert_eq!(first("udp"), pair("10.0.0.2", "10.0.0.1"));
        assert_eq!(first("ip6"), pair("::1", "::"));
        assert_eq!(first("src=1.2.3.0/24"), pair("1.2.3.0", "10.0.0.1"));
        assert_eq!(first("dst=2001:db8::/32"), pair("::1", "2001:db8::"));
    }

    #[test]
    fn numbers_have_units() {
        for (text, number) in
            [("1.5M", 1_500_000), ("4Ki", 4096), ("0.5k", 500), ("7", 7), ("10G", 10_000_000_000)]
        {
            assert_eq!(scaled(text), Some(number), "{text}");
        }
        for text in
            ["", "k", "1.5", "-1", "1e3", "1.", ".5", "99999999999999999999", "9999999999T", "0.0001k"]
        {
            assert_eq!(scaled(text), None, "{text}");
        }
    }

    fn valid() -> impl Strategy<Value = String> {
        let source = prop_oneof![
            (any::<bool>(), any::<bool>(), 0u32..25, 0u16..9, 74u64..1500).prop_map(
                |(udp, ip6, bits, ports, size)| {
                    format!(
                        "{} src={} dport=7-{} size={size}",
                        if udp { "udp" } else { "tcp" },
                        if ip6 {
                            format!("2001:db8::/{}", 128 - 4 * bits)
                        } else {
                            format!("10.0.0.0/{}", 32 - bits)
                        },
                        7 + ports
                    )
                }
            ),
            "[a-z]{1,8}\\.pcap".prop_map(|file| format!("capture={file} cut=pad")),
        ];
        let rate = prop_oneof![
            Just(String::new()),
            Just(" rate=wire".into()),
            (1u64..400).prop_map(|g| format!(" rate={g}Gbps arrivals=poisson"))
        ];
        (source, rate, 1u64..1000)
            .prop_map(|(source, rate, packets)| format!("{source}{rate} packets={packets}k"))
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_with_a_place_in_it(text in "\\PC{0,60}|[a-z=0-9./:, \"-]{0,80}|(udp|tcp|ip6|imix|loop|size=|rate=|src=|flows=|zipf=| |1M|64|10.0.0.0/8|::1|2001:db8::/32|[a-z0-9:,-]){0,16}") {
            if let Err(error) = Traffic::parse(&text) {
                if let Some(at) = error.place() {
                    prop_assert!(text.get(at).is_some());
                }
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn the_order_of_words_does_not_matter(text in valid(), turn in 0usize..6) {
            let traffic = Traffic::parse(&text).unwrap();
            let mut words: Vec<&str> = text.split(' ').collect();
            let turn = turn % words.len();
            words.rotate_left(turn);
            let other = words.join(" ");
            let turned = Traffic::parse(&other).unwrap();
            prop_assert_eq!(Traffic { text, size_at: traffic.size_at.clone(), ..turned }, traffic);
        }
    }
}
