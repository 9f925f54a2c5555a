//! Reads the text format.
//!
//! In addition to the grammar, the reader accepts indentation, empty lines, and a brace on a line of its own. It reports errors
//! that LogGOPSim's reader ignores: a missing rank, two operations with the same label, and an unknown label.

use super::labels::Labels as Table;
use super::lines::{LONGEST, Line, Lines};
use super::scan::{Fault, Scan, Scanned};
use crate::error::{Place, ReadError};
use crate::schedule::{Builder, Kind, MOST_OPERATIONS, Op, Schedule};
use std::io::{self, Read};

/// The treatment of a label that two operations of a rank have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Labels {
    /// A repeated label is an error.
    #[default]
    Unique,
    /// The label names the later operation, as in LogGOPSim.
    LastWins,
}

/// Number of lines between two calls of `go_on`.
const LOOK_EVERY: u64 = 1 << 16;

/// The next element that the reader expects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ranks,
    Block,
    Brace,
    Statements,
}

struct Reader {
    labels: Labels,
    table: Table,
    state: State,
    ranks: u32,
    builder: Builder,
    line: u64,
    /// The line number of the open brace or comment.
    opened: u64,
}

/// Reads a schedule. `go_on` is called regularly with the number of lines read; if it returns false, reading ends.
///
/// # Errors
/// When the text is not GOAL, a peer is not below the number of ranks, the source cannot be read, or `go_on` returned false.
pub fn read(
    source: impl Read,
    labels: Labels,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Schedule, ReadError> {
    let mut lines = Lines::new(source);
    let mut reader = Reader {
        labels,
        table: Table::new(),
        state: State::Ranks,
        ranks: 0,
        builder: Builder::new(),
        line: 0,
        opened: 0,
    };
    let mut in_comment = false;
    let mut comment_line = 0;
    loop {
        reader.line += 1;
        if reader.line.is_multiple_of(LOOK_EVERY) && !go_on(reader.line) {
            return Err(ReadError { interrupted: true, ..reader.error(0, "interrupted") });
        }
        let (from, to) = match lines.next().map_err(|error| reader.unreadable(&error))? {
            Line::At(from, to) => (from, to),
            Line::TooLong => return Err(reader.error(0, format!("a line is at most {LONGEST} bytes long"))),
            Line::End => break,
        };
        let mut scan = Scan::new(lines.line(from, to));
        if in_comment && scan.skip_comment() {
            continue;
        }
        match reader.line(&mut scan) {
            Ok(open) => {
                in_comment = open;
                comment_line = reader.line;
            }
            Err(Fault { at, text }) => return Err(reader.error(at, text)),
        }
    }
    if in_comment {
        return Err(reader.error(0, format!("the comment of line {comment_line} does not end")));
    }
    reader.finish()
}

impl Reader {
    #[cold]
    fn error(&self, at: usize, text: impl Into<String>) -> ReadError {
        let rank =
            matches!(self.state, State::Brace | State::Statements).then(|| self.builder.ranks() as u32);
        ReadError::new(Place::Text { line: self.line, column: at + 1 }, rank, text)
    }

    #[cold]
    fn unreadable(&self, error: &io::Error) -> ReadError {
        self.error(0, format!("cannot read on ({error})"))
    }

    /// Reads a line. Returns whether a comment continues after it.
    fn line(&mut self, scan: &mut Scan<'_>) -> Scanned<bool> {
        loop {
            if scan.skip() {
                return Ok(true);
            }
            let Some(next) = scan.peek() else { return Ok(false) };
            match self.state {
                State::Statements if next == b'}' => {
                    scan.at += 1;
                    self.builder.end_rank();
                    self.table.clear();
                    self.state = State::Block;
                }
                State::Statements => {
                    self.statement(scan)?;
                    if scan.skip() {
                        return Ok(true);
                    }
                    if !matches!(scan.peek(), None | Some(b'}')) {
                        return scan.expected("the end of the statement");
                    }
                }
                State::Brace if next == b'{' => {
                    scan.at += 1;
                    self.state = State::Statements;
                }
                State::Brace => return scan.expected("{"),
                State::Block => self.block(scan)?,
                State::Ranks => self.head(scan)?,
            }
        }
    }

    fn head(&mut self, scan: &mut Scan<'_>) -> Scanned<()> {
        let at = scan.at;
        if scan.word() != Some(b"num_ranks") {
            scan.at = at;
            return scan.expected("num_ranks with the number of ranks");
        }
        scan.skip();
        let at = scan.at;
        self.ranks = scan.number("the number of ranks", u64::from(u32::MAX) - 1)? as u32;
        if self.ranks == 0 {
            return scan.fault(at, "a schedule has at least one rank");
        }
        self.state = State::Block;
        Ok(())
    }

    fn block(&mut self, scan: &mut Scan<'_>) -> Scanned<()> {
        let at = scan.at;
        let next = self.builder.ranks() as u32;
        if next == self.ranks {
            return scan.expected(&format!("the end of the file after rank {}, the last one,", next - 1));
        }
        if scan.word() != Some(b"rank") {
            scan.at = at;
            return scan.expected(&format!("rank {next} {{"));
        }
        scan.skip();
        let at = scan.at;
        let rank = scan.number("a rank", u64::from(u32::MAX))?;
        if rank != u64::from(next) {
            return scan.fault(at, format!("the next rank is {next}, not {rank}: ranks come in order"));
        }
        self.state = State::Brace;
        self.opened = self.line;
        Ok(())
    }

    fn statement(&mut self, scan: &mut Scan<'_>) -> Scanned<()> {
        let at = scan.at;
        let Some(first) = scan.word() else {
            return scan.expected("a statement: send, recv, calc, or a label");
        };
        scan.skip();
        if scan.peek() == Some(b':') {
            scan.at += 1;
            scan.skip();
            let at_kind = scan.at;
            let kind = scan.word();
            let Some(op) = self.operation(kind, scan)? else {
                scan.at = at_kind;
                return scan.expected("send, recv or calc");
            };
            return self.label(first, op, at, scan);
        }
        // A label may also be a keyword of the language.
        let at_next = scan.at;
        let is_dependency = matches!(scan.word(), Some(b"requires" | b"irequires"));
        scan.at = at_next;
        if !is_dependency && self.operation(Some(first), scan)?.is_some() {
            return Ok(());
        }
        self.dependency(first, at, scan)
    }

    fn label(&mut self, label: &[u8], op: u32, at: usize, scan: &Scan<'_>) -> Scanned<()> {
        match self.table.insert(label, op) {
            Some(Some(before)) if self.labels == Labels::Unique => {
                let line = self.builder.line_of(before);
                let name = label.escape_ascii();
                scan.fault(at, format!("label {name} already belongs to the operation in line {line}"))
            }
            Some(_) => Ok(()),
            None => scan.fault(at, "the labels of this rank are longer than 4 GiB in total"),
        }
    }

    fn dependency(&mut self, then: &[u8], at: usize, scan: &mut Scan<'_>) -> Scanned<()> {
        let at_verb = scan.at;
        let on_start = match scan.word() {
            Some(b"requires") => false,
            Some(b"irequires") => true,
            _ => {
                scan.at = at_verb;
                let label = then.escape_ascii();
                return scan.expected(&format!("requires, irequires or ':' after label {label}"));
            }
        };
        scan.skip();
        let at_first = scan.at;
        let Some(first) = scan.word() else { return scan.expected("a label") };
        let find = |label: &[u8], at: usize| match self.table.get(label) {
            Some(op) => Ok(op),
            None => {
                let label = label.escape_ascii();
                scan.fault(at, format!("no earlier operation of this rank has label {label}"))
            }
        };
        let (then, first) = (find(then, at)?, find(first, at_first)?);
        if self.builder.depend(first, then, on_start) {
            Ok(())
        } else {
            scan.fault(at, "too many dependencies: a rank has fewer than 2^31")
        }
    }

    /// Reads the rest of an operation, if its first word `kind` is a kind of operation.
    fn operation(&mut self, kind: Option<&[u8]>, scan: &mut Scan<'_>) -> Scanned<Option<u32>> {
        let kind = match kind {
            Some(b"send") => Kind::Send,
            Some(b"recv") => Kind::Recv,
            Some(b"calc") => Kind::Calc,
            _ => return Ok(None),
        };
        scan.skip();
        let what = if kind == Kind::Calc { "a time in ns" } else { "a number of bytes" };
        let mut op = Op::new(kind, scan.number(what, u64::MAX)?, 0, 0);
        scan.skip();
        if kind != Kind::Calc {
            op.peer = self.peer(kind, scan)?;
        }
        self.attributes(&mut op, scan)?;
        op.line = u32::try_from(self.line).unwrap_or(u32::MAX);
        match self.builder.push(op) {
            Some(number) => Ok(Some(number)),
            None => scan.fault(scan.at, format!("a rank has at most {MOST_OPERATIONS} operations")),
        }
    }

    /// Reads `b to 3` or `b from 3`, after the number of bytes.
    fn peer(&self, kind: Kind, scan: &mut Scan<'_>) -> Scanned<u32> {
        if scan.peek() != Some(b'b') {
            return scan.expected("b, for bytes,");
        }
        scan.at += 1;
        scan.skip();
        let (word, at) = (if kind == Kind::Send { "to" } else { "from" }, scan.at);
        if scan.word() != Some(word.as_bytes()) {
            scan.at = at;
            return scan.expected(word);
        }
        scan.skip();
        let at = scan.at;
        let peer = scan.number_or_any("a rank")?;
        if peer == crate::ANY && kind == Kind::Send {
            return scan.fault(at, "a send goes to one rank; only a receive may have rank -1 (any rank)");
        }
        if peer != crate::ANY && peer >= self.ranks {
            let last = self.ranks - 1;
            return scan.fault(at, format!("there is no rank {peer}; the last one is {last}"));
        }
        Ok(peer)
    }

    /// Reads attributes such as `tag 4 cpu 1 nic 0`. Each may be missing.
    fn attributes(&self, op: &mut Op, scan: &mut Scan<'_>) -> Scanned<()> {
        let mut given = 0;
        loop {
            scan.skip();
            let at = scan.at;
            let bit = match scan.word() {
                Some(b"tag") if op.kind != Kind::Calc => 1,
                Some(b"cpu") => 2,
                Some(b"nic") if op.kind != Kind::Calc => 4,
                _ => {
                    scan.at = at;
                    return Ok(());
                }
            };
            if given & bit != 0 {
                return scan.fault(at, "this attribute is given twice");
            }
            given |= bit;
            scan.skip();
            match bit {
                1 => op.tag = scan.number_or_any("a tag")?,
                2 => op.cpu = scan.number("the number of a CPU", 255)? as u8,
                _ => op.nic = scan.number("the number of an interface", 255)? as u8,
            }
        }
    }

    fn finish(self) -> Result<Schedule, ReadError> {
        let next = self.builder.ranks() as u32;
        match self.state {
            State::Ranks => Err(self.error(0, "the file has no schedule; a schedule begins with num_ranks")),
            State::Brace | State::Statements => {
                Err(self.error(0, format!("the file ends inside the block that line {} begins", self.opened)))
            }
            State::Block if next < self.ranks => {
                Err(self.error(0, format!("rank {next} is missing: num_ranks is {}", self.ranks)))
            }
            State::Block => Ok(self.builder.finish()),
        }
    }
}
