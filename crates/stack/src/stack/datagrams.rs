//! UDP sockets. Each has a port, and a bounded queue per direction. Datagrams are not fragmented.

use super::calls::plain;
use super::{Arrival, DatagramId, Drop, Outgoing, Source, Stack};
use crate::checksum::fill_ip;
use crate::error::Error;
use crate::frame::{IpPacket, UDP, be16};
use crate::header::{ip_header, packet_in, write_ip};
use crate::link::ethertype;
use nicety_types::Time;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Bytes of a UDP header.
const HEADER: usize = 8;

/// A UDP socket with its port and queues.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    port: u16,
    /// Received datagrams with their senders. `queued` is the sum of their bytes.
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    queued: usize,
    most_queued: usize,
    /// Outgoing packets, each with its next hop and with room for the Ethernet header. `leaving` is the sum of their bytes.
    outgoing: VecDeque<(IpAddr, Vec<u8>)>,
    leaving: usize,
    most_leaving: usize,
    ready: bool,
}

impl Stack {
    /// Opens a UDP socket at a port, or at an ephemeral port if the caller names none.
    ///
    /// # Errors
    /// [`Error::AddressInUse`] if a UDP socket has the port, [`Error::AddressNotAvailable`] if no ephemeral port is
    /// left, [`Error::Invalid`] for port 0.
    pub fn bind(&mut self, port: Option<u16>) -> Result<DatagramId, Error> {
        let port = match port {
            Some(0) => return Err(Error::Invalid),
            Some(port) if self.datagram_ports.contains_key(&port) => return Err(Error::AddressInUse),
            Some(port) => port,
            None => self.ephemeral(|stack, port| !stack.datagram_ports.contains_key(&port))?,
        };
        let socket = DatagramSocket {
            port,
            queue: VecDeque::new(),
            queued: 0,
            most_queued: self.spec.receive_buffer,
            outgoing: VecDeque::new(),
            leaving: 0,
            most_leaving: self.spec.send_buffer,
            ready: false,
        };
        let id = DatagramId(self.datagrams.insert(socket).ok_or(Error::NoBufferSpace)?);
        self.datagram_ports.insert(port, id);
        Ok(id)
    }

