//! The inputs of a benchmark or an application beside its request, and the manifest of a report.

use crate::cards::Card;
use crate::options::MOST_THREADS;
use crate::{Capture, Error, Log, Peers, Spread};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Maps the name of a program, as in a benchmark's plan, to the compiled program for cards.
pub type Compiled = BTreeMap<String, Vec<u8>>;

/// The inputs of a benchmark or an application beside its request.
#[derive(Clone)]
pub struct Environment<'e> {
    /// The compiled programs for cards.
    pub compiled: &'e Compiled,
    /// Receives the output of handlers.
    pub log: Log,
    /// The interrupt. When another thread sets it, the run ends.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Captures the packets of the links in all runs.
    pub capture: Option<Capture>,
    /// The other processes of the command, if any. The work is divided among all processes where possible.
    pub peers: Option<Peers>,
    /// Called before the first row and after each row. The arguments are the number of finished rows and the total
    /// number of rows.
    pub progress: &'e dyn Fn(usize, usize),
    /// Called with preliminary results during a long row.
    pub news: &'e dyn Fn(&str),
}

/// An empty set of programs.
static NONE: Compiled = Compiled::new();

impl Default for Environment<'_> {
    /// Returns an environment with one process. It has no compiled programs, and ignores output and progress.
    fn default() -> Self {
        Environment {
            compiled: &NONE,
            log: Arc::new(|_| ()),
            interrupt: None,
            capture: None,
            peers: None,
            progress: &|_, _| (),
            news: &|_| (),
        }
    }
}

impl Environment<'_> {
    /// Returns the capture for a run with this label, if a capture was requested.
    pub fn capture_of(&self, label: impl fmt::Display) -> Option<Capture> {
        self.capture.as_ref().map(|capture| capture.labelled(label.to_string()))
    }

    /// Checks that all processes of the command have read the same inputs.
    ///
    /// # Errors
    /// Those of [`Peers::agree`].
    pub fn agree(&self, read: &impl Hash) -> Result<(), Error> {
        let Some(peers) = &self.peers else { return Ok(()) };
        let mut hasher = DefaultHasher::new();
        read.hash(&mut hasher);
        peers.agree(hasher.finish())
    }

    /// Divides a run among the processes of the command. If there is only one process, divides the run among `threads`
    /// threads.
    ///
    /// # Errors
    /// When the number of threads is out of range, or several threads or a capture are requested with several processes.
    pub fn spread(&self, threads: u32) -> Result<Spread, Error> {
        if !(1..=MOST_THREADS).contains(&threads) {
            return Err(Error::Input(format!("threads are 1 to {MOST_THREADS}, not {threads}")));
        }
        let peers = self.peers.clone();
        if peers.is_some() {
            let other =
                if threads > 1 { Some("--threads") } else { self.capture.as_ref().map(|_| "--capture") };
            if let Some(option) = other {
                return Err(Error::Input(format!(
                    "{option}: not possible in several processes, each with a part of the hosts; leave out \
                     this option or mpiexec"
                )));
            }
        }
        Ok(Spread { threads: threads as usize, peers })
    }
}

/// The inputs that reproduce a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, CardManifest>,
    /// Overrides of `--set`, as given.
    pub overrides: Vec<String>,
    /// The programs that ran on cards, by card and mode. The caller compiles the programs and fills in this field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub compiler: BTreeMap<String, ProgramManifest>,
}

impl Manifest {
    /// Returns the manifest of these cards by name, with the overrides.
    pub fn of<'c>(cards: impl IntoIterator<Item = (&'c String, &'c Card)>, overrides: &[String]) -> Manifest {
        let specs = cards.into_iter().map(|(name, card)| (name.clone(), card.into())).collect();
        Manifest { specs, overrides: overrides.to_vec(), compiler: BTreeMap::new() }
    }
}

/// A compiled program in a report's manifest. It names either a single source file, or all source files.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProgramManifest {
    /// The path of the single source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The SHA-256 of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The source files, if the user named them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<SourceManifest>>,
    /// The compiler's name and version.
    pub version: String,
    /// The compiler's flags.
    pub flags: Vec<String>,
}

/// A source file of the user in a report's manifest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SourceManifest {
    /// The path of the file.
    pub source: String,
    /// The SHA-256 of the file.
    pub sha256: String,
}

/// The identification of a card in a report's manifest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CardManifest {
    /// The card's title.
    pub title: String,
    /// A hash over the resolved values of all parameters.
    pub spec_hash: String,
}

impl From<&Card> for CardManifest {
    fn from(card: &Card) -> CardManifest {
        CardManifest { title: card.listing.title.clone(), spec_hash: card.listing.hash.clone() }
    }
}
