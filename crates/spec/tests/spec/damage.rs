//! Tests that reading any file returns a listing or an error, and never panics.

use crate::card::{self, CARDS};

use nicety_spec::SHIPPED;
use proptest::prelude::*;

/// Reads and prints a spec. The test fails if this panics.
fn survives(text: &str, overrides: &[(&str, &str)]) {
    match card::read_text(text, overrides) {
        Ok(listing) => assert!(!listing.to_string().is_empty()),
        Err(errors) => assert!(errors.to_string().starts_with("error: ")),
    }
}

/// Fragments of specs.
const PIECES: [&str; 24] = [
    "[bus]\n",
    "[hpu.cycles]\n",
    "[[bus]]\n",
    "latency",
    " = ",
    "\"250 ns\"",
    "{ value = ",
    " }",
    ", kind = \"measured\"",
    ", source = \"\"",
    "gap",
    "'1/0 ps/B'",
    "\n",
    "extends = 'discrete'\n",
    "design = 'portals'\n",
    "cores",
    "99999999999999999999",
    "-1",
    "nan",
    "1979-05-27",
    "[",
    "\"\"\"",
    "\u{b5}",
    "value.value",
];

#[test]
fn a_long_file_is_refused_in_time() {
    let keys: String = (0..20_000).map(|n| format!("[wombat{n}]\nkey{n} = {n}\n")).collect();
    let errors = card::read_text(&format!("extends = 'discrete'\n{keys}"), &[]).unwrap_err();
    assert_eq!(errors.iter().count(), 100);
}

/// Returns the number of random cases: `usual`, or more if `PROPTEST_CASES` asks for a long run.
fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    // The default is `PROPTEST_CASES`, or 256 without it.
    ProptestConfig { cases: usual.max(default.cases), ..default }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn any_text(text in "(?s).{0,200}") {
        survives(&text, &[]);
    }

    #[test]
    fn any_text_after_a_good_beginning(text in "(?s).{0,100}") {
        survives(&format!("extends = 'discrete'\n{text}"), &[]);
    }

    #[test]
    fn any_pieces(pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..30)) {
        survives(&pieces.concat(), &[]);
    }

    #[test]
    fn any_override(key in "\\PC{0,20}|hpu\\.[a-z.]{0,8}|bus\\.latency|hpu\\.cores|host\\.clock", value in "\\PC{0,20}|[0-9./]{0,30} ?[a-zA-Z/]{0,5}") {
        survives("extends = 'discrete'\n", &[(&key, &value)]);
    }

    #[test]
    fn a_damaged_spec(
        which in 0..4usize,
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0..6usize, "\\PC{0,3}|[\"'{}=\\[\\]\n]"), 1..5),
    ) {
        let library = if which < 2 { CARDS } else { SHIPPED };
        let name = library.names().nth(which % 2).unwrap();
        let mut text: Vec<char> = library.get(name).unwrap().chars().collect();
        for (at, take, put) in cuts {
            let at = at.index(text.len());
            let end = (at + take).min(text.len());
            text.splice(at..end, put.chars());
        }
        survives(&text.into_iter().collect::<String>(), &[]);
    }
}
