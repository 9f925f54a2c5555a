//! The numbers of the calls that a card serves, which a program puts into register a7: those of nicety.h, frame.h and nfp.h.

/// Defines numbers of calls.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: u32 = $number;)*

        /// Their names and numbers.
        #[cfg(test)]
        pub(super) const ALL: &[(&str, u32)] = &[$((stringify!($name), $number)),*];
    };
}

/// Commands of handlers.
#[expect(missing_docs, reason = "the names are those of nicety.h and frame.h")]
pub mod handler {
    numbers! {
        PUT_FROM_DEVICE = 0x101;
        PUT_FROM_HOST = 0x102;
        GET_TO_HOST = 0x103;
        DMA_TO_HOST = 0x110;
        DMA_FROM_HOST = 0x111;
        DMA_CAS = 0x112;
        DMA_FETCH_ADD = 0x113;
        DMA_TEST = 0x114;
        DMA_WAIT = 0x115;
        CT_INC = 0x120;
        CT_GET = 0x121;
        CT_SET = 0x122;
        CAS = 0x130;
        FADD = 0x131;
        YIELD = 0x140;
        PRINTF = 0x150;
        FRAME_PUSH = 0x170;
        FRAME_PULL = 0x171;
        FRAME_RESIZE = 0x172;
    }
}

/// Calls of processes on microengines.
pub mod process {
    numbers! {
        /// `nfp_read(to, from, len)` copies from a memory to local memory.
        READ = 0x200;
        /// `nfp_write(to, from, len)` copies from local memory to a memory.
        WRITE = 0x201;
        /// `nfp_crc32(crc, word)`.
        CRC32 = 0x210;
        /// `nfp_wait_all(signals)`.
        WAIT_ALL = 0x220;
        /// `nfp_wait_any(signals)`.
        WAIT_ANY = 0x221;
        /// `nfp_signal(microengine, context, signal)`.
        SIGNAL = 0x222;
        /// `nfp_yield()`.
        YIELD = 0x230;
        /// `channel_register(target)`.
        CHANNEL_REGISTER = 0x300;
        /// `channel_write(target, bytes, size)`, with a timeout.
        CHANNEL_WRITE = 0x301;
        /// `channel_read(target, bytes, size)`, with a timeout.
        CHANNEL_READ = 0x302;
        /// `channel_write_ind(target, memory, size)`, with a timeout.
        CHANNEL_WRITE_IND = 0x303;
        /// `channel_read_ind(target, memory, size)`, with a timeout.
        CHANNEL_READ_IND = 0x304;
        /// `channel_select(guards, count)`, with a timeout.
        CHANNEL_SELECT = 0x305;
        /// `nfp_eth_send(rank, head, head_bytes, memory, bytes)`.
        ETH_SEND = 0x310;
        /// `nfp_eth_receive(head, head_bytes, source)`.
        ETH_RECEIVE = 0x311;
        /// `nfp_eth_move(memory, from, bytes)`.
        ETH_MOVE = 0x312;
        /// `nfp_rank()` and `nfp_ranks()`.
        NODE = 0x313;
        /// `nfp_eth_type()`.
        ETH_TYPE = 0x314;
        /// `nfp_eth_send_to(rank, head, head_bytes, memory, bytes, queue)`.
        ETH_SEND_TO = 0x315;
        /// `nfp_eth_receive_from(head, head_bytes, source, queue)`.
        ETH_RECEIVE_FROM = 0x316;
        /// `nfp_eth_open(queue)`.
        ETH_OPEN = 0x317;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers behind the enumerators of a header that begin with a prefix and have a hexadecimal value.
    fn numbers(header: &str, prefix: &str) -> Vec<(String, u32)> {
        let path = format!("{}/../../handlers/include/{header}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let pairs = text.split(['{', '}', ',', '\n']).filter_map(|part| part.split_once(" = 0x"));
        let named = pairs.filter_map(|(name, value)| Some((name.trim().strip_prefix(prefix)?, value)));
        named.map(|(name, value)| (name.to_owned(), u32::from_str_radix(value.trim(), 16).unwrap())).collect()
    }

    fn owned(all: &[(&str, u32)]) -> Vec<(String, u32)> {
        all.iter().map(|&(name, number)| (name.to_owned(), number)).collect()
    }

    #[test]
    fn the_numbers_are_those_of_the_headers() {
        let mut commands = numbers("nicety.h", "NICETY_");
        commands.extend(numbers("frame.h", "NICETY_"));
        assert_eq!(commands, owned(handler::ALL));
        let mut calls = numbers("nfp.h", "NFP_CALL_");
        calls.sort_by_key(|&(_, number)| number);
        assert_eq!(calls, owned(process::ALL));
    }
}
