//! The parser of rules: terms on header fields, each translated to words of the frame.

use super::{RuleError, Word};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// The last offset of a word in the longest frame of any card.
const LAST: u32 = 9600 + 18 - 4;

/// Names of IP protocols.
const PROTOCOLS: [(&str, u8); 3] = [("udp", 17), ("tcp", 6), ("icmp", 1)];

const TERMS: &str = "a term is any, arp, ip, ip6, udp, tcp, icmp, vlan=5, ethertype=0x88b5, proto=17; src=10.0.0.0/8, dst=fd00::1, sport=1024-65535, \
     dport=53 or word@36&ffff0000=00350000";

/// Parses the alternatives of a rule, separated by `or`.
pub(super) fn alternatives(text: &str) -> Result<Vec<Vec<Word>>, RuleError> {
    let terms = terms(text);
    let is_or = |term: &Range<usize>| &text[term.clone()] == "or";
    let mut ors = terms.iter().filter(|term| is_or(term));
    let mut found = Vec::new();
    for part in terms.split(is_or) {
        // If a term is missing, it is missing on one side of this `or`.
        let or = ors.next().or(terms.last());
        if part.is_empty() {
            let at = or.map_or((0, 0), |or| (or.start, or.end));
            return Err(RuleError::at(
                text,
                at,
                "a rule has at least one term, also on each side of 'or'",
                TERMS,
            ));
        }
        found.push(Terms::read(text, part)?.words());
    }
    Ok(found)
}

/// Returns the ranges of the terms.
fn terms(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = None;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        match (from, letter.is_whitespace()) {
            (None, false) => from = Some(at),
            (Some(begun), true) => {
                found.push(begun..at);
                from = None;
            }
            _ => {}
        }
    }
    found
}

/// The fields that an alternative compares.
#[derive(Default)]
struct Terms {
    vlan: Option<Option<u16>>,
    ethertype: Option<u16>,
    proto: Option<u8>,
    ports: [Option<(u16, u16)>; 2],
    addresses: [Option<(IpAddr, u32)>; 2],
    raw: Vec<Word>,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

impl Terms {
    fn read(text: &str, places: &[Range<usize>]) -> Result<Terms, RuleError> {
        let mut terms = Terms::default();
        let mut any = false;
        for place in places {
            let term = &text[place.clone()];
            let wrong =
                |why: String, help: &str| Err(RuleError::at(text, (place.start, place.end), why, help));
            if any {
                return wrong("any matches every frame".into(), "leave out any, or the other terms");
            }
            let read = if term == "any" {
                any = true;
                match places.len() {
                    1 => Ok(()),
                    _ => Err(("any matches every frame".into(), "leave out any, or the other terms")),
                }
            } else if let Some(rest) = term.strip_prefix("word@") {
                terms.raw(rest)
            } else {
                terms.field(term)
            };
            if let Err((why, help)) = read {
                return wrong(why, help);
            }
        }
        let whole = (places[0].start, places[places.len() - 1].end);
        terms.agree().map_err(|(why, help)| RuleError::at(text, whole, why, help))?;
        Ok(terms)
    }

