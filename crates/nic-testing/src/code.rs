//! Handlers in hand-assembled code, so that a test can count their cycles.

use nicety_hpu::asm::*;
use nicety_hpu::{Core, Image};
use nicety_nic_processors::{Handlers, map};

pub use nicety_nic_processors::commands::codes::number;

/// Return values of the functions in `nicety.h`, and of handlers.
#[expect(missing_docs, reason = "the names are those of nicety.h")]
pub mod result {
    pub const OK: u32 = 0;
    pub const ARG_INVALID: u32 = 2;
    pub const SEGV: u32 = 3;
    pub const NO_SPACE: u32 = 4;
    pub const SUCCESS: i32 = 0;
    pub const SUCCESS_PENDING: i32 = 1;
    pub const PROCESS_DATA: i32 = 2;
    pub const PROCESS_DATA_PENDING: i32 = 3;
    pub const PROCEED: i32 = 4;
    pub const PROCEED_PENDING: i32 = 5;
    pub const DROP: i32 = 6;
    pub const DROP_PENDING: i32 = 7;
    pub const FAIL: i32 = -1;
}

/// The instructions of a function under construction. After [`Code::enter`] or [`Code::enter_completion`], `S0` has the
/// address of the state.
#[derive(Clone, Debug, Default)]
pub struct Code(pub Vec<u32>);

impl Code {
    /// Returns an empty function.
    pub fn new() -> Code {
        Code::default()
    }

    /// Appends the instructions of `more`.
    pub fn then(self, more: &Code) -> Code {
        self.with(&more.0)
    }

    /// Appends instructions.
    pub fn with(mut self, words: &[u32]) -> Code {
        self.0.extend(words);
        self
    }

    /// Begins a header or payload handler, in 1 cycle.
    pub fn enter() -> Code {
        Code::new().with(&[mv(S0, A1)])
    }

    /// Begins a completion handler, in 1 cycle.
    pub fn enter_completion() -> Code {
        Code::new().with(&[mv(S0, A2)])
    }

    /// Sets a register to a value, in 2 cycles.
    pub fn set(self, register: u32, value: u32) -> Code {
        self.with(&li(register, value))
    }

    /// Sets a register to the address of a byte of the state, in 1 cycle.
    pub fn at(self, register: u32, offset: i32) -> Code {
        self.with(&[addi(register, S0, offset)])
    }

    /// Sets a register to a small value, in 1 cycle.
    pub fn small(self, register: u32, value: i32) -> Code {
        self.with(&[addi(register, ZERO, value)])
    }

    /// Issues a command. The arguments must already be in their registers. Takes 1 cycle before the command.
    pub fn command(self, number: u32) -> Code {
        self.small(A7, number as i32).with(&[ecall()])
    }

    /// Stores the cycle counter at an offset of the state, in 2 cycles. The stored value is the counter at the first
    /// cycle.
    pub fn stamp(self, offset: i32) -> Code {
        self.with(&[csrrs(T0, 0xc00, ZERO), sw(T0, offset, S0)])
    }

    /// Issues a command between two [stamps](Code::stamp), and stores the command's result after the stamps. The
    /// difference of the stamps is the command's wait plus 2 cycles.
    pub fn timed(self, number: u32, offset: i32) -> Code {
        self.small(A7, number as i32).stamp(offset).with(&[ecall()]).stamp(offset + 4).with(&[sw(
            A0,
            offset + 8,
            S0,
        )])
    }

    /// Prints the text at an offset of the state.
    pub fn print(self, offset: i32) -> Code {
        self.at(A0, offset).small(A1, 0).command(number::PRINTF)
    }

    /// Copies the first bytes of the state to the start of the match entry's host memory, by a blocking DMA.
    pub fn publish(self, bytes: i32) -> Code {
        self.at(A0, 0).small(A1, 0).small(A2, bytes).small(A3, 0).small(A4, 0).command(number::DMA_TO_HOST)
    }

    /// Spins for `rounds` rounds. Takes 2 cycles, then 4 cycles for each round, but 2 cycles for the last round.
    pub fn spin(self, rounds: u32) -> Code {
        self.set(T1, rounds).with(&[addi(T1, T1, -1), bne(T1, ZERO, -4)])
    }

    /// Returns a value from the handler, in 3 cycles.
    pub fn returns(self, value: i32) -> Code {
        self.small(A0, value).with(&[ret()])
    }
}

/// Returns a program with up to three handlers for this kind of core.
pub fn program_for(
    core: Core,
    header: Option<Code>,
    payload: Option<Code>,
    completion: Option<Code>,
) -> Handlers {
    let mut words = Vec::new();
    let mut place = |code: Option<Code>| {
        code.map(|code| {
            let address = map::CODE + 4 * words.len() as u32;
            words.extend(code.0);
            address
        })
    };
    let (header, payload, completion) = (place(header), place(payload), place(completion));
    let image = Image::from_words(map::CODE, &words, &core);
    Handlers::at(image, header, payload, completion).unwrap()
}

/// Returns a payload handler that sends its packet by a put. The `nicety_put_t` is at the start of the state. The
/// handler issues the put at cycle 5.
pub fn echo() -> Code {
    Code::new()
        .with(&[lw(A5, 4, A0), lw(A0, 0, A0), mv(A2, A1), mv(A1, A5)])
        .command(number::PUT_FROM_DEVICE)
        .returns(result::SUCCESS)
}

/// Returns the bytes of a `nicety_put_t`.
pub fn put(match_bits: u64, target: u32, remote_offset: u32, counted: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(match_bits.to_le_bytes());
    bytes.extend(0xabcd_u64.to_le_bytes());
    for word in [target, remote_offset, u32::from(counted), 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// Returns the 32-bit word at an offset of published state.
pub fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

/// Returns the wait in cycles and the result of a command of [`Code::timed`]. It reads both from published state.
pub fn waited(bytes: &[u8], offset: usize) -> (u32, u32) {
    (word(bytes, offset + 4) - word(bytes, offset) - 2, word(bytes, offset + 8))
}
