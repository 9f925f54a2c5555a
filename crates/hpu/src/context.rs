//! A thread of execution on a core: registers, pc, cycles, and its pending event.

use crate::decode::csr;
use crate::image::Image;
use crate::isa::Extension;
use crate::memory::OrderPoint;
use crate::overlap::Window;
use crate::trap::Trap;
use crate::width::Width;

/// The return address of a handler called by [`Context::call`]. No code may be there.
pub const RETURN_ADDRESS: u32 = 0xffff_fff0;

/// The number of the first float register.
const FLOATS: usize = 32;

const RA: usize = 1;
const SP: usize = 2;
const GP: usize = 3;
const A0: usize = 10;
const A7: usize = 17;

/// The reason for the end of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The handler returned with this value in the low 32 bits of a0: its `int`.
    Return(u32),
    /// The instruction at the pc is an `ecall`, a command to the card. [`Context::finish_ecall`] resumes.
    Ecall,
    /// The instruction at the pc must wait for its turn. Once all other cores have reached [`Context::cycle`],
    /// [`Context::perform`] executes it.
    Order(OrderPoint),
    /// The instruction at the pc loads from or stores to a device. [`Context::finish_device`] resumes.
    Device(DeviceAccess),
    /// The code at the pc is not, or not yet, in the instruction cache: the line at `address`. The driver of the core
    /// fills it in, and charges the wait with [`Context::stall`].
    Fetch {
        /// An address in the line.
        address: u32,
        /// The cycles since the fetch began: those of the jump to this code, without its first. A cached line would
        /// have arrived in that one.
        asked: u32,
    },
    /// The slice's cycles are used up. The next instruction would begin at [`Context::cycle`].
    Limit,
    /// The handler trapped, which ends its call.
    Trap(Box<Trap>),
}

/// A load from or store to a device region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAccess {
    /// The address, a multiple of the size.
    pub address: u32,
    /// 1, 2 or 4 bytes.
    pub size: u32,
    /// The stored value in the low bytes, or `None` for a load.
    pub write: Option<u32>,
}

/// The reason why the context is stopped, and its way to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Nothing,
    Order,
    Ecall { cycles: u32 },
    Device { rd: u8, bits: u8, signed: bool, write: bool, cycles: u32, len: u8 },
}

/// A thread of execution. Each call of [`run`](Context::run) gets the slice's code and accessible memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The integer registers, then the float ones. Those of RV32 have zeros above their 32 bits.
    pub(crate) regs: [u64; 64],
    /// Whether the image of the last call is for RV64.
    pub(crate) wide: bool,
    /// `frm` and `fflags`.
    pub(crate) fcsr: u32,
    pub(crate) pc: u32,
    pub(crate) cycle: u64,
    pub(crate) instret: u64,
    pub(crate) accesses: u64,
    pub(crate) cycle_limit: u64,
    pub(crate) time_base: u64,
    /// The lowest allowed stack pointer.
    pub(crate) stack_limit: u32,
    pub(crate) hart: u32,
    /// The register that the last instruction loaded, or zero. Its use by the next instruction costs a penalty.
    pub(crate) loaded: u8,
    pub(crate) pending: Pending,
    /// The end of the code line that the last slice waited for, or zero. The line counts as present, even if it is
    /// evicted at once.
    pub(crate) fetched: u32,
    /// The cycles, without the first, of the jump after which the last slice ended.
    pub(crate) jumped: u32,
    /// The end of the code with lines that were looked up before the next step, or zero.
    pub(crate) covered: u32,
    /// The instructions in flight, once a core that overlaps them runs.
    pub(crate) window: Option<Box<Window>>,
}

impl Context {
    /// Returns a context with this hart id, at cycle 0, without a call.
    #[inline]
    pub const fn new(hart: u32) -> Context {
        Context {
            regs: [0; 64],
            wide: false,
            fcsr: 0,
            pc: RETURN_ADDRESS,
            cycle: 0,
            instret: 0,
            accesses: 0,
            cycle_limit: u64::MAX,
            time_base: 0,
            stack_limit: 0,
            hart,
            loaded: 0,
            pending: Pending::Nothing,
            fetched: 0,
            jumped: 0,
            covered: 0,
            window: None,
        }
    }

    /// Makes it a new context with this hart id, at cycle 0, for the [`call`](Context::call) that follows. The registers
    /// are left to that call, which clears them.
    #[inline]
    pub const fn renew(&mut self, hart: u32) {
        (self.cycle, self.time_base) = (0, 0);
        (self.instret, self.accesses) = (0, 0);
        (self.hart, self.stack_limit) = (hart, 0);
    }