    fn field(&mut self, term: &str) -> Result<(), (String, &'static str)> {
        let (key, value) = term.split_once('=').map_or((term, None), |(key, value)| (key, Some(value)));
        let range = |help: &'static str| {
            let value = value.ok_or((format!("{key} has no value"), help))?;
            let (from, to) = value.split_once('-').unwrap_or((value, value));
            match (number(from, 65_535), number(to, 65_535)) {
                (Some(from), Some(to)) if from <= to => Ok((from as u16, to as u16)),
                (Some(from), Some(to)) => {
                    Err((format!("'{value}' has its larger port first, unlike {key}={to}-{from}"), help))
                }
                _ => Err((format!("'{value}' is no port or range of ports"), help)),
            }
        };
        let one = |most: u32, help: &'static str| {
            let value = value.ok_or((format!("{key} has no value"), help))?;
            number(value, most).ok_or((format!("'{value}' is not a number from 0 to {most}"), help))
        };
        match (key, value) {
            ("ip", None) => once(&mut self.ethertype, IPV4, key),
            ("ip6", None) => once(&mut self.ethertype, IPV6, key),
            ("arp", None) => once(&mut self.ethertype, 0x0806, key),
            ("udp" | "tcp" | "icmp", None) => {
                let proto = PROTOCOLS.into_iter().find(|(name, _)| *name == key).map_or(0, |(_, of)| of);
                once(&mut self.proto, proto, key)
            }
            ("vlan", None) => once(&mut self.vlan, None, key),
            ("vlan", _) => once(&mut self.vlan, Some(one(4095, "write for example vlan=5")? as u16), key),
            ("ethertype", _) => {
                once(&mut self.ethertype, one(65_535, "write for example ethertype=0x88b5")? as u16, key)
            }
            ("proto", _) => once(&mut self.proto, one(255, "write for example proto=17")? as u8, key),
            ("sport", _) => once(&mut self.ports[0], range("write for example sport=1024-65535")?, key),
            ("dport", _) => once(&mut self.ports[1], range("write for example dport=53")?, key),
            ("src" | "dst", value) => {
                let help = "write for example src=10.0.0.0/8 or dst=fd00::1";
                let value = value.ok_or((format!("{key} has no value"), help))?;
                let prefix = prefix(value).map_err(|why| (why, help))?;
                once(&mut self.addresses[usize::from(key == "dst")], prefix, key)
            }
            _ => Err((format!("there is no '{term}'"), TERMS)),
        }
    }

    /// Parses the rest of a word, from its offset on.
    fn raw(&mut self, rest: &str) -> Result<(), (String, &'static str)> {
        const HELP: &str = "write OFFSET&MASK=START..END, the offset in bytes and the rest hexadecimal, as in word@36&ffff0000=00350000";
        let wrong = |what: &str, value: &str| Err((format!("{what} '{value}'"), HELP));
        let Some((place, values)) = rest.split_once('=') else { return wrong("no value in", rest) };
        let (offset, mask) =
            place.split_once('&').map_or((place, None), |(offset, mask)| (offset, Some(mask)));
        let hex = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            digits.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        let Some(at) = number(offset, u32::MAX) else { return wrong("no number of bytes:", offset) };
        if at > LAST {
            let why = format!("offset {at} is beyond every frame; the last word is at {LAST}");
            return Err((why, "write a smaller offset"));
        }
        if at % 4 != 0 {
            let why = format!("offset {at} is no multiple of 4: a card compares whole words");
            return Err((why, "write the word with these bytes, and a mask of these bytes"));
        }
        let Some(mask) = mask.map_or(Some(u32::MAX), hex) else {
            return wrong("no mask of up to eight hexadecimal digits in", place);
        };
        let (start, end) = values.split_once("..").unwrap_or((values, values));
        let (Some(start), Some(end)) = (hex(start), hex(end)) else {
            return wrong("no value of up to eight hexadecimal digits in", values);
        };
        if start > end {
            return Err((
                format!("the range {start:08x}..{end:08x} is empty"),
                "write the smaller value first",
            ));
        }
        if start == end && start & !mask != 0 {
            return Err((
                format!(
                    "the value {start:08x} has bits that its mask {mask:08x} leaves out: it matches no frame"
                ),
                "leave these bits out of the value, or mask them in",
            ));
        }
        self.raw.push(Word { offset: at, mask, start, end });
        Ok(())
    }

    /// Adds implied fields, and detects contradictions.
    fn agree(&mut self) -> Result<(), (String, &'static str)> {
        let families = self.addresses.iter().flatten().map(|(address, _)| match address {
            IpAddr::V4(_) => IPV4,
            IpAddr::V6(_) => IPV6,
        });
        for family in families.collect::<Vec<_>>() {
            match self.ethertype.replace(family) {
                Some(other) if other != family => {
                    let help = "write addresses of one version of IP, with ip6 or without";
                    return Err(("its terms are of different protocols".into(), help));
                }
                _ => {}
            }
        }
        if self.ports.iter().any(Option::is_some) && !matches!(self.proto, Some(6 | 17)) {
            return Err(("ports are those of udp or of tcp".into(), "write for example udp dport=53"));
        }
        if self.proto.is_some() {
            match *self.ethertype.get_or_insert(IPV4) {
                IPV4 | IPV6 => {}
                other => {
                    let why = format!("frames of type {other:#06x} have no protocol of IP");
                    return Err((why, "leave one of the two out"));
                }
            }
        }
        Ok(())
    }

    fn words(self) -> Vec<Word> {
        let word = |offset, mask, value| Word { offset, mask, start: value, end: value };
        let mut words = Vec::new();
        // A VLAN tag is a whole word before all others.
        let mut shift = 0;
        if let Some(vlan) = self.vlan {
            let (mask, value) = vlan.map_or((0xffff_0000, 0), |vlan| (0xffff_0fff, u32::from(vlan)));
            words.push(word(12, mask, 0x8100_0000 | value));
            shift = 4;
        }
        let of_ports = self.ports.iter().any(Option::is_some);
        match self.ethertype {
            // The word also requires a header without IP options, because options would shift later words.
            Some(IPV4) if of_ports => words.push(word(12 + shift, 0xffff_ff00, 0x0800_4500)),
            Some(IPV4) => words.push(word(12 + shift, 0xffff_f000, 0x0800_4000)),
            Some(IPV6) => words.push(word(12 + shift, 0xffff_f000, 0x86dd_6000)),
            Some(other) => words.push(word(12 + shift, 0xffff_0000, u32::from(other) << 16)),
            None => {}
        }
        let version6 = self.ethertype == Some(IPV6);
        if let Some(proto) = self.proto {
            words.push(match (version6, of_ports) {
                (true, _) => word(20 + shift, 0xff00_0000, u32::from(proto) << 24),
                // Only the first fragment has ports.
                (false, true) => word(20 + shift, 0x1fff_00ff, proto.into()),
                (false, false) => word(20 + shift, 0x0000_00ff, proto.into()),
            });
        }
        for (number, address) in self.addresses.into_iter().enumerate() {
            if let Some((address, bits)) = address {
                let (from, bytes) = match address {
                    IpAddr::V4(address) => (26 + 4 * number as u32, address.octets().to_vec()),
                    IpAddr::V6(address) => (22 + 16 * number as u32, address.octets().to_vec()),
                };
                prefix_words(from + shift, &bytes, bits, &mut words);
            }
        }
        // Ports are in different halves of a word.
        let first = if version6 { 52 } else { 32 } + shift;
        if let Some((from, to)) = self.ports[0] {
            words.push(Word { offset: first, mask: 0xffff, start: from.into(), end: to.into() });
        }
        if let Some((from, to)) = self.ports[1] {
            let (start, end) = (u32::from(from) << 16, u32::from(to) << 16);
            words.push(Word { offset: first + 4, mask: 0xffff_0000, start, end });
        }
        words.extend(self.raw);
        words
    }
}

