//! A parsed TOML file: parameters with their provenance and their places. Bases and overrides are not applied here.

use crate::error::{Source, Span, SpecError};
use crate::listing::Kind;
use crate::suggest::nearest;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The keys before the first section. They describe the spec, not the card.
pub(crate) const META: [&str; 6] = ["name", "title", "design", "extends", "paper", "source"];

/// The keys of a table that gives a value with its provenance.
const PROVENANCE: [&str; 5] = ["value", "kind", "source", "note", "against"];

/// A value as written, before it is parsed as a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    /// A string in quotes.
    Text(String),
    /// A number without quotes, as its digits.
    Number(String),
    Flag(bool),
    /// The name of a type that no parameter has, such as an array or a date.
    Other(&'static str),
    /// The text of an override. It has no quotes, so its type is unknown.
    Loose(String),
}

impl Raw {
    /// Returns the value without quotes.
    pub(crate) fn text(&self) -> String {
        match self {
            Raw::Text(text) | Raw::Number(text) | Raw::Loose(text) => text.trim().to_owned(),
            Raw::Flag(flag) => flag.to_string(),
            Raw::Other(what) => (*what).to_owned(),
        }
    }
}

/// Where a value was written.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    File {
        key: Span,
        value: Span,
        /// Whether the value has a table with its provenance.
        wrapped: bool,
    },
    /// `--set KEY=VALUE`, as written.
    Option(String),
    /// The default of the part that reads the key.
    Default,
}

impl Origin {
    /// Returns the place in the form of a listing.
    pub(crate) fn place(&self) -> String {
        match self {
            Origin::File { value, .. } => value.line(),
            Origin::Option(option) => option.clone(),
            Origin::Default => String::new(),
        }
    }
}

/// A parameter's value with its provenance and place.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) raw: Raw,
    pub(crate) kind: Kind,
    pub(crate) source: String,
    pub(crate) note: Option<String>,
    pub(crate) against: Option<String>,
    pub(crate) origin: Origin,
    /// The value that this one replaces, and the name of the spec with that value.
    pub(crate) replaces: Option<(Raw, String)>,
}

impl Entry {
    /// Returns the entry of a value without a table of provenance.
    pub(crate) fn plain(raw: Raw, kind: Kind, source: String, origin: Origin) -> Entry {
        Entry { raw, kind, source, note: None, against: None, origin, replaces: None }
    }

    /// Returns the entry for the default of an optional key.
    pub(crate) fn default_of(written: &str) -> Entry {
        let source = "the default of the part that reads it".to_owned();
        Entry::plain(Raw::Loose(written.to_owned()), Kind::Default, source, Origin::Default)
    }
}

/// The contents of a file, in the order of the file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) source: Arc<Source>,
    pub(crate) meta: Vec<(&'static str, String, Span)>,
    pub(crate) entries: Vec<(String, Entry)>,
    pub(crate) sections: Vec<(String, Span)>,
    /// Errors that do not stop the parser.
    pub(crate) errors: Vec<SpecError>,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// All syntax errors of the file.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Document, Vec<SpecError>> {
        let source = Arc::new(Source::new(file, text));
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut document = Document {
            source,
            meta: Vec::new(),
            entries: Vec::new(),
            sections: Vec::new(),
            errors: Vec::new(),
        };
        if errors.is_empty() {
            document.top(table.get_ref());
            return Ok(document);
        }
        Err(errors.iter().map(|error| document.syntax(error)).collect())
    }

    pub(crate) fn meta(&self, key: &str) -> Option<&str> {
        self.meta.iter().find(|(name, ..)| *name == key).map(|(_, value, _)| value.as_str())
    }

    pub(crate) fn meta_span(&self, key: &str) -> Option<&Span> {
        self.meta.iter().find(|(name, ..)| *name == key).map(|(.., span)| span)
    }

    fn span(&self, bytes: Range<usize>) -> Span {
        Span { source: Arc::clone(&self.source), bytes }
    }

    fn syntax(&self, error: &toml::de::Error) -> SpecError {
        let message = error.message().trim().replace('\n', "; ");
        let at = error.span().unwrap_or(0..0);
        SpecError::new(format!("not valid TOML: {message}")).at(&self.span(at))
    }

    fn top(&mut self, table: &DeTable<'_>) {
        for (key, value) in in_order(table) {
            match META.iter().find(|meta| **meta == key.get_ref()) {
                Some(meta) => match value.get_ref() {
                    DeValue::String(text) => {
                        let span = self.span(value.span());
                        self.meta.push((meta, text.to_string(), span));
                    }
                    _ => {
                        let error = SpecError::new("expected a text in quotes").at(&self.span(value.span()));
                        self.errors.push(error.about(*meta));
                    }
                },
                None => self.item("", key, value),
            }
        }
    }

    /// Reads one item of a section: a parameter or a nested section.
    fn item(
        &mut self,
        section: &str,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let name = key.get_ref();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            let error = SpecError::new("a key has letters, digits, '_' and '-'").at(&self.span(key.span()));
            self.errors.push(error);
            return;
        }
        let path = if section.is_empty() { name.to_string() } else { format!("{section}.{name}") };
        let Some(table) = value.get_ref().as_table() else {
            let (key, value_span) = (self.span(key.span()), self.span(value.span()));
            let source = value_span.line();
            let origin = Origin::File { key, value: value_span, wrapped: false };
            let entry = Entry::plain(raw(value.get_ref()), Kind::User, source, origin);
            self.entries.push((path, entry));
            return;
        };
        if is_value(table) {
            self.value(path, key.span(), table);
            return;
        }
        self.sections.push((path.clone(), self.span(key.span())));
        for (key, value) in in_order(table) {
            self.item(&path, key, value);
        }
    }

    /// Reads a table that gives a value with its provenance.
    fn value(&mut self, path: String, key: Range<usize>, table: &DeTable<'_>) {
        let mut texts: [Option<String>; 5] = Default::default();
        let mut value = None;
        let before = self.errors.len();
        for (name, item) in in_order(table) {
            let span = self.span(item.span());
            match (PROVENANCE.iter().position(|word| word == name.get_ref()), item.get_ref()) {
                (Some(0), _) => value = Some((raw(item.get_ref()), span)),
                (Some(word), DeValue::String(text)) => texts[word] = Some(text.trim().to_owned()),
                (Some(_), _) => {
                    let error = SpecError::new(format!("{} is a text in quotes", name.get_ref())).at(&span);
                    self.errors.push(error.about(&*path));
                }
                (None, _) => {
                    let mut error = SpecError::new(format!("a value has no key {}", name.get_ref()));
                    if let Some(word) = nearest(name.get_ref(), PROVENANCE) {
                        error = error.help(format!("did you mean {word}?"));
                    }
                    self.errors.push(error.at(&self.span(name.span())).about(&*path));
                }
            }
        }
        let key = self.span(key);
        let Some((raw, span)) = value else {
            if self.errors.len() == before {
                let error = SpecError::new("has no value").at(&key).about(&*path);
                self.errors.push(error.help("write { value = ..., kind = \"...\", source = \"...\" }"));
            }
            return;
        };
        let [_, kind, source, note, against] = texts;
        let (kind, problem) = provenance(kind.as_deref(), source.as_deref(), against.as_deref());
        if self.errors.len() == before
            && let Some((message, help)) = problem
        {
            self.errors.push(SpecError::new(message).at(&key).about(&*path).help(help));
        }
        let source = source.unwrap_or_else(|| span.line());
        let origin = Origin::File { key, value: span, wrapped: true };
        self.entries.push((path, Entry { raw, kind, source, note, against, origin, replaces: None }));
    }
}

