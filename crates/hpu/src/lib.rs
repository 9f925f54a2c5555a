//! Handler cores: small RISC-V cores that run the handlers of a network card.
//!
//! This crate depends on neither the simulation's clock nor its events. A core counts its own cycles, and its driver
//! limits its progress. The parts, in the order in which a handler meets them:
//!
//! - [`Core`] is a kind of core: its [`Isa`], its [`CycleCosts`], and its treatment of misaligned accesses.
//! - [`Image`] is a program decoded for it: segments, symbols, line tables, and blocks of operations that all
//!   cores share. Code is read-only.
//! - [`AddressSpace`] is the memory that one context may access during one slice: a short list of [`Region`]s.
//! - [`Context`] is one thread of execution: registers, pc, cycles. [`Context::call`] enters a handler.
//!   [`Context::run`] executes a slice of it, up to the next point at which the order between cores matters ([`Exit`]).
//! - [`Banks`] are a memory that several cores share, in which accesses wait for one another.
//! - [`DataCaches`] are the lines of caches, and the results of lookups.
//! - [`Reservations`] are the LR/SC reservations of all cores on a memory.
//! - [`Trap`] is a handler's error with its C source line. Names in it come from the file; they are
//!   [`printable`].
//! - [`profile`] counts the cycles of runs by instruction, cause and call path.
//! - [`calls`] has the numbers of the calls that a card serves.
//! - [`bare`] runs a whole program without a card. [`asm`] makes code without a compiler.
//!
//! A core issues its instructions in order, like PsPIN's cores, for which costs are known cycle by cycle. Or it
//! overlaps them ([`Overlap`]), like the out-of-order ARM cores that the sPIN paper simulates.
//!
//! A handler that adds its two arguments:
//!
//! ```
//! use nicety_hpu::{asm::*, AddressSpace, Context, Core, Exit, Image, Region, Reservations};
//!
//! let image = Image::from_words(0x1d00_0000, &[add(A0, A0, A1), ret()], &Core::default());
//! let mut stack = [0; 1024];
//! let mut space = AddressSpace::new().with(Region::stack("stack", 0x1000, &mut stack, 256));
//! let mut context = Context::new(0);
//! context.call(&image, image.entry(), 0x1400, &[40, 2], 10_000);
//! let exit = context.run(&image, &mut space, &mut Reservations::new(), u64::MAX);
//! assert_eq!(exit, Exit::Return(42));
//! assert_eq!((context.cycle(), context.instret()), (2, 2));
//! ```

#![forbid(unsafe_code)]

pub mod asm;
mod banks;
pub mod bare;
mod block;
mod cache;
pub mod calls;
mod compressed;
mod context;
mod core;
mod costs;
mod data_cache;
mod decode;
mod disassemble;
mod elf;
mod float;
mod image;
mod isa;
mod lines;
mod load;
mod memory;
mod op;
mod operand;
mod ordered;
mod overlap;
pub mod profile;
mod region;
mod reservations;
mod run;
mod sample;
mod stale;
mod text;
mod totals;
mod trap;
mod width;
mod words;

pub use crate::banks::{AccessKind, AtomicsAt, BankCounters, BankTiming, Banks, Served};
pub use crate::cache::{Cache, CacheCounters, CacheShape};
pub use crate::context::{Context, DeviceAccess, Exit, RETURN_ADDRESS};
pub use crate::core::{Core, Misaligned};
pub use crate::costs::CycleCosts;
pub use crate::data_cache::{Coherence, DataCaches, Found, Passed, Writes};
pub use crate::decode::Kind;
pub use crate::elf::{Names, has_code, is_wide, with_segment};
pub use crate::image::{Image, Instruction, Source};
pub use crate::isa::{Extension, Isa, IsaError};
pub use crate::load::{LoadError, Segment};
pub use crate::memory::{AddressSpace, Dma, MAX_REGIONS, OrderPoint, Origin, Turns};
pub use crate::ordered::NextAccess;
pub use crate::overlap::Overlap;
pub use crate::region::Region;
pub use crate::reservations::Reservations;
pub use crate::run::Watch;
pub use crate::sample::RunSample;
pub use crate::text::{printable, printable_line};
pub use crate::totals::{Executed, Share, Totals};
pub use crate::trap::{Access, Illegal, Location, Nearest, Trap, TrapError, TrapKind};
pub use crate::words::OrderedWords;
