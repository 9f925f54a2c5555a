//! A linked program with other initial data: the bytes of the segment with its variables.

use crate::error::XdpError;

const PT_LOAD: u32 = 1;
const CLASS_64: u8 = 2;

fn damaged(what: &str) -> XdpError {
    XdpError::Program(format!("no linked program ({what}); link it again"))
}

/// A number of `bytes` bytes at a place of the file.
fn number(file: &[u8], at: usize, bytes: usize) -> Result<u64, XdpError> {
    let part = file.get(at..at + bytes).ok_or_else(|| damaged("it is cut off"))?;
    Ok(part.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

fn set(file: &mut [u8], at: usize, bytes: usize, value: u64) {
    file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

/// Returns the file with these bytes as the contents of the segment at `address`.
///
/// # Errors
/// It has no such segment of this size.
pub fn with_data(file: &[u8], address: u32, data: &[u8]) -> Result<Vec<u8>, XdpError> {
    // The offset of the program headers and their size; in a header: offset, address, size in the file, size in memory, alignment.
    let wide = file.get(4) == Some(&CLASS_64);
    let word = if wide { 8 } else { 4 };
    let (table, each) = match wide {
        true => (number(file, 0x20, 8)?, number(file, 0x36, 2)?),
        false => (number(file, 0x1c, 4)?, number(file, 0x2a, 2)?),
    };
    let count = number(file, if wide { 0x38 } else { 0x2c }, 2)?;
    let members: [usize; 5] = if wide { [8, 16, 32, 40, 48] } else { [4, 8, 16, 20, 28] };
    for header in (0..count).map(|at| (table + at * each) as usize) {
        let [offset, place, in_file, in_memory, alignment] = members.map(|at| header + at);
        let is_it = number(file, header, 4)? == u64::from(PT_LOAD)
            && number(file, place, word)? == u64::from(address);
        if !is_it {
            continue;
        }
        if number(file, in_memory, word)? != data.len() as u64 {
            return Err(damaged("its data have another size"));
        }
        // The place in the file and the address are equal modulo the alignment.
        let alignment = number(file, alignment, word)?.clamp(1, 1 << 16);
        let mut whole = file.to_vec();
        while whole.len() as u64 % alignment != u64::from(address) % alignment {
            whole.push(0);
        }
        let at = whole.len() as u64;
        set(&mut whole, offset, word, at);
        set(&mut whole, in_file, word, data.len() as u64);
        whole.extend_from_slice(data);
        return Ok(whole);
    }
    Err(damaged("it has no segment for data"))
}