fn once<T: PartialEq>(field: &mut Option<T>, value: T, key: &str) -> Result<(), (String, &'static str)> {
    let said = match field {
        None => {
            *field = Some(value);
            return Ok(());
        }
        Some(before) if *before == value => "repeats another term",
        Some(_) => "contradicts another term",
    };
    Err((format!("'{key}' {said}"), "leave one of the two out"))
}

/// Parses a decimal number, or a hexadecimal one after 0x.
fn number(text: &str, most: u32) -> Option<u32> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let found =
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, radix));
    found?.ok().filter(|&number| number <= most)
}

fn prefix(text: &str) -> Result<(IpAddr, u32), String> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| format!("'{address}' is no address of IP"))?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => all,
        Some(bits) => number(bits, all).ok_or_else(|| format!("'/{bits}' is no length of a prefix"))?,
    };
    let inside = match address {
        IpAddr::V4(own) => IpAddr::V4(Ipv4Addr::from_bits(own.to_bits() & masked::<32>(bits) as u32)),
        IpAddr::V6(own) => IpAddr::V6(Ipv6Addr::from_bits(own.to_bits() & masked::<128>(bits))),
    };
    match inside == address {
        true => Ok((address, bits)),
        false => Err(format!("{text} has bits after its prefix; its network is {inside}")),
    }
}

/// Returns a mask of the first `bits` of `ALL` bits.
const fn masked<const ALL: u32>(bits: u32) -> u128 {
    let all = if ALL == 128 { u128::MAX } else { (1 << ALL) - 1 };
    if bits == 0 { 0 } else { all << (ALL - bits) & all }
}

/// Adds words for the first bits of an address at byte `from` of a frame.
fn prefix_words(from: u32, bytes: &[u8], bits: u32, words: &mut Vec<Word>) {
    let first = from / 4 * 4;
    let mut offset = first;
    while offset < from + bits.div_ceil(8) {
        let (mut mask, mut value) = (0u32, 0u32);
        for byte in offset..offset + 4 {
            let at = byte.checked_sub(from).filter(|at| (*at as usize) < bytes.len());
            let (own, counted) = at.map_or((0, 0), |at| {
                let left = bits.saturating_sub(8 * at).min(8);
                (bytes[at as usize], (0xff00u32 >> left) as u8)
            });
            mask = mask << 8 | u32::from(counted);
            value = value << 8 | u32::from(own & counted);
        }
        if mask != 0 {
            words.push(Word { offset, mask, start: value, end: value });
        }
        offset += 4;
    }
}
