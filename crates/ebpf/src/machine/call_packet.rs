//! Calls of helpers on the packet.

use super::call::{Returned, returned};
use super::memory::Access;
use super::run::Registers;
use super::{Machine, REDIRECT, Redirect};
use crate::helper::Helper;

impl Machine {
    pub(crate) fn packet_helper(&mut self, helper: Helper, r: &Registers) -> Returned {
        if helper == Helper::CsumDiff {
            return self.csum_diff(r);
        }
        if helper == Helper::Redirect {
            if r[2] != 0 {
                return Ok(0);
            }
            self.redirect = Some(Redirect::Interface(r[1] as u32));
            return Ok(u64::from(REDIRECT));
        }
        self.context_argument(r[1], helper)?;
        let delta = r[2] as i32;
        match helper {
            Helper::AdjustHead => Ok(returned(self.packet.adjust_head(delta))),
            Helper::AdjustMeta => Ok(returned(self.packet.adjust_meta(delta))),
            Helper::AdjustTail => Ok(returned(self.packet.adjust_tail(delta))),
            Helper::BuffLen => Ok(self.packet.length() as u64),
            _ => self.move_bytes(helper == Helper::StoreBytes, r),
        }
    }

    fn move_bytes(&mut self, store: bool, r: &Registers) -> Returned {
        let (offset, length) = (r[2] as u32, r[4] as u32 as usize);
        let access = if store { Access::Read } else { Access::Write };
        if length > 0 && self.bytes(r[3], length, access).is_none() {
            return Err(self.refused(r[3], length, access));
        }
        let mut bytes = if store { self.copied(r[3], length)?.to_vec() } else { vec![0; length] };
        self.charge(length as u64 / 8)?;
        let result = self.packet.copy(offset, &mut bytes, store);
        if !store && result.is_ok() {
            self.put(r[3], &bytes)?;
        }
        Ok(returned(result))
    }

    /// The difference of two sums of the Internet checksum, folded to 16 bits as Linux does from 6.13 on.
    fn csum_diff(&mut self, r: &Registers) -> Returned {
        let (from_size, to_size) = (r[2] as u32 as usize, r[4] as u32 as usize);
        let from = self.copied(r[1], from_size)?;
        let to = self.copied(r[3], to_size)?;
        let seed = r[5] as u32;
        let sum = match (from_size > 0, to_size > 0) {
            (true, true) => add(partial(&to, seed), !partial(&from, 0)),
            (false, true) => partial(&to, seed),
            (true, false) => !partial(&from, !seed),
            (false, false) => seed,
        };
        Ok(u64::from(sum.wrapping_add(sum.rotate_left(16)) >> 16))
    }
}

/// The sum with end-around carry.
fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u32::from(carry)
}

fn partial(bytes: &[u8], seed: u32) -> u32 {
    bytes.chunks(4).fold(seed, |sum, chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        add(sum, u32::from_le_bytes(word))
    })
}
