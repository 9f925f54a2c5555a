//! A resolved spec: every parameter with its unit, its meaning and its source.

use crate::units::Quantity;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;

/// The evidence for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Measured on the card.
    Measured,
    /// Stated by the source.
    Documented,
    /// Fitted so that the model meets a measurement.
    Calibrated,
    /// Given by no source. The field `source` gives the reason for the value.
    Assumed,
    /// A plain value in the user's file.
    User,
    /// Set for this run by `--set`.
    Override,
    /// The default of the part that reads the key, which the spec omits.
    Default,
}

impl Kind {
    /// The kinds that a spec may name.
    pub(crate) const WRITTEN: [Kind; 4] = [Kind::Measured, Kind::Documented, Kind::Calibrated, Kind::Assumed];

    /// Its word in a spec, a table and JSON.
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

/// A resolved parameter of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// The section, dotted where nested: `hpu.cycles`.
    pub section: String,
    /// The key within the section.
    pub key: String,
    /// The value as written, without quotes.
    pub value: String,
    /// The value in base units and lowest terms. Equal values have equal texts.
    pub exact: String,
    /// Its quantity.
    pub quantity: Quantity,
    /// The parameter's meaning.
    pub doc: String,
    /// The allowed values, where they are limited.
    pub allowed: Option<String>,
    /// The evidence for the value.
    pub kind: Kind,
    /// The source of the number. For an assumed value, the reason.
    pub source: String,
    /// A remark.
    pub note: Option<String>,
    /// The measurement a calibrated value was fitted to.
    pub against: Option<String>,
    /// `file:line`, or the override; empty for a default.
    pub place: String,
    /// The replaced value, and the spec that has it: `250 ns (spin-discrete)`.
    pub replaces: Option<String>,
}

/// A resolved spec: the parameters of a card, in the order in which its parts read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The spec's name.
    pub name: String,
    /// The card.
    pub title: String,
    /// The card's design.
    pub design: String,
    /// The paper or manual about the card.
    pub paper: Option<String>,
    /// The source of the facts.
    pub source: Option<String>,
    /// The specs it extends, nearest first.
    pub extends: Vec<String>,
    /// The overrides of this run, as given.
    pub overrides: Vec<(String, String)>,
    /// SHA-256 of design and values, in hex. Specs of the same card have equal hashes, whatever their layout.
    pub hash: String,
    /// The parameters.
    pub parameters: Vec<Parameter>,
}

impl Listing {
    /// Returns the parameter at a dotted path such as `bus.latency`.
    pub fn get(&self, path: &str) -> Option<&Parameter> {
        let (section, key) = path.rsplit_once('.')?;
        self.parameters.iter().find(|p| p.section == section && p.key == key)
    }
}

/// Returns the SHA-256 of the design and the sorted `path=value` lines.
pub(crate) fn hash(design: &str, parameters: &[Parameter]) -> String {
    // A text may contain line ends. With them escaped, different values never give equal lines.
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
    /// Prints a table: one line per parameter under its section, with value, kind, meaning and source.
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
