//! Written code: instructions with their lines in the source, labels and directives.

use std::fmt::{Arguments, Write};

/// A file's number and a line.
pub(super) type Line = (usize, u32);

/// A row of the text.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub text: String,
    /// The line in the source.
    pub line: Option<Line>,
    /// Whether it is an instruction or a pseudo-instruction.
    pub is_instruction: bool,
    /// Whether its access to memory is none to the stack.
    pub is_far: bool,
}

/// Rows in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    pub rows: Vec<Row>,
    /// Instructions and pseudo-instructions.
    pub count: usize,
    /// The line of the instructions that follow.
    pub line: Option<Line>,
    /// Whether accesses that follow are none to the stack.
    pub is_far: bool,
}

impl Text {
    /// Writes an instruction.
    pub fn put(&mut self, text: Arguments<'_>) {
        let Text { line, is_far, .. } = *self;
        self.rows.push(Row { text: text.to_string(), line, is_instruction: true, is_far });
        self.count += 1;
    }

    /// Writes a label or a directive, with the space in front of it.
    pub fn put_other(&mut self, text: Arguments<'_>) {
        let text = text.to_string();
        self.rows.push(Row { text, line: None, is_instruction: false, is_far: false });
    }

    /// The text for the assembler.
    pub fn assembly(&self) -> String {
        let (mut out, mut shown) = (String::new(), None);
        for row in &self.rows {
            if !row.is_instruction {
                let _ = writeln!(out, "{}", row.text);
                continue;
            }
            if let Some((file, line)) = row.line.filter(|_| row.line != shown) {
                let _ = writeln!(out, "\t.loc {file} {line}");
                shown = row.line;
            }
            let _ = writeln!(out, "\t{}", row.text);
        }
        out
    }
}
