//! The values from local memory in the registers of a process, and the last stores to its variables.

use crate::calls::Site;
use crate::code::{Decoded, Rules};
use nicety_hpu::Instruction;
use rustc_hash::FxHashMap;

/// The register with the result of a call.
const RESULT: usize = 10;

/// A value that was computed from a variable.
#[derive(Clone, Copy, Default)]
pub(crate) struct Value {
    /// The variable, and the number of the store that gave it the value. 0 for a value of no variable.
    pub key: u32,
    pub stored: u32,
    /// The number of times that the context had given up the core.
    pub section: u32,
}

/// The values from local memory in the registers of a process.
pub(crate) struct Held {
    pub values: [Value; 32],
    pub section: u32,
}

impl Default for Held {
    fn default() -> Held {
        Held { values: [Value::default(); 32], section: 1 }
    }
}

impl Held {
    /// Takes an instruction: a result out of registers has the variable of an operand.
    #[inline]
    pub fn follow(&mut self, decoded: &Decoded) {
        let Instruction { rd, rs1, rs2, .. } = decoded.instruction;
        if decoded.rules == Rules::Ecall {
            self.values[RESULT] = Value::default();
        }
        if rd == 0 || rd > 31 {
            return;
        }
        let mut value = Value::default();
        if decoded.copies {
            value = self.values[usize::from(rs1) & 31];
            if value.key == 0 && !decoded.immediate {
                value = self.values[usize::from(rs2) & 31];
            }
        }
        self.values[usize::from(rd)] = value;
    }
}

/// The last store to a variable.
#[derive(Clone, Copy, Default)]
pub(crate) struct LastStore {
    pub number: u32,
    pub run: u32,
    pub site: Site,
}

/// The last stores to the variables of all microengines.
pub(crate) type LastStores = FxHashMap<u32, LastStore>;
