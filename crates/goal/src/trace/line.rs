//! The fields of a line in a trace.

/// An error in a line: its column, counted from 0, and its text.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) text: String,
}

impl Fault {
    #[cold]
    pub(super) fn new(at: usize, text: impl Into<String>) -> Fault {
        Fault { at, text: text.into() }
    }
}

/// A communicator: the number of this rank in it, and its number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comm {
    pub(super) handle: u64,
    pub(super) rank: u32,
    pub(super) ranks: u32,
}

/// A line, divided into fields.
pub(super) struct Fields<'l> {
    line: &'l [u8],
    /// The start and the end of each field in the line.
    ends: &'l [(usize, usize)],
    /// The name of the call, without `MPI_`.
    pub(super) name: &'l str,
}

impl<'l> Fields<'l> {
    /// Divides a line into fields. `ends` is memory that is used again for each line.
    pub(super) fn split(line: &'l [u8], ends: &'l mut Vec<(usize, usize)>) -> Result<Fields<'l>, Fault> {
        ends.clear();
        let mut begin = 0;
        for (at, byte) in line.iter().enumerate() {
            if *byte == b':' {
                ends.push((begin, at));
                begin = at + 1;
            }
        }
        ends.push((begin, line.len()));
        let name =
            std::str::from_utf8(&line[ends[0].0..ends[0].1]).ok().and_then(|name| name.strip_prefix("MPI_"));
        match name {
            Some(name) if ends.len() >= 3 => Ok(Fields { line, ends, name }),
            _ => {
                Err(Fault::new(0, "a call is expected, as in MPI_Barrier:10:0,0,4:12, or a comment after #"))
            }
        }
    }

    /// Returns the number of fields, including the name and the two times.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Refuses a line that does not have `count` fields.
    pub(super) fn expect(&self, count: usize) -> Result<(), Fault> {
        if self.len() == count {
            return Ok(());
        }
        let text = format!("MPI_{} has {count} fields, not {}; is the line cut off?", self.name, self.len());
        Err(Fault::new(self.line.len(), text))
    }

    fn text(&self, field: usize) -> &'l [u8] {
        let (from, to) = self.ends[field];
        &self.line[from..to]
    }

    /// Returns the position of a field in the line.
    pub(super) fn at(&self, field: usize) -> usize {
        self.ends[field].0
    }

    #[cold]
    pub(super) fn fault(&self, field: usize, what: &str) -> Fault {
        let text = self.text(field);
        let shown = text[..text.len().min(24)].escape_ascii();
        Fault::new(self.ends[field].0, format!("{what} is expected, not '{shown}'"))
    }

    /// Returns the start time of the call in nanoseconds; `None` if the rank had no clock yet.
    pub(super) fn begin(&self) -> Result<Option<u64>, Fault> {
        self.time(1)
    }

    /// Returns the end time of the call in nanoseconds.
    pub(super) fn end(&self) -> Result<Option<u64>, Fault> {
        self.time(self.len() - 1)
    }

    fn time(&self, field: usize) -> Result<Option<u64>, Fault> {
        let text = self.text(field);
        if text == b"-" {
            return Ok(None);
        }
        let wrong = || self.fault(field, "a time in microseconds");
        let (whole, fraction) = match text.iter().position(|byte| *byte == b'.') {
            Some(point) => (&text[..point], &text[point + 1..]),
            None => (text, &b""[..]),
        };
        if !fraction.iter().all(u8::is_ascii_digit) {
            return Err(wrong());
        }
        // Three decimal digits of a microsecond are nanoseconds.
        let digits = fraction.iter().chain(b"000").take(3);
        let ns = digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        let us = digits_of(whole).ok_or_else(wrong)?;
        us.checked_mul(1000).and_then(|whole| whole.checked_add(ns)).map(Some).ok_or_else(wrong)
    }

    /// Reads a whole number that may be negative.
    pub(super) fn number(&self, field: usize) -> Result<i64, Fault> {
        let text = self.text(field);
        let (sign, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (-1, digits),
            None => (1, text),
        };
        let value = digits_of(digits).and_then(|value| i64::try_from(value).ok());
        value.map(|value| sign * value).ok_or_else(|| self.fault(field, "a whole number"))
    }

    /// Reads a whole number that is not negative.
    pub(super) fn count(&self, field: usize) -> Result<u64, Fault> {
        digits_of(self.text(field)).ok_or_else(|| self.fault(field, "a whole number from 0"))
    }

    /// Reads an address or a handle.
    pub(super) fn address(&self, field: usize) -> Result<u64, Fault> {
        self.count(field)
    }

    /// Returns the bytes of a number of items. `count` and `datatype` are the indices of their fields.
    pub(super) fn bytes(&self, count: usize, datatype: usize) -> Result<u64, Fault> {
        let wrong = || self.fault(count, "a number of items that fit into 2^64 bytes");
        self.count(count)?.checked_mul(self.datatype(datatype)?).ok_or_else(wrong)
    }

    /// Returns the bytes of an item of the datatype in a field.
    pub(super) fn datatype(&self, field: usize) -> Result<u64, Fault> {
        let parts = self.parts(field);
        let wrong = || self.fault(field, "a datatype, as in 11,8,8,");
        match parts[..] {
            [Some(_), Some(bytes), Some(_)] => Ok(bytes),
            _ => Err(wrong()),
        }
    }

    /// Reads a communicator.
    pub(super) fn comm(&self, field: usize) -> Result<Comm, Fault> {
        let parts = self.parts(field);
        let wrong = || self.fault(field, "a communicator, as in 0,3,4,");
        let [Some(handle), Some(rank), Some(ranks)] = parts[..] else { return Err(wrong()) };
        match (u32::try_from(rank), u32::try_from(ranks)) {
            (Ok(rank), Ok(ranks)) if rank < ranks => Ok(Comm { handle, rank, ranks }),
            _ => Err(wrong()),
        }
    }

    /// Returns the bytes for each of `ranks` ranks. Field `field` has a list of counts, and field `datatype` the type of items.
    pub(super) fn list(&self, field: usize, datatype: usize, ranks: u32) -> Result<Vec<u64>, Fault> {
        let each = self.datatype(datatype)?;
        let found: Option<Vec<u64>> =
            self.parts(field).into_iter().map(|count| count?.checked_mul(each)).collect();
        let wrong = || self.fault(field, &format!("a list of {ranks} numbers"));
        found.filter(|found| found.len() == ranks as usize).ok_or_else(wrong)
    }

    fn parts(&self, field: usize) -> Vec<Option<u64>> {
        self.text(field).split(|byte| *byte == b',').map(digits_of).collect()
    }
}

/// Reads a number that consists only of digits.
fn digits_of(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}
