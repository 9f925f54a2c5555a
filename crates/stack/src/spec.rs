//! The parameters of a host's stack: addresses, sizes, times, limits and the offloads of its card.

use crate::error::SpecError;
use nicety_types::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The minimum MTU of IPv4, in bytes (RFC 791).
pub const LEAST_MTU_V4: usize = 68;
/// The minimum MTU of IPv6, in bytes (RFC 8200).
pub const LEAST_MTU_V6: usize = 1280;
/// The largest receive buffer that window scaling can advertise, in bytes (RFC 7323).
pub const MOST_BUFFER: usize = 1 << 30;

/// Minimum number of segments for which a delayed acknowledgement waits (RFC 5681, 4.2).
pub(crate) const LEAST_ACK_SEGMENTS: u8 = 2;

/// An interface's address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network<A> {
    /// The interface's own address.
    pub address: A,
    /// Length of the prefix in bits. All hosts of the link share the prefix.
    pub prefix: u8,
    /// The gateway to other networks.
    pub gateway: Option<A>,
}

/// The congestion control of a connection: growth and reduction of its congestion window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// The window grows by a segment per round trip, and is halved at a loss (RFC 5681).
    #[default]
    Reno,
    /// The window grows with the cube of the time since the last loss, and is reduced by three tenths at a loss (RFC 9438).
    Cubic,
}

/// The spec of a stack. Times are virtual.
#[derive(Clone, Debug)]
pub struct StackSpec {
    /// The card's address.
    pub mac: [u8; 6],
    /// The IPv4 address and its network. `None` if the host has no IPv4 address.
    pub ipv4: Option<Network<Ipv4Addr>>,
    /// The IPv6 address and its network. `None` if the host has no IPv6 address.
    pub ipv6: Option<Network<Ipv6Addr>>,
    /// The number of the host's 802.1Q network. The host tags all frames with it, and drops frames of other networks.
    pub vlan: Option<u16>,
    /// The maximum size of an IP packet in a frame, in bytes.
    pub mtu: usize,
    /// The retransmission timeout before the first round-trip measurement (RFC 6298). A value below `min_rto` counts as
    /// `min_rto`.
    pub initial_rto: Duration,
    /// The minimum retransmission timeout.
    pub min_rto: Duration,
    /// The maximum retransmission timeout: repeated timeouts double it up to this value. A value below `min_rto` counts
    /// as `min_rto`.
    pub max_rto: Duration,
    /// Maximum delay of the acknowledgement of a single segment. `None` means immediate acknowledgements.
    pub delayed_ack: Option<Duration>,
    /// Maximum number of segments for which an acknowledgement waits. A connection begins with two, and waits for one
    /// more after each acknowledgement. If the delay `delayed_ack` ends before, the number returns to two, and the
    /// maximum decreases by one (as in Solaris).
    pub ack_segments: u8,
    /// Maximum silence of the peer while a connection has unacknowledged data. Then the connection fails with
    /// [`crate::Error::TimedOut`].
    pub timeout: Duration,
    /// Maximum silence of the peer during the handshake. Then the connection fails with [`crate::Error::TimedOut`].
    pub connect_timeout: Duration,
    /// Time for which a closed socket waits for the peer's FIN. Then the stack resets the connection.
    pub fin_timeout: Duration,
    /// Time for which the end that closed first waits for late segments: twice the maximum segment lifetime
    /// (TIME-WAIT).
    pub time_wait: Duration,
    /// Initial window in segments (RFC 6928).
    pub initial_window: u32,
    /// The congestion control algorithm.
    pub congestion: CongestionControl,
    /// Whether selective acknowledgements are offered and used (RFC 2018).
    pub sack: bool,
    /// Whether a lost tail is probed after two round-trip times, before the retransmission timeout (RFC 8985, 7). It
    /// requires `sack`.
    pub loss_probe: bool,
    /// Whether RFC 7323's time stamps are offered and used. They reduce the payload of a full segment by 12 bytes.
    pub timestamps: bool,
    /// Bytes of a connection's send buffer, unless its options set another size.
    pub send_buffer: usize,
    /// Bytes of the receive buffer of a connection or datagram socket, unless its options set another size.
    pub receive_buffer: usize,
    /// Maximum number of connections, including those that are closing.
    pub connections: usize,
    /// Maximum size of the buffers of all connections together, in bytes.
    pub memory: usize,
    /// The maximum size of a packet that the card segments (TSO), in bytes; at most 65535. `None` if the card has no
    /// TSO.
    pub tso: Option<usize>,
    /// Whether the card computes the checksums of outgoing frames. TSO requires it.
    pub checksum_offload: bool,
    /// The seed of initial sequence numbers and ephemeral ports.
    pub seed: u64,
}

