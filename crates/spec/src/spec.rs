//! A spec after its bases and overrides were applied, and before any part has read it.

use crate::document::{Document, Entry, META, Origin, Raw};
use crate::error::{Span, SpecError, SpecErrors};
use crate::library::Library;
use crate::listing::Kind;
use crate::suggest::{any_of, nearest};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The maximum length of a spec in bytes. A longer file is refused.
const MAX_BYTES: u64 = 1 << 20;

/// A card's specification. Bases and overrides are applied, but values are not yet parsed as quantities.
#[derive(Debug)]
pub struct Spec {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) paper: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) extends: Vec<String>,
    pub(crate) overrides: Vec<(String, String)>,
    pub(crate) values: BTreeMap<String, Entry>,
    /// Maps each section to the place of its last header.
    pub(crate) sections: BTreeMap<String, Span>,
    /// Errors that did not stop the parser. [`Reader::finish`](crate::Reader::finish) reports them together with all
    /// other errors.
    pub(crate) errors: Vec<SpecError>,
    /// The name of the user's file in messages.
    pub(crate) file: String,
    /// The shipped specs, from which suggestions take values and bases.
    library: Library,
    /// The spec's name in the library, or `None` for a user's file.
    shipped: Option<&'static str>,
    design: String,
    design_span: Span,
}

/// The next spec to read.
enum Target {
    Shipped(&'static str, &'static str),
    File(PathBuf),
}

impl Target {
    /// Returns a value that is the same for all paths to one spec.
    fn identity(&self) -> PathBuf {
        match self {
            Target::Shipped(name, _) => PathBuf::from(format!("shipped spec {name}")),
            Target::File(path) => path.canonicalize().unwrap_or_else(|_| path.clone()),
        }
    }
}

impl Spec {
    /// Reads a spec: a shipped name, or the path of a file (with a '/' or ending in `.toml`). `overrides` are pairs of
    /// a key and a value, which replace values of the spec. The last override of a key counts.
    ///
    /// # Errors
    /// No such spec, an unreadable file, a syntax error, a base that does not exist, bases that extend each other, or
    /// no design. [`Reader::finish`](crate::Reader::finish) reports the errors of values, all at once.
    pub fn load(name: &str, overrides: &[(String, String)], library: Library) -> Result<Spec, SpecErrors> {
        let target = if is_path(name) { Some(Target::File(name.into())) } else { shipped(name, library) };
        let Some(target) = target else {
            let mut error = no_such_spec(name, library);
            if Path::new(&format!("{name}.toml")).is_file() {
                error = error.help(format!("for the file here write ./{name}.toml"));
            }
            return Err(error.into());
        };
        let document = read(&target).map_err(SpecErrors::new)?;
        Spec::resolve(document, target, overrides, library)
    }

    /// Reads a spec from its text. `file` is its name in messages, and its bases are relative to it.
    ///
    /// # Errors
    /// Those of [`Spec::load`].
    pub fn from_text(
        file: &str,
        text: &str,
        overrides: &[(String, String)],
        library: Library,
    ) -> Result<Spec, SpecErrors> {
        let document = Document::parse(file, text).map_err(SpecErrors::new)?;
        Spec::resolve(document, Target::File(file.into()), overrides, library)
    }

