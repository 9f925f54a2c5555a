//! The calls that the core itself serves, and the numbers of those of the XDP runtime.

use nicety_hpu::TrapKind;
pub use nicety_hpu::calls::process::*;

/// The firmware's own instructions for a frame, for the runtime of XDP programs: 0 in front of the program, 1 behind it.
pub const XDP_WORK: u32 = 0x211;
/// Takes a frame, for the runtime of XDP programs: `take(place)`.
pub const XDP_TAKE: u32 = 0x320;
/// Ends a frame: `end(verdict, data, bytes)`.
pub const XDP_END: u32 = 0x321;

/// Returns the name of the function in `nfp.h` for a call in which a context may sleep.
pub(super) fn name(number: u32) -> &'static str {
    match number {
        CHANNEL_WRITE => "channel_write",
        CHANNEL_READ => "channel_read",
        CHANNEL_WRITE_IND => "channel_write_ind",
        CHANNEL_READ_IND => "channel_read_ind",
        CHANNEL_SELECT => "channel_select",
        ETH_SEND => "nfp_eth_send",
        ETH_RECEIVE => "nfp_eth_receive",
        ETH_MOVE => "nfp_eth_move",
        ETH_SEND_TO => "nfp_eth_send_to",
        ETH_RECEIVE_FROM => "nfp_eth_receive_from",
        XDP_TAKE => "the wait for a frame",
        _ => "a call of the card",
    }
}

/// A decoded call with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Read { to: u32, from: u32, len: u32 },
    Write { to: u32, from: u32, len: u32 },
    Wait { mask: u16, all: bool },
    Send { core: u32, context: u32, signal: u32 },
    Yield,
}

impl Call {
    /// Decodes the call in registers a0 to a7. A reference may move at most `transfer` bytes.
    pub(super) fn of(registers: &[u32; 8], transfer: u32) -> Result<Call, TrapKind> {
        let &[a, b, c, .., number] = registers;
        let moved = |call, to, from, len| match len {
            0 => Err(TrapKind::CallRefused { call, why: "no bytes; move at least 1" }),
            _ if len > transfer => Err(TrapKind::CallRefused {
                call,
                why: "more bytes than the transfer registers hold (hpu.transfer); move them in parts",
            }),
            _ => Ok((to, from, len)),
        };
        let waited = |call, all| match u16::try_from(a) {
            Ok(0) => Err(TrapKind::CallRefused { call, why: "no signals to wait for; set at least 1 bit" }),
            Ok(mask) => Ok(Call::Wait { mask, all }),
            Err(_) => {
                Err(TrapKind::CallRefused { call, why: "signals are numbered 0 to 15; set those bits only" })
            }
        };
        match number {
            READ => moved("nfp_read", a, b, c).map(|(to, from, len)| Call::Read { to, from, len }),
            WRITE => moved("nfp_write", a, b, c).map(|(to, from, len)| Call::Write { to, from, len }),
            WAIT_ALL => waited("nfp_wait_all", true),
            WAIT_ANY => waited("nfp_wait_any", false),
            SIGNAL => Ok(Call::Send { core: a, context: b, signal: c }),
            YIELD => Ok(Call::Yield),
            _ => Err(TrapKind::UnknownCall { number, served: "nfp.h has the calls of a microengine" }),
        }
    }
}

/// The CRC-32 table: the remainder for each byte value.
const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder >> 1) ^ ((remainder & 1) * 0xedb8_8320);
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

/// Continues a CRC-32 (as in Ethernet and zlib) with the four bytes of a word, lowest byte first. The CRC of no bytes
/// is zero.
pub fn crc32(crc: u32, word: u32) -> u32 {
    let step = |remainder: u32, _| (remainder >> 8) ^ CRC_TABLE[(remainder & 0xff) as usize];
    !(0..4).fold(!crc ^ word, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_that_of_ethernet() {
        // The usual check value of CRC-32 is that of "123456789". This value is zlib's CRC-32 of its first eight bytes.
        let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        assert_eq!(crc32(crc32(0, word(b"1234")), word(b"5678")), 0x9ae0_daaf);
        assert_eq!(crc32(0, 0), 0x2144_df1c);
    }

    #[test]
    fn calls_that_cannot_be_meant_say_why() {
        let call = |number, a, len| Call::of(&[a, 0, len, 0, 0, 0, 0, number], 64);
        assert_eq!(call(READ, 5, 64), Ok(Call::Read { to: 5, from: 0, len: 64 }));
        for (number, a, len, text) in [
            (READ, 0, 0, "nfp_read: no bytes"),
            (WRITE, 0, 65, "nfp_write: more bytes than the transfer registers hold"),
            (WAIT_ALL, 0, 0, "nfp_wait_all: no signals"),
            (WAIT_ANY, 1 << 16, 0, "nfp_wait_any: signals are numbered 0 to 15"),
            (7, 0, 0, "ecall with a7 = 7"),
        ] {
            let error = call(number, a, len).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
