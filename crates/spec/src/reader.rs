//! The reader of a spec. Each part of a card reads its own section, and need not handle an error for each value.

use crate::document::{Entry, Origin, Raw, locate};
use crate::error::{SpecError, SpecErrors};
use crate::listing::{Kind, Listing, Parameter, hash};
use crate::ratio::Ratio;
use crate::spec::Spec;
use crate::suggest::{any_of, nearest};
use crate::units::{self, Quantity, UnitError};
use nicety_types::{Duration, Frequency, Gap};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The longest time in a spec. No action of a card takes longer, and sums of times must stay far below 2^64 ps.
const MAX_TIME: Duration = Duration::from_us(3_600_000_000);

/// Reads the sections of a spec. It records the keys that were read and the errors, and reports all errors at the end.
#[derive(Debug)]
pub struct Reader<'s> {
    spec: &'s Spec,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Maps the path of each key that was read to its quantity.
    asked: BTreeMap<String, Quantity>,
    /// The paths of all sections that were read, and of their outer sections.
    sections: Vec<String>,
    /// The paths of the missing required keys.
    missing: Vec<String>,
    parameters: Vec<Parameter>,
    /// The paths of keys with an unreadable value.
    unread: BTreeSet<String>,
    errors: Vec<SpecError>,
}

/// The place where a spec's value was changed, in order of increasing precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A file that extends the spec.
    File,
    /// An override.
    Override,
}

/// A section of a spec. For a missing or wrong value, a reading function returns a substitute, and [`Reader::finish`]
/// fails. The substitute is the value that the wrong value replaces, or else a harmless value, such as the lowest
/// allowed value.
#[derive(Clone, Debug)]
pub struct Section<'r> {
    reader: &'r Reader<'r>,
    path: String,
}

/// A possible correction of contradictory values: a key, and a value that agrees with the other keys.
#[derive(Clone, Debug)]
pub struct Remedy<'r> {
    /// The section of the key.
    pub section: &'r Section<'r>,
    /// The key.
    pub key: &'r str,
    /// The value, as a spec writes it without quotes.
    pub value: String,
}

/// A parsed value, and its text in the base unit and in lowest terms.
type Parsed<T> = Result<(T, String), UnitError>;

impl Spec {
    /// Returns a reader of the spec's values.
    pub fn reader(&self) -> Reader<'_> {
        Reader { spec: self, state: RefCell::default() }
    }
}

impl<'s> Reader<'s> {
    /// Returns the section `[path]`. The path of a nested section is dotted, such as `hpu.cycles`.
    pub fn section(&self, path: &str) -> Section<'_> {
        let mut state = self.state.borrow_mut();
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            if !state.sections.iter().any(|known| known == &path[..end]) {
                state.sections.push(path[..end].to_owned());
            }
        }
        Section { reader: self, path: path.to_owned() }
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// All errors: wrong values, missing keys, and unknown keys and sections.
    pub fn finish(self) -> Result<Listing, SpecErrors> {
        let (spec, mut state) = (self.spec, self.state.into_inner());
        state.errors.extend(spec.errors.iter().cloned());
        crate::unknown::report(spec, &state.asked, &state.sections, &mut state.missing, &mut state.errors);
        report_missing(spec, &state.asked, &state.missing, &mut state.errors);
        if !state.errors.is_empty() {
            return Err(SpecErrors::new(state.errors));
        }
        Ok(Listing {
            name: spec.name.clone(),
            title: spec.title.clone(),
            design: spec.design().to_owned(),
            paper: spec.paper.clone(),
            source: spec.source.clone(),
            extends: spec.extends.clone(),
            overrides: spec.overrides.clone(),
            hash: hash(spec.design(), &state.parameters),
            parameters: state.parameters,
        })
    }
}