    fn resolve(
        document: Document,
        target: Target,
        overrides: &[(String, String)],
        library: Library,
    ) -> Result<Spec, SpecErrors> {
        let shipped = match target {
            Target::Shipped(name, _) => Some(name),
            Target::File(_) => None,
        };
        let chain = follow(document, target, library).map_err(SpecErrors::new)?;
        let meta = |key: &str| chain.iter().find_map(|(_, document)| document.meta(key)).map(str::to_owned);
        let root = &chain[0].1;
        let Some(design_span) = chain.iter().find_map(|(_, document)| document.meta_span("design")).cloned()
        else {
            let start = Span { source: root.source.clone(), bytes: 0..0 };
            let mut error =
                SpecError::new("the design is missing; it names the parts of the card").at(&start);
            error = error.help("write at the top: design = \"portals\"");
            if let Some(name) = library.names().next() {
                error = error.help(format!("or begin with a card that exists: extends = \"{name}\""));
            }
            return Err(error.into());
        };
        let mut spec = Spec {
            name: chain[0].0.clone(),
            title: meta("title").unwrap_or_default(),
            paper: meta("paper"),
            source: meta("source"),
            extends: chain[1..].iter().map(|(name, _)| name.clone()).collect(),
            overrides: overrides.to_vec(),
            values: BTreeMap::new(),
            sections: BTreeMap::new(),
            errors: Vec::new(),
            file: root.source.file.clone(),
            library,
            shipped,
            design: meta("design").unwrap_or_default(),
            design_span,
        };
        let mut owners = BTreeMap::new();
        for (name, document) in chain.into_iter().rev() {
            for (path, entry) in document.entries {
                let owner = owners.insert(path.clone(), name.clone());
                spec.put(path, entry, owner);
            }
            spec.sections.extend(document.sections);
            spec.errors.extend(document.errors);
        }
        for (key, value) in overrides {
            spec.set(key, value, owners.get(key).cloned());
        }
        Ok(spec)
    }

    /// Returns the spec's name. For a shipped spec, it is the spec's own name. For a file, it is the file's key `name`,
    /// or else the name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the card, which may be empty.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the design's name, as written.
    pub fn design(&self) -> &str {
        &self.design
    }

    /// Returns the design's name, if it is one of `known`.
    ///
    /// # Errors
    /// If the spec names another design.
    pub fn design_among(&self, known: &[&'static str]) -> Result<&'static str, SpecErrors> {
        if let Some(design) = known.iter().find(|name| **name == self.design) {
            return Ok(design);
        }
        let help = match nearest(&self.design, known.iter().copied()) {
            Some(meant) => format!("did you mean design = \"{meant}\"?"),
            None => format!("a design is {}", any_of(known)),
        };
        let error = SpecError::new(format!("there is no design \"{}\"", self.design)).at(&self.design_span);
        Err(error.about("design").help(help).into())
    }

    /// Returns another spec's value of a key, and the name of that spec. It is the base of this spec, or else a shipped
    /// spec with this key.
    pub(crate) fn precedent(&self, path: &str) -> Option<(Raw, String)> {
        if let Some(Entry { replaces: Some(replaced), .. }) = self.values.get(path) {
            return Some(replaced.clone());
        }
        let others = self.library.names().filter(|name| Some(*name) != self.shipped);
        let mut documents =
            others.filter_map(|name| Some((name, builtin(name, self.library.get(name)?).ok()?)));
        documents.find_map(|(name, document)| {
            let (_, entry) = document.entries.into_iter().find(|(key, _)| key == path)?;
            Some((entry.raw, name.to_owned()))
        })
    }

    /// Returns the name of a shipped spec of the same design, as a possible base.
    pub(crate) fn possible_base(&self) -> Option<&'static str> {
        let same_design = |name: &&'static str| {
            let document = self.library.get(name).and_then(|text| builtin(name, text).ok());
            document.is_some_and(|document| document.meta("design") == Some(&self.design))
        };
        self.library.names().filter(|name| Some(*name) != self.shipped).find(same_design)
    }

    fn put(&mut self, path: String, mut entry: Entry, owner: Option<String>) {
        if let (Some(replaced), Some(owner)) = (self.values.get(&path), owner) {
            entry.replaces = Some((replaced.raw.clone(), owner));
        }
        self.values.insert(path, entry);
    }

    fn set(&mut self, key: &str, value: &str, owner: Option<String>) {
        let option = format!("--set {key}={value}");
        if META.contains(&key) {
            let mut error = SpecError::new(format!("{key} identifies the spec and cannot be overridden"));
            error.option = Some(option);
            self.errors.push(error);
            return;
        }
        let raw = Raw::Loose(value.to_owned());
        let entry = Entry::plain(raw, Kind::Override, option.clone(), Origin::Option(option));
        // The last override of a key counts. Its `replaces` names the file's value, not the earlier override.
        match self.values.get_mut(key) {
            Some(earlier) if earlier.kind == Kind::Override => {
                *earlier = Entry { replaces: earlier.replaces.take(), ..entry };
            }
            _ => self.put(key.to_owned(), entry, owner),
        }
    }
}

