//! Finds the known name that is nearest to a misspelt name, for 'did you mean'.

/// Returns the name in `known` that is nearest to `name`, unless more than a third of the letters differ.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name far longer than any key has no near key, and the computation of the distance takes quadratic time.
    if name.len() > 100 {
        return None;
    }
    let tidy = |text: &str| text.to_lowercase().replace('-', "_");
    let name = tidy(name);
    // If two names have the same distance, the one with the longer common beginning is nearer: for `core`, `cores` and
    // not `code`.
    let apart = |candidate: &str| {
        let candidate = tidy(candidate);
        let alike = name.chars().zip(candidate.chars()).take_while(|(a, b)| a == b).count();
        (strsim::damerau_levenshtein(&name, &candidate), std::cmp::Reverse(alike))
    };
    known
        .into_iter()
        .map(|candidate| (apart(candidate), candidate))
        .filter(|((distance, _), candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Joins words for a sentence: `a, b or c`.
pub(crate) fn any_of<S: AsRef<str>>(words: &[S]) -> String {
    match words {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", first.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_meant() {
        let known = ["latency", "gap", "cores"];
        assert_eq!(nearest("latncy", known), Some("latency"));
        assert_eq!(nearest("Cores", known), Some("cores"));
        assert_eq!(nearest("gpa", known), Some("gap"));
        assert_eq!(nearest("core", ["code", "cores"]), Some("cores"));
        assert_eq!(nearest("bandwidth", known), None);
        assert_eq!(nearest(&"x".repeat(1_000), known), None);
        assert_eq!(nearest("memory-gap", ["memory_gap"]), Some("memory_gap"));
    }

    #[test]
    fn words_make_a_sentence() {
        assert_eq!(any_of::<&str>(&[]), "");
        assert_eq!(any_of(&["a"]), "a");
        assert_eq!(any_of(&["a", "b", "c"]), "a, b or c");
    }
}