impl<'r> Section<'r> {
    /// The section's path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the section `[path.name]`.
    pub fn section(&self, name: &str) -> Section<'r> {
        self.reader.section(&format!("{}.{name}", self.path))
    }

    /// Whether the spec has a value for `key`. This call does not count as reading the key.
    pub fn has(&self, key: &str) -> bool {
        self.reader.spec.values.contains_key(&self.full(key))
    }

    /// Reads a time of at most an hour, such as "250 ns".
    pub fn time(&self, key: &str, doc: &str) -> Duration {
        self.read(key, doc, Quantity::Time, None, None, time).unwrap_or(Duration::ZERO)
    }

    /// Reads an optional time. `default` has the form of a value in a spec.
    ///
    /// # Panics
    /// If the key does not allow the default. The other functions with `_or` panic in the same case.
    pub fn time_or(&self, key: &str, default: &str, doc: &str) -> Duration {
        self.read(key, doc, Quantity::Time, None, Some(default), time).unwrap_or(Duration::ZERO)
    }

    /// Reads the time per byte, such as "15.6 ps/B", or a bandwidth such as "400 Gb/s"; at most 1 ms per byte.
    pub fn gap(&self, key: &str, doc: &str) -> Gap {
        self.read(key, doc, Quantity::Gap, None, None, gap).unwrap_or(Gap::ZERO)
    }

    /// Reads an optional gap.
    pub fn gap_or(&self, key: &str, default: &str, doc: &str) -> Gap {
        self.read(key, doc, Quantity::Gap, None, Some(default), gap).unwrap_or(Gap::ZERO)
    }

    /// Reads a clock frequency such as "2.5 GHz".
    pub fn frequency(&self, key: &str, doc: &str) -> Frequency {
        self.read(key, doc, Quantity::Frequency, None, None, frequency).unwrap_or(HARMLESS_CLOCK)
    }

    /// Reads an optional frequency.
    pub fn frequency_or(&self, key: &str, default: &str, doc: &str) -> Frequency {
        self.read(key, doc, Quantity::Frequency, None, Some(default), frequency).unwrap_or(HARMLESS_CLOCK)
    }

    /// Reads a size in bytes such as "4 KiB", within `range`.
    pub fn size(&self, key: &str, range: RangeInclusive<u64>, doc: &str) -> u64 {
        self.size_with(key, range, None, doc)
    }

    /// Reads an optional size.
    pub fn size_or(&self, key: &str, range: RangeInclusive<u64>, default: &str, doc: &str) -> u64 {
        self.size_with(key, range, Some(default), doc)
    }

    fn size_with(&self, key: &str, range: RangeInclusive<u64>, default: Option<&str>, doc: &str) -> u64 {
        let allowed =
            format!("from {} to {}", units::print_size(*range.start()), units::print_size(*range.end()));
        // The suggested size is in the allowed range.
        let clamped = |bytes: u64| units::print_size(bytes.clamp(*range.start(), *range.end()));
        let parse = |raw: &Raw| {
            let bytes = units::parse_size(&unit_text(raw, Quantity::Size)?).map_err(|error| {
                let meant = error.suggestion.as_deref().and_then(|text| units::parse_size(text).ok());
                match meant.filter(|bytes| !range.contains(bytes)) {
                    Some(bytes) => UnitError { suggestion: Some(clamped(bytes)), ..error },
                    None => error,
                }
            })?;
            within(bytes, &range, || format!("expected a size {allowed}"))?;
            Ok((bytes, format!("{bytes} B")))
        };
        self.read(key, doc, Quantity::Size, Some(&allowed), default, parse).unwrap_or(*range.start())
    }

    /// Reads a whole number within `range`.
    pub fn count(&self, key: &str, range: RangeInclusive<u64>, doc: &str) -> u64 {
        self.count_with(key, range, None, doc)
    }

    /// Reads an optional whole number.
    pub fn count_or(&self, key: &str, range: RangeInclusive<u64>, default: u64, doc: &str) -> u64 {
        self.count_with(key, range, Some(&default.to_string()), doc)
    }

    fn count_with(&self, key: &str, range: RangeInclusive<u64>, default: Option<&str>, doc: &str) -> u64 {
        let allowed = format!("from {} to {}", range.start(), range.end());
        let parse = |raw: &Raw| {
            let text = raw.text();
            let digits = text.parse::<u64>().ok();
            // A number with a prefix such as "4Ki" is in quotes, and plain digits are not.
            let prefixed = match raw {
                Raw::Text(_) | Raw::Loose(_) if digits.is_none() => units::parse_count(&text).ok(),
                _ => None,
            };
            let inside = |n: &u64| range.contains(n);
            match (prefixed.filter(inside), digits.filter(inside), raw) {
                (Some(n), ..) | (None, Some(n), Raw::Number(_) | Raw::Loose(_)) => Ok((n, n.to_string())),
                // The number is wrongly in quotes. The suggestion is the number without quotes.
                (_, meant, _) => {
                    let message = format!("expected a whole number {allowed}");
                    let suggestion = meant.filter(|_| matches!(raw, Raw::Text(_))).map(|n| n.to_string());
                    Err(UnitError { message, suggestion })
                }
            }
        };
        self.read(key, doc, Quantity::Count, Some(&allowed), default, parse).unwrap_or(*range.start())
    }

    /// Reads a share or factor within `range`, such as `0.25` or "25 %".
    pub fn ratio(&self, key: &str, range: RangeInclusive<Ratio>, doc: &str) -> Ratio {
        self.ratio_with(key, range, None, doc)
    }

    /// Reads an optional ratio.
    pub fn ratio_or(&self, key: &str, range: RangeInclusive<Ratio>, default: &str, doc: &str) -> Ratio {
        self.ratio_with(key, range, Some(default), doc)
    }

    fn ratio_with(&self, key: &str, range: RangeInclusive<Ratio>, default: Option<&str>, doc: &str) -> Ratio {
        let allowed = format!("from {} to {}", range.start(), range.end());
        let expected = || format!("expected a ratio {allowed}");
        let parse = |raw: &Raw| match raw {
            Raw::Number(text) | Raw::Text(text) | Raw::Loose(text) => {
                let ratio = Ratio::parse(text).map_err(|_| refusal(expected()))?;
                within(ratio, &range, expected)?;
                Ok((ratio, format!("{}/{}", ratio.numerator(), ratio.denominator())))
            }
            _ => Err(refusal(expected())),
        };
        self.read(key, doc, Quantity::Ratio, Some(&allowed), default, parse).unwrap_or(*range.start())
    }

    /// Reads one of `words`, at least one.
    pub fn choice(&self, key: &str, words: &[&'static str], doc: &str) -> &'static str {
        self.choice_with(key, words, None, doc)
    }

    /// Reads an optional choice.
    pub fn choice_or(&self, key: &str, words: &[&'static str], default: &str, doc: &str) -> &'static str {
        self.choice_with(key, words, Some(default), doc)
    }

    fn choice_with(
        &self,
        key: &str,
        words: &[&'static str],
        default: Option<&str>,
        doc: &str,
    ) -> &'static str {
        let allowed = any_of(words);
        let parse = |raw: &Raw| {
            let text = raw.text();
            match words.iter().find(|word| **word == text) {
                Some(word) if matches!(raw, Raw::Text(_) | Raw::Loose(_)) => Ok((*word, (*word).to_owned())),
                _ => {
                    let suggestion = nearest(&text, words.iter().copied()).unwrap_or(words[0]).to_owned();
                    Err(UnitError { message: format!("expected {allowed}"), suggestion: Some(suggestion) })
                }
            }
        };
        self.read(key, doc, Quantity::Choice, Some(&allowed), default, parse).unwrap_or(words[0])
    }

    /// Reads a text.
    pub fn text(&self, key: &str, doc: &str) -> String {
        self.read(key, doc, Quantity::Text, None, None, text).unwrap_or_default()
    }

    /// Reads an optional text.
    pub fn text_or(&self, key: &str, default: &str, doc: &str) -> String {
        self.read(key, doc, Quantity::Text, None, Some(default), text).unwrap_or_default()
    }

    /// Reads `true` or `false`.
    pub fn flag(&self, key: &str, doc: &str) -> bool {
        self.read(key, doc, Quantity::Flag, None, None, flag).unwrap_or_default()
    }

    /// Reads an optional flag.
    pub fn flag_or(&self, key: &str, default: bool, doc: &str) -> bool {
        self.read(key, doc, Quantity::Flag, None, Some(&default.to_string()), flag).unwrap_or_default()
    }

    /// Refuses the value of `key` for a reason that only the caller knows, such as a conflict with another value.
    /// `help` suggests a correction. Does nothing for a missing or unreadable value, which has an error already.
    pub fn refuse(&self, key: &str, message: &str, help: &str) {
        let path = self.full(key);
        let state = self.reader.state.borrow();
        if state.unread.contains(&path) || state.missing.contains(&path) {
            return;
        }
        drop(state);
        let mut error = match self.reader.spec.values.get(&path) {
            Some(entry) => locate(SpecError::new(message), entry),
            None => SpecError::new(message),
        };
        error = error.about(path).help(help);
        self.reader.state.borrow_mut().errors.push(error);
    }

    /// Refuses contradictory values. The error is at the key of the remedy with the [`Change`] of highest precedence.
    /// If several remedies have the same precedence, the error is at the last one in the list. Without remedies, the
    /// error is at `key`, with `otherwise` as help.
    pub fn refuse_one(&self, message: &str, remedies: &[Remedy<'_>], key: &str, otherwise: &str) {
        match remedies.iter().max_by_key(|remedy| remedy.section.change(remedy.key)) {
            Some(Remedy { section, key, value }) => {
                section.refuse(key, message, &section.example(key, value));
            }
            None => self.refuse(key, message, otherwise),
        }
    }

    /// Returns a help text with `value` as an example for `key`. The example has the form of an option if an override
    /// set the key, or else the form of a line in a file.
    pub fn example(&self, key: &str, value: &str) -> String {
        let path = self.full(key);
        match self.reader.spec.values.get(&path).map(|entry| &entry.origin) {
            Some(Origin::Option(_)) => option_example(&path, value),
            _ if value.contains(' ') => format!("write for example \"{value}\""),
            _ => format!("write for example {value}"),
        }
    }

    /// Returns the place of the last change to `key`. A conflict is best corrected there.
    pub fn change(&self, key: &str) -> Option<Change> {
        let entry = self.reader.spec.values.get(&self.full(key))?;
        match entry.kind {
            Kind::Override => Some(Change::Override),
            _ => entry.replaces.as_ref().map(|_| Change::File),
        }
    }

    fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    /// Reads a value, and records the parameter or an error.
    fn read<T>(
        &self,
        key: &str,
        doc: &str,
        quantity: Quantity,
        allowed: Option<&str>,
        default: Option<&str>,
        parse: impl Fn(&Raw) -> Parsed<T>,
    ) -> Option<T> {
        let path = self.full(key);
        let spec = self.reader.spec;
        let mut state = self.reader.state.borrow_mut();
        let again = state.asked.insert(path.clone(), quantity).is_some();
        // A section with the name of the key is an error, so the default does not apply.
        let default = default.filter(|_| !spec.sections.contains_key(&path)).map(Entry::default_of);
        let Some(entry) = spec.values.get(&path).or(default.as_ref()) else {
            if !again {
                state.missing.push(path);
            }
            return None;
        };
        match parse(&entry.raw) {
            Ok((value, exact)) => {
                if !again {
                    let replaces = entry.replaces.as_ref();
                    state.parameters.push(Parameter {
                        section: self.path.clone(),
                        key: key.to_owned(),
                        value: entry.raw.text(),
                        exact,
                        quantity,
                        doc: doc.to_owned(),
                        allowed: allowed.map(str::to_owned),
                        kind: entry.kind,
                        source: entry.source.clone(),
                        note: entry.note.clone(),
                        against: entry.against.clone(),
                        place: entry.origin.place(),
                        replaces: replaces.map(|(raw, spec)| format!("{} ({spec})", raw.text())),
                    });
                }
                Some(value)
            }
            Err(error) => {
                assert!(entry.kind != Kind::Default, "the default of {path} is wrong: {error}");
                state.unread.insert(path.clone());
                if !again {
                    state.errors.push(refused(spec, path, key, entry, quantity, error));
                }
                let replaced = entry.replaces.as_ref().and_then(|(raw, _)| parse(raw).ok());
                replaced.map(|(value, _)| value)
            }
        }
    }
}

/// The substitute for a missing or wrong frequency.
const HARMLESS_CLOCK: Frequency = Frequency::from_hz(1_000_000_000);

fn refusal(message: String) -> UnitError {
    UnitError { message, suggestion: None }
}

fn within<T: PartialOrd>(
    value: T,
    range: &RangeInclusive<T>,
    message: impl Fn() -> String,
) -> Result<(), UnitError> {
    if range.contains(&value) { Ok(()) } else { Err(refusal(message())) }
}

/// Returns the text of a value that must have a unit.
fn unit_text(raw: &Raw, quantity: Quantity) -> Result<String, UnitError> {
    match raw {
        // The value may lack a unit. The unit parser refuses it with its own message.
        Raw::Text(text) | Raw::Loose(text) | Raw::Number(text) => Ok(text.clone()),
        _ => Err(refusal(format!("expected {} such as \"{}\"", quantity.article(), quantity.example()))),
    }
}

fn time(raw: &Raw) -> Parsed<Duration> {
    let time = units::parse_time(&unit_text(raw, Quantity::Time)?)?;
    within(time, &(Duration::ZERO..=MAX_TIME), || format!("{} is more than an hour", raw.text()))?;
    Ok((time, format!("{} ps", time.ps())))
}

fn gap(raw: &Raw) -> Parsed<Gap> {
    let (numerator, denominator) = units::gap_fraction(&unit_text(raw, Quantity::Gap)?)?;
    if numerator / denominator > 1_000_000_000 {
        return Err(refusal(format!("{} is more than 1 ms a byte", raw.text())));
    }
    Ok((Gap::new(numerator, denominator), format!("{numerator}/{denominator} ps/B")))
}

fn frequency(raw: &Raw) -> Parsed<Frequency> {
    let frequency = units::parse_frequency(&unit_text(raw, Quantity::Frequency)?)?;
    Ok((frequency, format!("{} Hz", frequency.hz())))
}

fn text(raw: &Raw) -> Parsed<String> {
    match raw {
        Raw::Text(text) | Raw::Loose(text) => Ok((text.clone(), text.clone())),
        Raw::Number(_) | Raw::Flag(_) => {
            Err(UnitError { message: "expected a text in quotes".to_owned(), suggestion: Some(raw.text()) })
        }
        Raw::Other(_) => Err(refusal("expected a text in quotes".to_owned())),
    }
}

fn flag(raw: &Raw) -> Parsed<bool> {
    let flag = match (raw, raw.text().as_str()) {
        (Raw::Flag(flag), _) => return Ok((*flag, flag.to_string())),
        (Raw::Loose(_), word @ ("true" | "false")) => word == "true",
        (_, word) => {
            let suggestion = Some(word.to_lowercase()).filter(|word| word == "true" || word == "false");
            return Err(UnitError { message: "expected true or false".to_owned(), suggestion });
        }
    };
    Ok((flag, flag.to_string()))
}

/// Formats a value as an option. The text has no spaces, so it needs no quotes in a shell.
fn option_example(path: &str, value: &str) -> String {
    format!("e.g. --set {path}={}", value.replace(' ', ""))
}

/// Makes the error for a wrong value.
fn refused(
    spec: &Spec,
    path: String,
    key: &str,
    entry: &Entry,
    quantity: Quantity,
    error: UnitError,
) -> SpecError {
    let precedent = spec.precedent(&path).map(|(raw, name)| (raw.text(), name));
    let known = precedent.as_ref().map(|(value, _)| value.clone());
    let value = error.suggestion.clone().or(known).unwrap_or_else(|| quantity.example().to_owned());
    let fault = locate(SpecError::new(error.message), entry).about(&*path);
    let wrapped = match entry.origin {
        Origin::Option(_) => return fault.help(option_example(&path, &value)),
        Origin::File { wrapped, .. } => wrapped,
        Origin::Default => false,
    };
    let shown = if quantity.is_quoted() { format!("\"{value}\"") } else { value.clone() };
    let key = if wrapped { "value" } else { key };
    match (error.suggestion, precedent) {
        (None, Some((_, name))) => fault.help(format!("write {key} = {shown}, as {name} has it")),
        (None, None) => fault.help(format!("write for example {key} = {shown}")),
        (Some(_), Some((other, name))) if other != value => {
            fault.help(format!("write {key} = {shown} ({name} has {other})"))
        }
        (Some(_), _) => fault.help(format!("write {key} = {shown}")),
    }
}

/// Reports missing required keys: one error per section, or one error if most of the spec is missing.
fn report_missing(
    spec: &Spec,
    asked: &BTreeMap<String, Quantity>,
    missing: &[String],
    errors: &mut Vec<SpecError>,
) {
    let mut by_section: BTreeMap<&str, Vec<(&str, &String)>> = BTreeMap::new();
    for path in missing {
        let (section, key) = path.rsplit_once('.').expect("a key stands in a section");
        by_section.entry(section).or_default().push((key, path));
    }
    let absent: Vec<_> =
        by_section.keys().copied().filter(|section| !spec.sections.contains_key(*section)).collect();
    let mut base = spec.possible_base().filter(|_| spec.extends.is_empty());
    if let Some(base) = base.take_if(|_| absent.len() > 3) {
        let message = format!("{} has no sections [{}]", spec.file, absent.join("], ["));
        let error = SpecError::new(message);
        errors.push(error.help(format!("begin with extends = \"{base}\", which has them all")));
        by_section.retain(|section, _| spec.sections.contains_key(*section));
    }
    for (section, keys) in by_section {
        let names: Vec<_> = keys.iter().map(|(key, _)| *key).collect();
        let mut error = match spec.sections.get(section) {
            Some(span) => SpecError::new(format!("missing {}", names.join(", "))).at(span).about(section),
            None => SpecError::new(format!("{} has no section [{section}]", spec.file)),
        };
        for (key, path) in keys {
            let quantity = asked[path];
            let (value, origin) = match spec.precedent(path) {
                Some((raw, name)) => (raw.text(), format!("as {name} has it")),
                None => (quantity.example().to_owned(), "for example".to_owned()),
            };
            let shown = if quantity.is_quoted() { format!("\"{value}\"") } else { value };
            error = error.help(format!("add to [{section}]: {key} = {shown}, {origin}"));
        }
        if let Some(base) = base.take() {
            error = error.help(format!("or begin with extends = \"{base}\""));
        }
        errors.push(error);
    }
}
