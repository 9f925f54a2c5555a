//! Parses the items that describe frames: a capture, or a template of headers and sizes.

use super::Items;
use crate::error::TrafficError;
use crate::expression::{Addresses, Cut, Popularity, Ports, Protocol, Sizes, Source, Template};
use crate::form::Form;
use nicety_spec::units::parse_bytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Maximum number of flows.
pub(super) const MOST_FLOWS: u64 = 1 << 40;
/// Maximum exponent of Zipf's law.
const MOST_ZIPF: f64 = 10.0;
/// Maximum frame length in bytes: Ethernet's header and the longest IPv4 packet.
const MOST_BYTES: u64 = 14 + 65_535;
/// Default frame size, in bytes.
const USUAL_BYTES: u64 = 64;
/// Maximum number of weighted sizes.
const MOST_SIZES: usize = 1024;

impl Items<'_> {
    /// Returns the capture that an expression names. Keys of a template are then errors.
    pub(super) fn capture(&self) -> Result<Source, TrafficError> {
        let (path, _) = self.value("capture").expect("it has a value");
        for key in ["udp", "tcp", "ip6", "imix", "src", "dst", "sport", "dport", "flows", "zipf", "size"] {
            if let Some(item) = self.find(key) {
                let message = format!(
                    "{key} is for generated frames, but capture={path} has its own frames; leave one of the \
                     two out"
                );
                return self.wrong(item.at.clone(), message);
            }
        }
        let cut = match self.value("cut") {
            None => Cut::Refuse,
            Some(("pad", _)) => Cut::Pad,
            Some((_, at)) => {
                return self.wrong(
                    at,
                    "the only value of cut is pad; write cut=pad, which pads packets with zeros, or leave \
                     cut out",
                );
            }
        };
        Ok(Source::Capture { path: path.into(), looped: self.find("loop").is_some(), cut })
    }

    pub(super) fn template(&self) -> Result<Template, TrafficError> {
        for key in ["loop", "cut"] {
            if let Some(item) = self.find(key) {
                let why = if key == "cut" { "have all their bytes" } else { "never end" };
                let message = format!(
                    "{key} is for captures, and generated frames {why}; write capture=FILE, or leave {key} \
                     out"
                );
                return self.wrong(item.at.clone(), message);
            }
        }
        let protocol = match (self.find("udp"), self.find("tcp")) {
            (Some(_), Some(tcp)) => {
                return self
                    .wrong(tcp.at.clone(), "udp and tcp: frames have only one of the two; leave one out");
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
        template.flows = self.flows(headers)?;
        template.popularity = self.popularity(template.flows)?;
        Ok(template)
    }

    /// Returns the number of flows. It is at most `headers`, the number of different headers.
    fn flows(&self, headers: u128) -> Result<u64, TrafficError> {
        let Some((value, at)) = self.value("flows") else { return Ok(headers.min(MOST_FLOWS.into()) as u64) };
        let flows = self.whole(value, &at, "flows", 1..=MOST_FLOWS)?;
        if u128::from(flows) <= headers {
            return Ok(flows);
        }
        let message = format!(
            "{flows} flows need different headers, but addresses and ports give only {headers}; write a \
             larger range, as in src=10.0.0.0/8 or sport=1024-65535"
        );
        self.wrong(at, message)
    }

    fn popularity(&self, flows: u64) -> Result<Popularity, TrafficError> {
        let Some((value, at)) = self.value("zipf") else { return Ok(Popularity::Uniform) };
        let exponent = value.parse::<f64>().ok().filter(|exponent| *exponent > 0.0 && *exponent <= MOST_ZIPF);
        match exponent {
            None => {
                let message = format!(
                    "the exponent has to be above 0 and at most {MOST_ZIPF}; write for example zipf=1.1"
                );
                self.wrong(at, message)
            }
            Some(_) if flows == 1 => self.wrong(
                at,
                "there is only one flow, so flows cannot differ in popularity; write flows=1M with a range, \
                 as in src=10.0.0.0/8",
            ),
            Some(exponent) => Ok(Popularity::Zipf(exponent)),
        }
    }

    /// Returns the source and the destination addresses. Both have the same version of IP.
    fn both_addresses(&self) -> Result<(Addresses, Addresses), TrafficError> {
        let (src, dst) = (self.addresses("src")?, self.addresses("dst")?);
        let six = |given: &Option<Addresses>| given.map(|addresses| addresses.first.is_ipv6());
        let ip6 = match (self.find("ip6"), six(&src), six(&dst)) {
            (_, Some(false), Some(true)) | (_, Some(true), Some(false)) => {
                let (_, at) = self.value("dst").expect("it was read");
                return self.wrong(
                    at,
                    "src and dst: one address is IPv4 and the other is IPv6; write two addresses of one \
                     version",
                );
            }
            (Some(_), Some(false), _) | (Some(_), _, Some(false)) => {
                let key = if src.is_some() { "src" } else { "dst" };
                let (_, at) = self.value(key).expect("it was read");
                return self.wrong(
                    at,
                    format!(
                        "ip6 with an IPv4 address; write for example {key}=2001:db8::/32, or leave ip6 out"
                    ),
                );
            }
            (word, src, dst) => word.is_some() || src == Some(true) || dst == Some(true),
        };
        // The default addresses are in the networks for benchmarks of RFC 2544 (IPv4), and of RFC 5180 with its erratum
        // (IPv6).
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
                    "neither an address nor a network; write for example {key}=10.0.0.0/8 or \
                     {key}=2001:db8::/32"
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
                self.wrong(at, format!("the first port is above the last port; write {key}={last}-{first}"))
            }
            _ => self.wrong(
                at,
                format!(
                    "neither a port from 0 to 65535 nor a range of ports; write for example \
                     {key}=1024-65535"
                ),
            ),
        }
    }

    /// Returns the sizes of frames with `headers` bytes of headers.
    fn sizes(&self, headers: u64) -> Result<Sizes, TrafficError> {
        let (value, at) = match (self.value("size"), self.find("imix")) {
            (Some(_), Some(imix)) => {
                return self.wrong(
                    imix.at.clone(),
                    "imix and size: both set the lengths of frames; leave one of the two out",
                );
            }
            (None, Some(imix)) => ("imix", imix.at.clone()),
            (Some(size), None) => size,
            (None, None) => return Ok(Sizes::Weighted(vec![(headers.max(USUAL_BYTES), 1)])),
        };
        match value {
            "imix" => Ok(Sizes::imix().at_least(headers)),
            list if list.contains(':') => self.weighted(list, &at, headers),
            list if list.contains(',') => {
                self.wrong(at, "the sizes of a list need weights; write for example size=64:7,590:4,1514:1")
            }
            range => match range.split_once('-') {
                None => Ok(Sizes::Weighted(vec![(self.size(range, &at, headers)?, 1)])),
                Some((first, last)) => {
                    let (first, last) = (self.size(first, &at, headers)?, self.size(last, &at, headers)?);
                    if first > last {
                        let message =
                            format!("the first size is above the last size; write size={last}-{first}");
                        return self.wrong(at, message);
                    }
                    Ok(Sizes::Range(first, last))
                }
            },
        }
    }

    /// Parses a list of sizes with their weights.
    fn weighted(&self, list: &str, at: &Range<usize>, headers: u64) -> Result<Sizes, TrafficError> {
        let mut sizes = Vec::new();
        for each in list.split(',') {
            let Some((size, weight)) = each.split_once(':') else {
                let message = format!("'{each}' has no weight; write for example size=64:7,590:4,1514:1");
                return self.wrong(at.clone(), message);
            };
            sizes.push((self.size(size, at, headers)?, self.whole(weight, at, "a weight", 1..=1 << 32)?));
        }
        if sizes.len() > MOST_SIZES {
            let message = format!("{} sizes with weights; the maximum is {MOST_SIZES}", sizes.len());
            return self.wrong(at.clone(), message);
        }
        Ok(Sizes::Weighted(sizes))
    }

    /// Parses a size of a frame or packet. The size must have room for the headers, which have `headers` bytes in a
    /// frame.
    fn size(&self, text: &str, at: &Range<usize>, headers: u64) -> Result<u64, TrafficError> {
        // Packets that begin with the IP header may be shorter than frames. The form of packets is known only when the
        // traffic is opened.
        let range = headers - Form::Packet.in_front()..=MOST_BYTES;
        self.within(parse_bytes(text), text, at, "bytes of a frame or packet, headers included", range)
    }
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}
