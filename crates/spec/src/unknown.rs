//! Reports unknown keys and sections of a spec, which are mostly misspelt, with the probable names.

use crate::document::{Entry, META, Origin, locate};
use crate::error::SpecError;
use crate::spec::Spec;
use crate::suggest::{any_of, nearest};
use crate::units::Quantity;
use std::collections::BTreeMap;

/// Maximum number of errors in a report. A file with more unknown names is probably in another format.
const MOST: usize = 100;

/// Reports keys and sections that no part has read. If such a key resembles a missing required key, that key is removed
/// from `missing`. So a misspelt key gives only one error.
pub(crate) fn report(
    spec: &Spec,
    asked: &BTreeMap<String, Quantity>,
    sections: &[String],
    missing: &mut Vec<String>,
    errors: &mut Vec<SpecError>,
) {
    let known_section = |path: &str| sections.iter().any(|known| known == path);
    let mut unknown_sections = Vec::new();
    for (path, span) in &spec.sections {
        if errors.len() >= MOST {
            return;
        }
        let outer = parent(path);
        if let Some(quantity) = asked.get(path) {
            let message = format!("expected {}, but this is a section", quantity.article());
            let error = SpecError::new(message).at(span).about(path);
            errors.push(error.help("a value with its source is { value = ..., kind = ..., source = ... }"));
            missing.retain(|missing| missing != path);
            continue;
        }
        // The outer section was reported as unknown, or stands in place of a value. Sections inside it are not reported
        // again.
        if known_section(path) || !(outer.is_empty() || known_section(outer)) {
            continue;
        }
        let meant = nearest(path, sections.iter().map(String::as_str));
        let mut error = SpecError::new(format!("there is no section [{path}]")).at(span);
        error = match meant {
            Some(meant) => error.help(format!("did you mean [{meant}]?")),
            None => error.help(format!("the sections are {}", list(sections.iter().map(String::as_str)))),
        };
        if let Some(meant) = meant {
            // If the spec lacks the section with the right name, the section's missing keys are probably in the
            // misspelt section.
            missing.retain(|path| parent(path) != meant || spec.sections.contains_key(meant));
        }
        unknown_sections.push(path);
        errors.push(error);
    }
    for (path, entry) in spec.values.iter().filter(|(path, _)| !asked.contains_key(*path)) {
        if errors.len() >= MOST {
            return;
        }
        let section = parent(path);
        let in_file = matches!(entry.origin, Origin::File { .. });
        let inside = |outer: &str| {
            section == outer || section.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
        };
        let reported = spec
            .sections
            .keys()
            .any(|outer| inside(outer) && (unknown_sections.contains(&outer) || asked.contains_key(outer)));
        if !(in_file && reported) {
            errors.push(unknown_key(path, entry, asked, sections, missing));
        }
    }
}

fn unknown_key(
    path: &str,
    entry: &Entry,
    asked: &BTreeMap<String, Quantity>,
    sections: &[String],
    missing: &mut Vec<String>,
) -> SpecError {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let fault = match &entry.origin {
        Origin::File { key: span, .. } => SpecError::new("unknown key").at(span).about(path),
        _ => locate(SpecError::new("unknown key").about(path), entry),
    };
    if sections.iter().any(|known| known == path) {
        let keys: Vec<_> = keys_of(path, asked).collect();
        return fault.help(format!("[{path}] is a section, its keys are {}", list(keys)));
    }
    let option = matches!(entry.origin, Origin::Option(_));
    let meant = |meant: String| format!("did you mean {meant}?");
    if let Some(near) = nearest(key, keys_of(section, asked)) {
        let near_path = format!("{section}.{near}");
        missing.retain(|path| *path != near_path);
        return fault.help(meant(if option { near_path } else { near.to_owned() }));
    }
    // An override names the section together with the key, so the section may be misspelt.
    if !section.is_empty()
        && keys_of(section, asked).next().is_none()
        && let Some(near) = nearest(path, asked.keys().map(String::as_str))
    {
        return fault.help(meant(near.to_owned()));
    }
    let elsewhere: Vec<_> =
        asked.keys().filter(|known| known.rsplit_once('.').is_some_and(|(_, k)| k == key)).collect();
    if !elsewhere.is_empty() && elsewhere.len() <= 3 {
        return fault.help(meant(any_of(&elsewhere)));
    }
    if section.is_empty() {
        if let Some(near) = nearest(path, META).filter(|_| !option) {
            return fault.help(meant(near.to_owned()));
        }
        let all = list(META);
        return fault
            .help(format!("above the sections there are {all}; every other key belongs to a section"));
    }
    match keys_of(section, asked).collect::<Vec<_>>() {
        keys if keys.is_empty() => {
            fault.help(format!("the sections are {}", list(sections.iter().map(String::as_str))))
        }
        keys => fault.help(format!("[{section}] has {}", list(keys))),
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(section, _)| section)
}

fn keys_of<'a>(section: &'a str, asked: &'a BTreeMap<String, Quantity>) -> impl Iterator<Item = &'a str> {
    asked
        .keys()
        .filter_map(move |path| path.rsplit_once('.').filter(|(of, _)| *of == section).map(|(_, key)| key))
}

fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}
