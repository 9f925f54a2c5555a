//! A listing of a spec: every parameter with its value, its meaning and its source.

use crate::units::Quantity;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;

/// The evidence for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The value was measured on the card.
    Measured,
    /// The source states the value.
    Documented,
    /// The value was fitted so that the model agrees with a measurement.
    Calibrated,
    /// No source gives the value. The field `source` gives the reason for it.
    Assumed,
    /// The user's file has the value without a kind.
    User,
    /// `--set` sets the value for this run.
    Override,
    /// The spec omits the key, and the value is the default of the part that reads it.
    Default,
}

impl Kind {
    /// The kinds that a spec may name.
    pub(crate) const WRITTEN: [Kind; 4] = [Kind::Measured, Kind::Documented, Kind::Calibrated, Kind::Assumed];

    /// Returns the kind's word in a spec, a table and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Measured => "measured",
            Kind::Documented => "documented",
            Kind::Calibrated => "calibrated",
            Kind::Assumed => "assumed",
            Kind::User => "user",
            Kind::Override => "override",
            Kind::Default => "default",
        }
    }

    pub(crate) const fn article(self) -> &'static str {
        if matches!(self, Kind::Assumed | Kind::Override) { "an" } else { "a" }
    }
}

/// A parameter of a card, with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// The section. The name of a nested section is dotted: `hpu.cycles`.
    pub section: String,
    /// The key within the section.
    pub key: String,
    /// The value as written, without quotes.
    pub value: String,
    /// The value in its base unit and in lowest terms. Equal values have equal texts.
    pub exact: String,
    /// The parameter's quantity.
    pub quantity: Quantity,
    /// The parameter's meaning.
    pub doc: String,
    /// The allowed values, if they are limited.
    pub allowed: Option<String>,
    /// The evidence for the value.
    pub kind: Kind,
    /// The source of the number. For an assumed value, the reason.
    pub source: String,
    /// A remark.
    pub note: Option<String>,
    /// For a calibrated value, the measurement to which it was fitted.
    pub against: Option<String>,
    /// The place of the value as `file:line`, or the override. Empty for a default.
    pub place: String,
    /// The value that this one replaces, and the spec with that value: `250 ns (spin-discrete)`.
    pub replaces: Option<String>,
}

/// The parameters of a card, in the order in which its parts read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The spec's name.
    pub name: String,
    /// The name of the card.
    pub title: String,
    /// The card's design.
    pub design: String,
    /// The paper or manual about the card.
    pub paper: Option<String>,
    /// The source of the facts about the card.
    pub source: Option<String>,
    /// The specs that this spec extends, nearest first.
    pub extends: Vec<String>,
    /// The overrides of this run: pairs of key and value, as given.
    pub overrides: Vec<(String, String)>,
    /// SHA-256 of design and values, in hexadecimal digits. Specs with equal design and values have equal hashes.
    pub hash: String,
    /// All parameters.
    pub parameters: Vec<Parameter>,
}

impl Listing {
    /// Returns the parameter at a dotted path such as `bus.latency`.
    pub fn get(&self, path: &str) -> Option<&Parameter> {
        let (section, key) = path.rsplit_once('.')?;
        self.parameters.iter().find(|p| p.section == section && p.key == key)
    }
}

/// Returns the SHA-256 of the design and of the sorted lines `path=value`.
pub(crate) fn hash(design: &str, parameters: &[Parameter]) -> String {
    // A text may contain line ends. They are escaped, so that different values never give equal lines.
    let escape = |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n");
    let mut lines: Vec<_> =
        parameters.iter().map(|p| format!("{}.{}={}\n", p.section, p.key, escape(&p.exact))).collect();
    lines.sort_unstable();
    let mut sha = Sha256::new();
    sha.update(format!("design={}\n", escape(design)));
    lines.iter().for_each(|line| sha.update(line));
    sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Listing {
    /// Prints a table with the parameters of each section. Each parameter has a line with value, kind, meaning and
    /// source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.title)?;
        for (what, text) in [("paper", &self.paper), ("source", &self.source)] {
            if let Some(text) = text {
                writeln!(f, "{what}: {text}")?;
            }
        }
        if !self.extends.is_empty() {
            writeln!(f, "extends: {}", self.extends.join(", "))?;
        }
        writeln!(f, "design: {}\nhash: {}", self.design, self.hash)?;
        let width = |of: fn(&Parameter) -> &str| {
            self.parameters.iter().map(|p| of(p).chars().count()).max().unwrap_or(0)
        };
        let (keys, values, docs) = (width(|p| &p.key), width(|p| &p.value), width(|p| &p.doc));
        let mut section = None;
        for p in &self.parameters {
            if section != Some(&p.section) {
                writeln!(f, "\n[{}]", p.section)?;
                section = Some(&p.section);
            }
            let kind = p.kind.name();
            write!(f, "{:keys$}  {:values$}  {kind:10}  {:docs$}  {}", p.key, p.value, p.doc, p.source)?;
            if let Some(note) = &p.note {
                write!(f, " ({note})")?;
            }
            if let Some(against) = &p.against {
                write!(f, "; against {against}")?;
            }
            if let Some(replaces) = &p.replaces {
                write!(f, "; replaces {replaces}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