    /// The port of a datagram socket.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn port(&self, id: DatagramId) -> Result<u16, Error> {
        Ok(self.datagrams.get(id.0).ok_or(Error::BadHandle)?.port)
    }

    /// Maximum size of a datagram to this peer, in bytes.
    pub fn longest_datagram(&self, to: IpAddr) -> usize {
        self.spec.mtu - HEADER - ip_header(to)
    }

    /// Queues a datagram for transmission.
    ///
    /// # Errors
    /// [`Error::MessageTooLong`] for more bytes than [`Stack::longest_datagram`], [`Error::WouldBlock`] if the send
    /// buffer is full, [`Error::NetworkUnreachable`], [`Error::Invalid`] for port 0 or an address that is not a single
    /// host's, [`Error::BadHandle`].
    pub fn send_to(&mut self, id: DatagramId, bytes: &[u8], to: SocketAddr) -> Result<(), Error> {
        let to = plain(to);
        if to.port() == 0 {
            return Err(Error::Invalid);
        }
        let hop = self.next_hop(to.ip())?;
        let own = self.own(to.ip()).ok_or(Error::NetworkUnreachable)?;
        if bytes.len() > self.longest_datagram(to.ip()) {
            return Err(Error::MessageTooLong);
        }
        let room = self.link.room();
        let socket = self.datagrams.get_mut(id.0).ok_or(Error::BadHandle)?;
        if socket.leaving > 0 && socket.leaving + bytes.len() > socket.most_leaving {
            return Err(Error::WouldBlock);
        }
        let mut packet = Vec::with_capacity(room + 48 + bytes.len());
        packet.resize(room, 0);
        let length = HEADER + bytes.len();
        write_ip(&mut packet, own, to.ip(), UDP, length);
        for field in [socket.port, to.port(), length as u16, 0] {
            packet.extend_from_slice(&field.to_be_bytes());
        }
        packet.extend_from_slice(bytes);
        if !self.spec.checksum_offload {
            let whole = packet_in(&packet, room, own, to.ip(), UDP);
            let filled = fill_ip(&mut packet, &whole);
            debug_assert!(filled.is_ok());
        }
        socket.leaving += packet.len();
        socket.outgoing.push_back((hop, packet));
        self.ready_datagrams(id);
        Ok(())
    }

    /// Removes the oldest received datagram, and copies it into `bytes` as far as it fits. Returns the number of copied
    /// bytes and the sender.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if no datagram waits, [`Error::BadHandle`].
    pub fn recv_from(&mut self, id: DatagramId, bytes: &mut [u8]) -> Result<(usize, SocketAddr), Error> {
        let socket = self.datagrams.get_mut(id.0).ok_or(Error::BadHandle)?;
        let (from, datagram) = socket.queue.pop_front().ok_or(Error::WouldBlock)?;
        socket.queued -= datagram.len();
        let read = datagram.len().min(bytes.len());
        bytes[..read].copy_from_slice(&datagram[..read]);
        Ok((read, from))
    }

    /// Releases the port. Datagrams in both queues are lost.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn close_datagrams(&mut self, id: DatagramId) -> Result<(), Error> {
        let socket = self.datagrams.remove(id.0).ok_or(Error::BadHandle)?;
        self.datagram_ports.remove(&socket.port);
        Ok(())
    }

    pub(super) fn ready_datagrams(&mut self, id: DatagramId) {
        if let Some(socket) = self.datagrams.get_mut(id.0)
            && !socket.ready
            && !socket.outgoing.is_empty()
        {
            socket.ready = true;
            self.ready.push_back(Source::Datagram(id));
        }
    }

    /// Drops all outgoing datagrams of a socket with the same next hop as the first. The neighbour at this hop does not
    /// reply.
    pub(super) fn drop_datagrams(&mut self, id: DatagramId) {
        if let Some(socket) = self.datagrams.get_mut(id.0)
            && let Some((lost, _)) = socket.outgoing.front().cloned()
        {
            socket.outgoing.retain(|(hop, _)| *hop != lost);
            socket.leaving = socket.outgoing.iter().map(|(_, packet)| packet.len()).sum();
        }
        self.ready_datagrams(id);
    }

    pub(super) fn transmit_datagram(
        &mut self,
        now: Time,
        id: DatagramId,
        frame: &mut Vec<u8>,
    ) -> Option<Outgoing> {
        let socket = self.datagrams.get_mut(id.0)?;
        let Some(&(hop, _)) = socket.outgoing.front() else {
            socket.ready = false;
            return None;
        };
        let found = self.resolve(now, hop, Source::Datagram(id));
        let (room, socket) = (self.link.room(), self.datagrams.get_mut(id.0)?);
        let Some(mac) = found else {
            socket.ready = false;
            return None;
        };
        let (_, packet) = socket.outgoing.pop_front()?;
        let headers = room + HEADER + ip_header(hop);
        let payload = packet.len() - headers;
        socket.leaving -= packet.len();
        *frame = packet;
        self.link.address(frame, mac, ethertype(hop));
        let needs_checksum = self.spec.checksum_offload;
        Some(Outgoing { payload, retransmission: false, segment: None, needs_checksum })
    }

    pub(super) fn receive_datagram(
        &mut self,
        frame: &[u8],
        ip: &IpPacket,
        from: [u8; 6],
    ) -> Result<Arrival, Drop> {
        let bytes = &frame[ip.payload.clone()];
        if bytes.len() < HEADER {
            return Err(Drop::Malformed);
        }
        let (source, port, length) = (be16(bytes, 0), be16(bytes, 2), usize::from(be16(bytes, 4)));
        if length < HEADER || length > bytes.len() || source == 0 {
            return Err(Drop::Malformed);
        }
        let payload = &bytes[HEADER..length];
        let id = self.datagram_ports.get(&port).copied();
        let Some((id, socket)) = id.and_then(|id| Some((id, self.datagrams.get_mut(id.0)?))) else {
            let arrival = self.unreachable_port(frame, ip, from);
            return Ok(Arrival { payload: payload.len(), dropped: Some(Drop::NoPort), ..arrival });
        };
        let mut arrival = Arrival {
            source: Source::Datagram(id),
            payload: payload.len(),
            readable: payload.len(),
            acknowledged: 0,
            dropped: None,
        };
        // A datagram without payload counts too: the number of datagrams is limited.
        let full = socket.queued + payload.len() > socket.most_queued
            || socket.queue.len() * HEADER >= socket.most_queued;
        if full {
            (arrival.readable, arrival.dropped) = (0, Some(Drop::BufferFull));
        } else {
            socket.queued += payload.len();
            socket.queue.push_back((SocketAddr::new(ip.source, source), payload.to_vec()));
        }
        Ok(arrival)
    }
}