/// Returns the kind of a value. If the value's provenance is incomplete or wrong, also returns a message and a help
/// text.
fn provenance(
    kind: Option<&str>,
    source: Option<&str>,
    against: Option<&str>,
) -> (Kind, Option<(String, String)>) {
    let words: Vec<_> = Kind::WRITTEN.iter().map(|kind| kind.name()).collect();
    let Some(word) = kind else {
        let stray = against.map(|_| {
            let message = "against belongs to a calibrated value".to_owned();
            (message, "write kind = \"calibrated\", or leave against out".to_owned())
        });
        return (Kind::User, stray);
    };
    let Some(kind) = Kind::WRITTEN.into_iter().find(|kind| kind.name() == word) else {
        let message = format!("\"{word}\" is not a kind of value");
        let mut help = format!("a kind is one of {}", words.join(", "));
        if let Some(meant) = nearest(word, words.iter().copied()) {
            help = format!("write kind = \"{meant}\"");
        } else if word == Kind::User.name() {
            "leave kind out: a value without a kind is the user's own".clone_into(&mut help);
        }
        return (Kind::User, Some((message, help)));
    };
    let lacking = |text: Option<&str>| text.is_none_or(str::is_empty);
    let problem = if lacking(source) {
        let what = if kind == Kind::Assumed { "why this value" } else { "where it stands" };
        let message = format!("{} {word} value must name its source", kind.article());
        Some((message, format!("add source = \"{what}\"")))
    } else if kind == Kind::Calibrated && lacking(against) {
        let message = "a calibrated value must name its measurement".to_owned();
        Some((message, "add against = \"the measurement it was fitted to\"".to_owned()))
    } else if kind != Kind::Calibrated && against.is_some() {
        let message = "against belongs to a calibrated value".to_owned();
        Some((message, "write kind = \"calibrated\", or leave against out".to_owned()))
    } else {
        None
    };
    (kind, problem)
}

/// Whether a table is a value with provenance, and not a section. Such a table has the key `value`, or a misspelling of
/// this key.
fn is_value(table: &DeTable<'_>) -> bool {
    if let Some(value) = table.get("value") {
        return !value.get_ref().is_table();
    }
    let (known, others): (Vec<_>, Vec<_>) =
        table.keys().map(|key| key.get_ref().as_ref()).partition(|key| PROVENANCE.contains(key));
    !known.is_empty() && matches!(others[..], [other] if nearest(other, ["value"]).is_some())
}

/// Sorts items in the order of the file, for messages and listings. The parser returns them in the order of their keys.
fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut items: Vec<_> = table.iter().collect();
    items.sort_by_key(|(key, _)| key.span().start);
    items
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(n) => Raw::Number(
            // Converts a number of any radix to decimal digits.
            i128::from_str_radix(n.as_str(), n.radix()).map_or_else(|_| n.to_string(), |n| n.to_string()),
        ),
        DeValue::Float(x) => Raw::Number(x.as_str().to_owned()),
        DeValue::Boolean(flag) => Raw::Flag(*flag),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Array(_) => Raw::Other("an array"),
        DeValue::Table(_) => Raw::Other("a table"),
    }
}

/// Adds the place of a value to an error.
pub(crate) fn locate(mut error: SpecError, entry: &Entry) -> SpecError {
    match &entry.origin {
        Origin::File { value, .. } => error = error.at(value),
        Origin::Option(option) => error.option = Some(option.clone()),
        Origin::Default => {}
    }
    error
}
