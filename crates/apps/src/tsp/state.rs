//! A file of finished jobs, from which a long run can resume.

use super::file::plain;
use super::{Instance, Request};
use crate::tsp::card::{Best, Distances};
use nicety::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;

/// The result of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of the job's first climb.
    pub(super) first: u32,
    /// Number of climbs in the job.
    pub(super) climbs: u32,
    pub(super) best: Best,
    pub(super) time_ps: u64,
    pub(super) computing: u64,
    pub(super) asleep: u64,
    pub(super) instructions: u64,
}

/// Maximum bytes of a file. A longer file was not written by nicety.
const LONGEST: u64 = 64 << 20;

/// The number of the file's format.
const FORMAT: u32 = 3;

/// The field that all formats of the file have.
#[derive(Deserialize)]
struct Version {
    nicety_tsp: u32,
}

/// The finished jobs.
pub(super) struct State {
    path: Option<String>,
    kept: Kept,
    parts: Vec<Part>,
}

/// The contents of the file: the finished jobs, and the inputs for which they are valid.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    nicety_tsp: u32,
    cities: usize,
    /// The digest of the cities' coordinates or distances.
    problem: String,
    seed: u32,
    climbers: u32,
    job: u32,
    distances: Distances,
    card: String,
    program: String,
    jobs: Vec<KeptJob>,
    /// The SHA-256 of the file's text with an empty checksum, in hexadecimal digits.
    #[serde(default)]
    checksum: String,
}

impl Kept {
    /// Returns the file's text.
    fn text(&mut self) -> String {
        self.checksum.clear();
        let sum = Sha256::digest(self.plain());
        self.checksum = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        self.plain()
    }

    fn plain(&self) -> String {
        serde_json::to_string(self).expect("plain data with text keys")
    }

    /// Whether the checksum matches the contents.
    fn is_whole(&mut self) -> bool {
        let said = self.checksum.clone();
        self.text();
        self.checksum == said
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptJob {
    first: u32,
    climbs: u32,
    length: u32,
    climb: u32,
    tour: Vec<u8>,
    time_ps: u64,
    cycles_computing: u64,
    cycles_asleep: u64,
    instructions: u64,
}

impl State {
    /// Reads the file that the request names, if it exists.
    pub(super) fn open(request: &Request, instance: &Instance, spec_hash: &str) -> Result<State, Error> {
        let fresh = Kept {
            nicety_tsp: FORMAT,
            cities: instance.cities.count(),
            problem: instance.cities.digest(),
            seed: request.seed,
            climbers: request.climbers,
            job: request.job_climbs(),
            distances: request.distances,
            card: spec_hash.to_owned(),
            program: request.program.clone(),
            jobs: Vec::new(),
            checksum: String::new(),
        };
        let Some(path) = request.resume.clone() else {
            return Ok(State { path: None, kept: fresh, parts: Vec::new() });
        };
        let kept = match load(&path)? {
            None => fresh,
            Some(mut kept) => {
                if !kept.is_whole() {
                    let why = foreign("damaged: the checksum does not match the contents");
                    return Err(Error::Input(format!("--resume {path}: {why}")));
                }
                check(&path, &kept, &fresh)?;
                kept
            }
        };
        let parts = kept.jobs.iter().map(|job| job.part(&path, kept.cities)).collect::<Result<_, _>>()?;
        let mut state = State { path: Some(path), kept, parts };
        // A file that cannot be written is reported now, not after an hour.
        state.save()?;
        Ok(state)
    }

    /// Returns the job that has these climbs, if it is finished.
    pub(super) fn find(&self, first: u32, climbs: u32) -> Option<&Part> {
        self.parts.iter().find(|part| (part.first, part.climbs) == (first, climbs))
    }

    /// Adds a finished job, and writes the file.
    pub(super) fn keep(&mut self, part: Part) -> Result<(), Error> {
        self.kept.jobs.push(KeptJob::of(&part));
        self.parts.push(part);
        self.save()
    }

    fn save(&mut self) -> Result<(), Error> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = self.kept.text();
        let beside = format!("{path}.new");
        let written = write(&beside, &text).and_then(|()| fs::rename(&beside, path));
        written.map_err(|error| {
            // Removes a file that was written in part. If the file could not be created, there is nothing to remove.
            let _ = fs::remove_file(&beside);
            Error::Input(format!("--resume {path}: cannot write it ({})", plain(&error)))
        })
    }
}

/// Writes a file, and waits until it is on the disk. The caller then renames it, so after a crash at any time the old or the new
/// file exists.
fn write(path: &str, text: &str) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn load(path: &str) -> Result<Option<Kept>, Error> {
    let wrong = |what: String| Err(Error::Input(format!("--resume {path}: {what}")));
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return wrong(format!("cannot read it ({})", plain(&error))),
        Ok(metadata) if metadata.is_dir() => return wrong("this is a folder; name a file in it".into()),
        Ok(metadata) if metadata.len() > LONGEST => return wrong(foreign("it is too long")),
        Ok(_) => {}
    }
    let text = match fs::read(path) {
        Err(error) => return wrong(format!("cannot read it ({})", plain(&error))),
        Ok(bytes) => bytes,
    };
    // A file of another format has other fields.
    if let Ok(Version { nicety_tsp }) = serde_json::from_slice(&text)
        && nicety_tsp != FORMAT
    {
        return other(path, "version of nicety");
    }
    match serde_json::from_slice(&text) {
        Ok(kept) => Ok(Some(kept)),
        Err(error) => wrong(foreign(&error.to_string())),
    }
}