    /// Calls the function at `entry` with a clean register file: `args` in a0 and up, gp as the image requires. The
    /// stack pointer is rounded down to 16 bytes as the ABI requires. The return address ends the call with
    /// [`Exit::Return`].
    ///
    /// From `cycle_limit` on, on the scale of [`cycle`](Self::cycle), an instruction that has not begun traps. Cycle
    /// and instruction counts continue.
    ///
    /// # Panics
    /// With more than eight arguments: the ABI passes no more in registers.
    #[inline]
    pub fn call(&mut self, image: &Image, entry: u32, sp: u32, args: &[u32], cycle_limit: u64) {
        let isa = image.core().isa;
        self.regs[..FLOATS].fill(0);
        if isa.has(Extension::F) {
            self.regs[FLOATS..].fill(0);
        }
        self.wide = isa.is_wide();
        self.fcsr = 0;
        self.regs[RA] = u64::from(RETURN_ADDRESS);
        self.regs[SP] = u64::from(sp & !15);
        self.regs[GP] = u64::from(image.global_pointer().unwrap_or(0));
        assert!(args.len() <= 8, "{} arguments, and registers for 8", args.len());
        for (register, &arg) in self.regs[A0..].iter_mut().zip(args) {
            *register = u64::from(arg);
        }
        self.pc = entry & !1;
        self.cycle_limit = cycle_limit;
        self.loaded = 0;
        self.pending = Pending::Nothing;
        (self.fetched, self.jumped, self.covered) = (0, 0, 0);
        if self.window.is_some() {
            self.window = None;
        }
    }

    /// Sets the lowest allowed stack pointer. An instruction that moves the stack pointer below it is a stack overflow,
    /// even without a store. There is no limit at first.
    #[inline]
    pub const fn limit_stack(&mut self, lowest: u32) {
        self.stack_limit = lowest;
    }

    /// Returns an integer register. x0 is zero.
    ///
    /// # Panics
    /// If there is no such register.
    #[inline]
    pub const fn reg(&self, register: usize) -> u64 {
        assert!(register < 32, "there are registers x0 to x31");
        self.regs[register]
    }

    /// Sets an integer register, of RV32 to the low 32 bits of the value. Setting x0 has no effect.
    ///
    /// # Panics
    /// If there is no such register.
    #[inline]
    pub const fn set_reg(&mut self, register: usize, value: u64) {
        assert!(register < 32, "there are registers x0 to x31");
        self.write(register as u8, value);
    }

    /// The bits of a float register.
    ///
    /// # Panics
    /// If there is no such register.
    pub const fn freg(&self, register: usize) -> u32 {
        assert!(register < 32, "there are registers f0 to f31");
        self.regs[FLOATS + register] as u32
    }

    /// Sets the bits of a float register.
    ///
    /// # Panics
    /// If there is no such register.
    pub const fn set_freg(&mut self, register: usize, bits: u32) {
        assert!(register < 32, "there are registers f0 to f31");
        self.regs[FLOATS + register] = bits as u64;
    }

    /// The float control and status register: rounding mode (`frm`) in bits 7 to 5, exception flags (`fflags`) below.
    pub const fn fcsr(&self) -> u32 {
        self.fcsr
    }

    /// Sets the float control and status register.
    pub const fn set_fcsr(&mut self, value: u32) {
        self.fcsr = value & 0xff;
    }

    /// Sets an integer register (0 to 31) or a float one (32 to 63), as wide as the core has them.
    pub(crate) const fn write(&mut self, register: u8, value: u64) {
        self.regs[register as usize] = if self.wide { value } else { value as u32 as u64 };
        self.regs[0] = 0;
    }

    /// The low words of a0 to a7: the arguments of a command; by convention its number is in a7.
    #[inline]
    pub fn args(&self) -> [u32; 8] {
        std::array::from_fn(|number| self.regs[A0 + number] as u32)
    }

    /// Returns the first of a command's `count` arguments that is no 32-bit number, signed or unsigned. No memory of
    /// a card has such an address.
    ///
    /// # Panics
    /// With a count above eight.
    #[inline]
    pub fn argument_beyond(&self, count: usize) -> Option<u64> {
        let fits = |value: u64| value >> 32 == 0 || value as i64 == i64::from(value as i32);
        self.regs[A0..=A7][..count].iter().copied().find(|&value| !fits(value)).filter(|_| self.wide)
    }

    /// The low 32 bits of the stack pointer.
    #[inline]
    pub const fn sp(&self) -> u32 {
        self.regs[SP] as u32
    }

