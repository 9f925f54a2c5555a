//! A client of GDB's remote protocol: packets, checksums and acknowledgements.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// A connected client.
pub struct Client {
    stream: TcpStream,
}

impl Client {
    /// Connects to a port, and sees the first stop.
    pub fn connect(port: u16) -> Client {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client { stream }
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(1) => Some(byte[0]),
            _ => None,
        }
    }

    /// Sends a packet.
    pub fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        self.stream.write_all(format!("${packet}#{sum:02x}").as_bytes()).unwrap();
    }

    /// Sends a packet to a session that may have ended.
    pub fn try_send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        let _ = self.stream.write_all(format!("${packet}#{sum:02x}").as_bytes());
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Waits for a byte between packets, such as an acknowledgement.
    pub fn acknowledgement(&mut self) -> char {
        self.byte().map_or(' ', char::from)
    }

    /// Sends an interrupt.
    pub fn interrupt(&mut self) {
        self.stream.write_all(&[3]).unwrap();
    }

    /// Waits for a packet, with runs of equal characters expanded. None if the connection has ended.
    pub fn receive(&mut self) -> Option<String> {
        while self.byte()? != b'$' {}
        let (mut sum, mut text) = (0u8, String::new());
        loop {
            let byte = self.byte()?;
            match byte {
                b'#' => break,
                b'*' => {
                    let count = self.byte()?;
                    sum = sum.wrapping_add(byte).wrapping_add(count);
                    let last = text.chars().last().unwrap();
                    text.extend(std::iter::repeat_n(last, usize::from(count) - 29));
                    continue;
                }
                _ => text.push(char::from(byte)),
            }
            sum = sum.wrapping_add(byte);
        }
        let digits = [self.byte()?, self.byte()?];
        assert_eq!(std::str::from_utf8(&digits).unwrap(), format!("{sum:02x}"), "the checksum of {text}");
        // The session may have ended with this packet.
        let _ = self.stream.write_all(b"+");
        Some(text)
    }

    /// Sends a packet, and returns the answer.
    #[track_caller]
    pub fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive().unwrap_or_else(|| panic!("no answer to {packet}"))
    }

    /// Sends a monitor command, and returns its text.
    pub fn monitor(&mut self, command: &str) -> String {
        let hex: String = command.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.send(&format!("qRcmd,{hex}"));
        let mut text = String::new();
        loop {
            match self.receive().unwrap() {
                answer if answer == "OK" => return text,
                answer => text.push_str(&String::from_utf8(bytes(&answer[1..])).unwrap()),
            }
        }
    }

    /// Returns the pc of the current thread of a core with 32 bits.
    pub fn pc(&mut self) -> u32 {
        self.register(32)
    }

    /// Returns a register of the current thread of a core with 32 bits.
    pub fn register(&mut self, number: usize) -> u32 {
        let all = bytes(&self.ask("g"));
        u32::from_le_bytes(*all[4 * number..].first_chunk().unwrap())
    }

    /// Returns a word of memory.
    pub fn word(&mut self, address: u32) -> u32 {
        let answer = self.ask(&format!("m{address:x},4"));
        u32::from_le_bytes(*bytes(&answer).first_chunk().unwrap_or_else(|| panic!("no memory: {answer}")))
    }
}

/// Returns the bytes of hexadecimal digits.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