fn foreign(why: &str) -> String {
    format!("not a valid file of nicety tsp ({why}); name another, or remove it to start again")
}

fn check(path: &str, kept: &Kept, own: &Kept) -> Result<(), Error> {
    let same = [
        ("problem", (kept.cities, &kept.problem) == (own.cities, &own.problem)),
        ("--seed", kept.seed == own.seed),
        ("number of --climbers", kept.climbers == own.climbers),
        ("number of climbs in a --job", kept.job == own.job),
        ("value of --distances", kept.distances == own.distances),
        ("card", kept.card == own.card),
        ("program", kept.program == own.program),
    ];
    match same.iter().find(|(_, same)| !same) {
        None => Ok(()),
        Some((what, _)) => other(path, what),
    }
}

fn other<T>(path: &str, what: &str) -> Result<T, Error> {
    Err(Error::Input(format!(
        "--resume {path}: it was written for another {what}; name another file, or remove it to start again"
    )))
}

impl KeptJob {
    fn of(part: &Part) -> KeptJob {
        KeptJob {
            first: part.first,
            climbs: part.climbs,
            length: part.best.length,
            climb: part.best.number,
            tour: part.best.tour.clone(),
            time_ps: part.time_ps,
            cycles_computing: part.computing,
            cycles_asleep: part.asleep,
            instructions: part.instructions,
        }
    }

    fn part(&self, path: &str, cities: usize) -> Result<Part, Error> {
        let mut seen = self.tour.clone();
        seen.sort_unstable();
        let numbers = self.first..self.first.saturating_add(self.climbs);
        if !seen.iter().copied().eq((0..cities).map(|city| city as u8)) || !numbers.contains(&self.climb) {
            let why = foreign(&format!("the climbs from number {} on have no tour", self.first));
            return Err(Error::Input(format!("--resume {path}: {why}")));
        }
        Ok(Part {
            first: self.first,
            climbs: self.climbs,
            best: Best { length: self.length, number: self.climb, tour: self.tour.clone() },
            time_ps: self.time_ps,
            computing: self.cycles_computing,
            asleep: self.cycles_asleep,
            instructions: self.instructions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tsp::parse;

    const SQUARE: &str = "TYPE: TSP\nDIMENSION: 5\nEDGE_WEIGHT_TYPE: MAN_2D\nNODE_COORD_SECTION\n\
                          1 0 0\n2 9 0\n3 9 9\n4 0 9\n5 4 4\n";

    /// Opens a file with these contents for the problem.
    fn open(name: &str, contents: Option<&str>, problem: &str) -> Result<(State, String), String> {
        let path = std::env::temp_dir().join(format!("nicety-tsp-{}-{name}", std::process::id()));
        if let Some(contents) = contents {
            fs::write(&path, contents).unwrap();
        }
        let request = serde_json::json!({"file": "f.tsp", "resume": path.to_str().unwrap(), "program": "p"});
        let request = Request::from_json(&request.to_string()).unwrap();
        let opened = State::open(&request, &parse(problem, "f.tsp").unwrap(), "card");
        let written = fs::read_to_string(&path).unwrap_or_default();
        fs::remove_file(&path).unwrap();
        opened.map(|state| (state, written)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_for_its_problem_alone() {
        let part = Part {
            first: 0,
            climbs: 590,
            best: Best { length: 44, number: 3, tour: vec![0, 4, 3, 2, 1] },
            time_ps: 1,
            computing: 2,
            asleep: 3,
            instructions: 4,
        };
        let (mut state, _) = open("fresh", None, SQUARE).unwrap();
        state.path = None;
        state.keep(part.clone()).unwrap();
        let text = state.kept.text();
        let (again, written) = open("again", Some(&text), SQUARE).unwrap();
        assert_eq!((again.find(0, 590), written), (Some(&part), text.clone()));
        // Another distance, and the same distances of a problem that the card computes.
        for other in [SQUARE.replace("5 4 4", "5 4 3"), SQUARE.replace("MAN_2D", "EUC_2D")] {
            let error = open("other", Some(&text), &other).err().unwrap();
            assert!(error.contains(": it was written for another problem; name another file"), "{error}");
        }
        let damaged = text.replace("\"length\":44", "\"length\":43");
        let error = open("damaged", Some(&damaged), SQUARE).err().unwrap();
        assert!(error.contains("damaged: the checksum does not match the contents"), "{error}");
    }

    #[test]
    fn files_of_other_formats_are_named() {
        for text in [r#"{"nicety_tsp":2,"cities":[[0,0]],"seed":1}"#, r#"{"nicety_tsp":4}"#] {
            let error = open("old", Some(text), SQUARE).err().unwrap();
            assert!(error.contains(": it was written for another version of nicety; name"), "{error}");
        }
        let error = open("none", Some("{}"), SQUARE).err().unwrap();
        assert!(error.contains("not a valid file of nicety tsp (missing field"), "{error}");
    }
}
