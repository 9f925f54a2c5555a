//! The shape of a cache: a whole number of sets of lines.

use crate::spec::divisor::divisor_near;
use nicety_hpu::CacheShape;
use nicety_spec::Section;

/// Returns the shape that `size`, `ways` and `line` give. Refuses values that contradict one another, and returns
/// none.
pub(super) fn shape(s: &Section<'_>, bytes: u32, ways: u32, line: u32) -> Option<CacheShape> {
    let refuse = |key, what: &str, value: String| {
        s.refuse(key, what, &s.example(key, &value));
        None
    };
    if !line.is_power_of_two() {
        let near = (line.next_power_of_two() / 2).max(4);
        return refuse("line", "a line is a power of two", format!("{near} B"));
    }
    let set = u64::from(ways) * u64::from(line);
    if !bytes.is_multiple_of(line) {
        let near = set * u64::from(bytes).div_ceil(set).next_power_of_two();
        return refuse(
            "size",
            &format!("{bytes} bytes are not a whole number of lines of {line} bytes"),
            format!("{near} B"),
        );
    }
    if !u64::from(bytes).is_multiple_of(set) {
        let near = divisor_near(u64::from(bytes / line), ways.into());
        let what = format!("{bytes} bytes do not divide into sets of {ways} lines of {line} bytes");
        return refuse("ways", &what, near.to_string());
    }
    Some(CacheShape { bytes, ways, line })
}

/// Returns the shape of a cache indexed by address bits.
pub(super) fn indexed(s: &Section<'_>, bytes: u32, ways: u32, line: u32) -> Option<CacheShape> {
    let shape = shape(s, bytes, ways, line)?;
    let set = u64::from(ways) * u64::from(line);
    let sets = u64::from(shape.sets());
    if !sets.is_power_of_two() {
        let [below, above] = [sets.next_power_of_two() / 2, sets.next_power_of_two()].map(|sets| sets * set);
        s.refuse(
            "size",
            &format!(
                "{bytes} bytes are {sets} sets of {ways} lines of {line} bytes; bits of the address choose \
                 the set, so the number of sets must be a power of two"
            ),
            &format!("write for example \"{below} B\" or \"{above} B\""),
        );
        return None;
    }
    Some(shape)
}
