//! Compiles translations with the stand-ins of `tests/data/card.c`, and runs them.

use nicety_ebpf::translate::{ABORTED_NAME, Isa, Options, Translation};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The compiler of the Python package `ziglang`, or the one that `NICETY_ZIG` names.
pub(crate) fn compiler() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("NICETY_ZIG") {
        return Some(PathBuf::from(named));
    }
    let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let found = std::fs::read_dir(libraries).ok()?.flatten();
    found.map(|python| python.path().join("site-packages/ziglang/zig")).find(|zig| zig.exists())
}

/// A folder that ends with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nicety-translate-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn options(isa: &str, misaligned: bool) -> Options {
    Options {
        isa: Isa::read(isa).unwrap(),
        misaligned,
        cpus: 1,
        cluster: None,
        unverified: false,
        headroom: 64,
        longest: 1518,
        frames: false,
        hashes: false,
        flow_processor: false,
    }
}

/// Links translations with the stand-ins: their programs run on the packets of `runs`, each with the number of its program.
pub(crate) fn link(
    zig: &Path,
    folder: &Path,
    isa: &str,
    translations: &[Translation],
    runs: &[(usize, &[u8])],
) -> PathBuf {
    let wide = isa.starts_with("rv64");
    let word = if wide { ".dword" } else { ".word" };
    let mut inputs = Vec::new();
    for (program, packet) in runs {
        inputs.extend((*program as u32).to_le_bytes());
        inputs.extend((packet.len() as u32).to_le_bytes());
        inputs.extend(*packet);
    }
    std::fs::write(folder.join("runs"), inputs).unwrap();
    let names = |of: fn(&Translation) -> &Vec<(String, String)>| {
        translations.iter().map(|t| format!("\t{word} {}\n", of(t)[0].1)).collect::<String>()
    };
    let table = format!(
        "\t.globl _start, runs, runs_end, programs, targets\n\t.text\n_start:\n\tlla sp, stack_end\n\tcall all\n\t.data\n\
         runs:\n\t.incbin \"{}/runs\"\nruns_end:\n\t.p2align 3\nprograms:\n{}targets:\n{}\t.bss\n\t.p2align 4\n\
         \t.zero 65536\nstack_end:\n",
        folder.display(),
        names(|t| &t.programs),
        names(|t| &t.targets)
    );
    std::fs::write(folder.join("table.S"), table).unwrap();
    // One file is assembled faster than many.
    let texts: String = translations.iter().map(|translation| translation.assembly.as_str()).collect();
    std::fs::write(folder.join("programs.S"), with_one_counter(&texts, translations)).unwrap();
    let card = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/card.c");
    let files = [folder.join("table.S"), folder.join("programs.S"), card];
    compile(zig, folder, isa, &files, "_start")
}

/// Returns the texts with a single declaration of the counters of `XDP_ABORTED`, as large as the largest one.
fn with_one_counter(texts: &str, translations: &[Translation]) -> String {
    let declaration = format!("\t.comm {ABORTED_NAME},");
    let most = translations.iter().map(|translation| translation.sites.len()).max().unwrap_or(0);
    let others = texts.lines().filter(|line| !line.starts_with(&declaration)).map(|line| format!("{line}\n"));
    others.chain([format!("{declaration} {}, 4\n", 4 * most.max(1))]).collect()
}

/// Links texts to a program that begins at `entry`.
pub(crate) fn assemble(zig: &Path, folder: &Path, isa: &str, texts: &[String], entry: &str) -> PathBuf {
    let files: Vec<PathBuf> = (0..texts.len()).map(|number| folder.join(format!("{number}.S"))).collect();
    files.iter().zip(texts).for_each(|(file, text)| std::fs::write(file, text).unwrap());
    compile(zig, folder, isa, &files, entry)
}

fn compile(zig: &Path, folder: &Path, isa: &str, files: &[PathBuf], entry: &str) -> PathBuf {
    let wide = isa.starts_with("rv64");
    let target = if wide { "riscv64" } else { "riscv32" };
    let out = folder.join("card.elf");
    let letters: String = isa[4..].chars().take_while(|letter| *letter != '_').collect();
    let mut extensions: Vec<String> = letters.chars().skip(1).map(String::from).collect();
    extensions.extend(isa.split('_').skip(1).filter(|name| *name != "zicsr").map(str::to_owned));
    let cpu = format!("-mcpu=generic_rv{}+{}", if wide { 64 } else { 32 }, extensions.join("+"));
    let options = ["-O1", "-g", "-fno-sanitize=all", "-ffreestanding", "-static", "-nostdlib"];
    zig_cc(
        zig,
        folder,
        &[&["-target", &format!("{target}-freestanding-none"), &cpu], &options[..]].concat(),
        |command| {
            command.arg(format!("-Wl,-e,{entry}")).arg("-o").arg(&out).args(files).arg("-lgcc");
        },
    );
    out
}

/// Compiles one of nicety's XDP programs.
pub(crate) fn object(zig: &Path, name: &str) -> nicety_ebpf::Object {
    let folder = Folder::new();
    let handlers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../handlers");
    let (source, out) = (handlers.join("xdp").join(format!("{name}.c")), folder.0.join("program.o"));
    let options =
        ["-target", "bpfel-freestanding", "-O2", "-g", "-ffreestanding", "-fno-asynchronous-unwind-tables"];
    zig_cc(zig, &folder.0, &options, |command| {
        command.arg("-I").arg(handlers.join("include")).arg("-c").arg(source).arg("-o").arg(&out);
    });
    nicety_ebpf::Object::read(&std::fs::read(out).unwrap()).unwrap()
}

fn zig_cc(zig: &Path, folder: &Path, options: &[&str], with: impl FnOnce(&mut Command)) {
    let mut command = Command::new(zig);
    command.arg("cc").args(options);
    with(&mut command);
    let ran = command
        .env("ZIG_GLOBAL_CACHE_DIR", std::env::temp_dir().join("nicety-translate-zig"))
        .env("ZIG_LOCAL_CACHE_DIR", folder.join("cache"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Runs a program on this project's cores, and returns what it writes. Without `misaligned`, a misaligned access traps.
pub(crate) fn on_hpu(elf: &Path, isa: &str, misaligned: bool) -> Vec<u8> {
    let file = std::fs::read(elf).unwrap();
    let misaligned =
        if misaligned { nicety_hpu::Misaligned::Costs } else { nicety_hpu::Misaligned::default() };
    let core = nicety_hpu::Core { isa: isa.parse().unwrap(), misaligned, ..nicety_hpu::Core::default() };
    let image = nicety_hpu::Image::load(&file, &core).unwrap();
    let mut out = Vec::new();
    let result = nicety_hpu::bare::run(&image, None, 10_000_000_000, &mut out).unwrap();
    assert!(result.trap.is_none(), "{:?}", result.trap.map(|trap| trap.to_string()));
    out
}