/// Splits `KEY=VALUE`, the argument of `--set`.
///
/// # Errors
/// If there is no `=`, or no key before it.
pub fn parse_override(text: &str) -> Result<(String, String), SpecErrors> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => {
            let mut error = SpecError::new("expected KEY=VALUE").help("e.g. --set hpu.cores=8");
            error.option = Some(format!("--set {text}"));
            Err(error.into())
        }
    }
}

fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains(['/', std::path::MAIN_SEPARATOR])
}

fn shipped(name: &str, library: Library) -> Option<Target> {
    let known = library.names().find(|known| *known == name)?;
    Some(Target::Shipped(known, library.get(known)?))
}

fn builtin(name: &str, text: &str) -> Result<Document, Vec<SpecError>> {
    Document::parse(&format!("specs/{name}.toml"), text)
}

fn no_such_spec(name: &str, library: Library) -> SpecError {
    let error = SpecError::new(format!("there is no card spec \"{name}\""));
    let names: Vec<_> = library.names().collect();
    match nearest(name, names.iter().copied()) {
        Some(meant) => error.help(format!("did you mean {meant}?")),
        None => {
            let own = if name.contains(char::is_alphanumeric) { name } else { "mine" };
            error.help(format!("write {}, or the path of your own file, ./{own}.toml", any_of(&names)))
        }
    }
}

/// Reads one file, or parses one shipped spec.
fn read(target: &Target) -> Result<Document, Vec<SpecError>> {
    let path = match target {
        Target::Shipped(name, text) => return builtin(name, text),
        Target::File(path) => path,
    };
    let name = path.display().to_string();
    let cannot = |why: String| vec![SpecError::new(format!("cannot read {name}: {why}"))];
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| cannot(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(cannot("it is longer than 1 MiB, so it is no spec".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text".to_owned()))?;
    Document::parse(&name, &text)
}

/// Returns the name of a spec.
fn name_of(document: &Document, target: &Target) -> String {
    match (target, document.meta("name")) {
        (Target::Shipped(name, _), _) => (*name).to_owned(),
        (Target::File(_), Some(name)) => name.to_owned(),
        (Target::File(path), None) => {
            path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
        }
    }
}

/// Returns the spec and its bases, nearest first.
fn follow(
    document: Document,
    target: Target,
    library: Library,
) -> Result<Vec<(String, Document)>, Vec<SpecError>> {
    let (mut document, mut target) = (document, target);
    let mut chain = Vec::new();
    let mut seen = Vec::new();
    loop {
        seen.push(target.identity());
        let name = name_of(&document, &target);
        let base = document.meta("extends").map(str::to_owned);
        let span = document.meta_span("extends").cloned();
        chain.push((name, document));
        let (Some(base), Some(span)) = (base, span) else { return Ok(chain) };
        let refuse = |error: SpecError| {
            // An error in a spec that was already read may be the cause, so these errors are reported too.
            let others = chain.iter().flat_map(|(_, document)| document.errors.iter().cloned());
            std::iter::once(error.at(&span).about("extends")).chain(others).collect::<Vec<_>>()
        };
        target = match (&target, is_path(&base)) {
            (Target::Shipped(..), true) => {
                return Err(refuse(SpecError::new("a shipped spec extends shipped specs only")));
            }
            (Target::File(path), true) => Target::File(path.parent().unwrap_or(Path::new("")).join(&base)),
            (_, false) => shipped(&base, library).ok_or_else(|| refuse(no_such_spec(&base, library)))?,
        };
        if let Some(first) = seen.iter().position(|spec| *spec == target.identity()) {
            let circle: Vec<_> = chain[first..].iter().map(|(_, document)| &*document.source.file).collect();
            let message = format!("extends forms a cycle: {} -> {}", circle.join(" -> "), circle[0]);
            return Err(refuse(SpecError::new(message).help("remove one extends of the cycle")));
        }
        document = read(&target).map_err(|mut errors| {
            if let [SpecError { place: place @ None, key, .. }] = &mut errors[..] {
                (*place, *key) = (Some(span.place()), Some("extends".to_owned()));
            }
            errors
        })?;
    }
}
