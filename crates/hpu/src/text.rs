//! Untrusted text: names from files, and lines that handlers print. A terminal shows it without interpreting it.

use std::borrow::Cow;
use std::fmt::Write;

/// Characters that a terminal would interpret, or that change the display order of others. They are control characters
/// (C0, DEL, C1), separators of lines and paragraphs, and Unicode's bidirectional formatting.
pub const fn acts(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Returns one line of text with every such character as an escape, `\x1b` or `\u{202e}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// Like [`printable`], but keeps tabs.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\t' && acts(c))
}

fn escaped(text: &str, escape: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&escape) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match u32::from(c) {
            code @ 0..=0xff if escape(c) => write!(out, "\\x{code:02x}").expect("a String takes all"),
            _ if escape(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("payload_handler"), "payload_handler");
        assert_eq!(printable("größer 你好 \u{1f980}"), "größer 你好 \u{1f980}");
        assert_eq!(printable("\x1b[31mred\x07\r\n\t\x7f"), "\\x1b[31mred\\x07\\x0d\\x0a\\x09\\x7f");
        assert_eq!(printable("\u{9b}31m\u{85}"), "\\x9b31m\\x85");
        assert_eq!(
            printable("a\u{202e}b\u{2066}\u{200f}\u{61c}\u{2028}"),
            "a\\u{202e}b\\u{2066}\\u{200f}\\u{61c}\\u{2028}"
        );
        assert_eq!(printable_line("a\tb\x1b"), "a\tb\\x1b");
    }

    proptest! {
        #[test]
        fn printable_text_has_no_control_characters(text: String) {
            let shown = printable(&text);
            prop_assert!(!shown.chars().any(|c| acts(c) || c.is_control()));
            prop_assert_eq!(matches!(shown, Cow::Borrowed(_)), !text.chars().any(acts));
        }
    }
}