    /// Whether the stack pointer is below its limit. One of RV64 may be below zero.
    #[inline(always)]
    pub(crate) fn is_below_stack<W: Width>(&self) -> bool {
        match W::WIDE {
            true => self.stack_limit != 0 && (self.regs[SP] as i64) < i64::from(self.stack_limit),
            false => self.sp() < self.stack_limit,
        }
    }

    /// The next instruction.
    #[inline]
    pub const fn pc(&self) -> u32 {
        self.pc
    }

    /// Continues at another instruction, and abandons what the one at the pc waits for.
    pub const fn set_pc(&mut self, pc: u32) {
        self.pc = pc;
        self.loaded = 0;
        self.pending = Pending::Nothing;
        (self.fetched, self.jumped, self.covered) = (0, 0, 0);
    }

    /// The cycle at which the next instruction begins.
    #[inline]
    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The same on the scale of the `time` counter.
    #[inline]
    pub const fn time(&self) -> u64 {
        self.cycle.wrapping_add(self.time_base)
    }

    /// Sets the cycle, for example to that of the event that started the call.
    #[inline]
    pub const fn set_cycle(&mut self, cycle: u64) {
        self.cycle = cycle;
    }

    /// Advances the clock by `cycles`, for example for a queue or a cold instruction cache.
    #[inline]
    pub const fn stall(&mut self, cycles: u64) {
        self.cycle += cycles;
    }

    /// Marks the value loaded by the last instruction as arrived, so that its use costs no penalty. For a context that
    /// slept until then.
    #[inline]
    pub const fn settle(&mut self) {
        self.loaded = 0;
    }

    /// Number of completed instructions.
    #[inline]
    pub const fn instret(&self) -> u64 {
        self.instret
    }

    /// Number of these that loaded from memory, stored to it or were atomic.
    #[inline]
    pub const fn accesses(&self) -> u64 {
        self.accesses
    }

    /// The hart id, as read from `mhartid`.
    pub const fn hart(&self) -> u32 {
        self.hart
    }

    /// Sets the offset of the `time` counter from the `cycle` counter, in cycles. It is zero if [`cycle`](Self::cycle)
    /// is already on a scale that all cores share.
    #[inline]
    pub const fn set_time_base(&mut self, cycles: u64) {
        self.time_base = cycles;
    }

    /// Completes the `ecall` that ended the last slice. Sets its result, an `int`, and adds the cycles for which the core was
    /// blocked beyond the `ecall` itself.
    ///
    /// # Panics
    /// If the last slice did not end with [`Exit::Ecall`].
    #[inline]
    pub const fn finish_ecall(&mut self, a0: u32, extra_cycles: u64) {
        let Pending::Ecall { cycles } = self.pending else { panic!("no ecall to finish") };
        self.write(A0 as u8, a0 as i32 as u64);
        self.advance(4, cycles as u64 + extra_cycles);
    }

    /// Completes the device access that ended the last slice. Sets the value of a load, in its low bytes; a store
    /// ignores it. Adds the cycles beyond those of a plain load or store.
    ///
    /// # Panics
    /// If the last slice did not end with [`Exit::Device`].
    #[inline]
    pub const fn finish_device(&mut self, value: u32, extra_cycles: u64) {
        let Pending::Device { rd, bits, signed, write, cycles, len } = self.pending else {
            panic!("no device access to finish")
        };
        self.advance(len, cycles as u64 + extra_cycles);
        self.accesses += 1;
        if !write {
            self.write(rd, loaded_value(value as u64, bits as u32, signed));
            self.loaded = rd;
        }
    }

    #[inline]
    const fn advance(&mut self, len: u8, cycles: u64) {
        self.pc = self.pc.wrapping_add(len as u32);
        self.cycle += cycles;
        self.instret += 1;
        self.pending = Pending::Nothing;
    }

    /// Returns the value of a counter of cycles, time or instructions, or of the hart id. `number` is that of the register.
    pub(crate) fn counter(&self, number: u32, cycle: u64, instret: u64) -> u64 {
        if number == csr::MHARTID {
            return u64::from(self.hart);
        }
        let value = match number & csr::WHICH {
            0 => cycle,
            1 => cycle.wrapping_add(self.time_base),
            _ => instret,
        };
        if number & csr::HIGH != 0 { value >> 32 } else { value }
    }
}

/// The value of a register that the low `bits` of `value` are loaded into.
pub(crate) const fn loaded_value(value: u64, bits: u32, signed: bool) -> u64 {
    let unused = 64 - bits;
    let high = value << unused;
    if signed { (high as i64 >> unused) as u64 } else { high >> unused }
}