impl Default for StackSpec {
    /// A host without an address: 1500-byte frames, Linux's times, 1024 connections with buffers of 256 KiB.
    fn default() -> StackSpec {
        StackSpec {
            mac: [2, 0, 0, 0, 0, 1],
            ipv4: None,
            ipv6: None,
            vlan: None,
            mtu: 1500,
            initial_rto: Duration::from_us(1_000_000),
            min_rto: Duration::from_us(200_000),
            max_rto: Duration::from_us(120_000_000),
            delayed_ack: Some(Duration::from_us(40_000)),
            ack_segments: LEAST_ACK_SEGMENTS,
            timeout: Duration::from_us(120_000_000),
            connect_timeout: Duration::from_us(127_000_000),
            fin_timeout: Duration::from_us(60_000_000),
            time_wait: Duration::from_us(60_000_000),
            initial_window: 10,
            congestion: CongestionControl::Reno,
            sack: true,
            loss_probe: true,
            timestamps: false,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            connections: 1024,
            memory: 1 << 30,
            tso: None,
            checksum_offload: false,
            seed: 0,
        }
    }
}

impl StackSpec {
    /// Checks the spec.
    ///
    /// # Errors
    /// A message with the invalid value and its correction.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let refuse = |what: String| Err(SpecError(what));
        if self.mac[0] & 1 != 0 || self.mac == [0; 6] {
            return refuse("mac: write the address of one station, not a group address or zero".into());
        }
        if self.ipv4.is_none() && self.ipv6.is_none() {
            return refuse("a host needs an IPv4 or an IPv6 address".into());
        }
        if self.ipv4.is_some() && self.mtu < LEAST_MTU_V4 {
            return refuse(format!(
                "mtu: {} is too small, IPv4 needs {LEAST_MTU_V4} bytes at least",
                self.mtu
            ));
        }
        if self.ipv6.is_some() && self.mtu < LEAST_MTU_V6 {
            return refuse(format!(
                "mtu: {} is too small, IPv6 needs {LEAST_MTU_V6} bytes at least",
                self.mtu
            ));
        }
        if self.mtu > 65535 {
            return refuse(format!("mtu: {} is too large, an IP packet has 65535 bytes at most", self.mtu));
        }
        if self.ipv4.is_some_and(|n| n.prefix > 32 || !unicast(n.address.into()))
            || self.ipv6.is_some_and(|n| n.prefix > 128 || !unicast(n.address.into()))
        {
            return refuse(
                "an interface has the address of one host, with the prefix length of its network".into(),
            );
        }
        if self.vlan.is_some_and(|v| !(1..=4094).contains(&v)) {
            return refuse("vlan: 1 to 4094".into());
        }
        if self.min_rto < Duration::from_us(1) || self.min_rto > Duration::from_us(60_000_000) {
            return refuse("min_rto: 1 us to 60 s".into());
        }
        if !(1..=1000).contains(&self.initial_window) {
            return refuse("initial_window: 1 to 1000 segments".into());
        }
        if !(LEAST_ACK_SEGMENTS..=16).contains(&self.ack_segments) {
            return refuse("ack_segments: 2 to 16".into());
        }
        if self.tso.is_some_and(|t| t > 65535 || t < self.mtu) {
            return refuse("tso: from the mtu to 65535 bytes".into());
        }
        if self.tso.is_some() && !self.checksum_offload {
            return refuse(
                "tso: a card that cuts segments computes their checksums, so set checksum_offload".into(),
            );
        }
        for (name, bytes) in [("send_buffer", self.send_buffer), ("receive_buffer", self.receive_buffer)] {
            check_buffer(bytes).map_err(|what| SpecError(format!("{name}: {what}")))?;
        }
        if self.connections == 0 || self.connections > 1 << 20 {
            return refuse("connections: 1 to 1048576".into());
        }
        Ok(())
    }
}

/// Checks the size of a buffer.
///
/// # Errors
/// A message with the allowed sizes, if `bytes` is not one of them.
pub(crate) fn check_buffer(bytes: usize) -> Result<(), &'static str> {
    if (1..=MOST_BUFFER).contains(&bytes) { Ok(()) } else { Err("a buffer has 1 byte to 1 GiB") }
}

/// Whether an address can belong to a single host: it is neither broadcast, multicast, loopback nor unspecified.
pub(crate) fn unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(a) if a.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || broadcast)
}

/// Options of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the send buffer. `None` for the spec's size.
    pub send_buffer: Option<usize>,
    /// Bytes of the receive buffer. `None` for the spec's size.
    pub receive_buffer: Option<usize>,
    /// Whether small segments are sent at once, without Nagle's algorithm (`TCP_NODELAY`).
    pub nodelay: bool,
}
