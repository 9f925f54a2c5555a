//! Tests files on disk: paths, bases, and files that are not specs.

use crate::card::CARDS;
use nicety_spec::{Library, Spec};
use std::path::{Path, PathBuf};

/// Returns a new folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn refused(name: &str) -> String {
    Spec::load(name, &[], CARDS).unwrap_err().to_string()
}

#[test]
fn a_file_extends_files_beside_it_and_shipped_specs() {
    let folder = folder("extends");
    write(
        &folder,
        "base/far.toml",
        "extends = 'integrated'\ntitle = 'far'\n[bus]\nlatency = '900 ns'\n[hpu]\ncores = 16\n",
    );
    let mine = write(&folder, "mine.toml", "extends = './base/far.toml'\n[bus]\nlatency = '950 ns'\n");
    let spec = Spec::load(&mine, &[], CARDS).unwrap();
    assert_eq!((spec.name(), spec.title(), spec.design()), ("mine", "far", "portals"));
    let listing = crate::card::read(&spec).unwrap();
    assert_eq!(listing.extends, ["far", "integrated", "discrete"]);
    let latency = listing.get("bus.latency").unwrap();
    assert_eq!((latency.value.as_str(), latency.replaces.as_deref()), ("950 ns", Some("900 ns (far)")));
    assert_eq!(latency.place, format!("{mine}:3"));
    assert_eq!(listing.get("hpu.cores").unwrap().value, "16");
    assert_eq!(listing.get("bus.gap").unwrap().value, "6.7 ps/B");
}

#[test]
fn a_circle_is_refused() {
    let folder = folder("circle");
    let one = write(&folder, "one.toml", "extends = './two.toml'\n");
    write(&folder, "two.toml", "design = 'x'\nextends = './sub/../one.toml'\n");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    let message = refused(&one);
    let dir = folder.to_str().unwrap();
    let expected = format!(
        "error: extends: extends forms a cycle: {one} -> {dir}/./two.toml -> {one}\n --> {dir}/./two.toml:2:11\n"
    );
    assert!(message.starts_with(&expected), "{message}");
    let own = write(&folder, "self.toml", "extends = './self.toml'\n");
    assert!(refused(&own).contains(&format!("extends forms a cycle: {own} -> {own}")));
    let shipped =
        Library::new(&[("a", "extends = 'b'"), ("b", "extends = 'a'"), ("c", "extends = './x.toml'")]);
    let message = Spec::load("a", &[], shipped).unwrap_err().to_string();
    assert!(message.contains("cycle: specs/a.toml -> specs/b.toml -> specs/a.toml"), "{message}");
    let message = Spec::load("c", &[], shipped).unwrap_err().to_string();
    assert!(message.contains("a shipped spec extends shipped specs only"), "{message}");
}

#[test]
fn files_that_are_no_specs_are_refused() {
    let folder = folder("no-specs");
    let missing = folder.join("none.toml");
    let missing = missing.to_str().unwrap();
    assert!(refused(missing).starts_with(&format!("error: cannot read {missing}: No such file")));
    let binary = write(&folder, "binary.toml", [0xff, 0xfe, 0x00]);
    assert_eq!(refused(&binary), format!("error: cannot read {binary}: it is not UTF-8 text"));
    let long = write(&folder, "long.toml", vec![b'#'; (1 << 20) + 1]);
    assert_eq!(
        refused(&long),
        format!("error: cannot read {long}: it is longer than 1 MiB, so it is no spec")
    );
    let base = write(&folder, "base.toml", "extends = './none.toml'\n");
    let message = refused(&base);
    assert!(
        message.contains("error: extends: cannot read") && message.contains("base.toml:1:11"),
        "{message}"
    );
    let broken = write(&folder, "broken.toml", "extends = './syntax.toml'\n");
    write(&folder, "syntax.toml", "design = \n");
    assert!(refused(&broken).contains("syntax.toml:1:"), "{}", refused(&broken));
}

#[test]
fn unknown_names_get_the_nearest() {
    assert_eq!(
        refused("discret"),
        "error: there is no card spec \"discret\"\n  = help: did you mean discrete?"
    );
    assert_eq!(
        refused("wombat"),
        "error: there is no card spec \"wombat\"\n  = help: write discrete or integrated, or the path of your own \
         file, ./wombat.toml"
    );
    // Tests run in the folder of the package, which has a file `Cargo.toml`.
    assert!(refused("Cargo").ends_with("= help: for the file here write ./Cargo.toml"));
}
