//! Programs for tests: the runtime with maps, built by the clang of the `ziglang` package.

use nicety_hpu::{Core, CycleCosts, Isa, Misaligned};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The compiler of `make setup`.
fn zig() -> PathBuf {
    let libraries = root().join(".venv/lib");
    let folders = std::fs::read_dir(&libraries).into_iter().flatten().flatten();
    let found =
        folders.map(|folder| folder.path().join("site-packages/ziglang/zig")).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("no ziglang in {}; run make setup", libraries.display()))
}

/// A card's cores: those of handlers by their width, and the contexts of a network flow processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    Rv32,
    Rv64,
    Nfp,
}

impl Cores {
    pub const ALL: [Cores; 2] = [Cores::Rv32, Cores::Rv64];

    pub const fn isa(self) -> &'static str {
        match self {
            Cores::Rv32 => "rv32imac_zicsr",
            Cores::Rv64 => "rv64imac_zicsr",
            Cores::Nfp => "rv32ia_zicsr_zmmul_zba_zbb",
        }
    }

    pub const fn core(self) -> Core {
        let isa = match self {
            Cores::Nfp => panic!("its spec has its core"),
            Cores::Rv32 => Isa::RV32IMAC,
            Cores::Rv64 => Isa::RV64IMAC,
        };
        Core { isa, costs: CycleCosts::SINGLE_CYCLE, misaligned: Misaligned::Costs, overlap: None }
    }

    const fn target(self) -> [&'static str; 3] {
        match self {
            Cores::Rv32 => ["-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+a+c+zicsr"],
            Cores::Rv64 => ["-target", "riscv64-freestanding-none", "-mcpu=generic_rv64+m+a+c+zicsr"],
            Cores::Nfp => [
                "-target",
                "riscv32-freestanding-none",
                "-mcpu=generic_rv32+a+zicsr+zmmul+zba+zbb+unaligned_scalar_mem",
            ],
        }
    }
}

fn run(arguments: &[&str], folder: &Path) {
    let cache = folder.join("zig");
    let ended = Command::new(zig())
        .arg("cc")
        .args(arguments)
        .env("ZIG_GLOBAL_CACHE_DIR", &cache)
        .env("ZIG_LOCAL_CACHE_DIR", &cache)
        .output()
        .expect("the compiler starts");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("nicety-xdp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the compiler");
        folder
    })
}

/// The runtime's objects, with checks for unverified programs or without.
fn runtime(cores: Cores, unverified: bool) -> &'static [PathBuf] {
    static OBJECTS: [OnceLock<Vec<PathBuf>>; 6] = [const { OnceLock::new() }; 6];
    OBJECTS[2 * cores as usize + usize::from(unverified)].get_or_init(|| {
        let handlers = root().join("handlers");
        let sources = std::fs::read_dir(handlers.join("runtime/xdp")).expect("the runtime").flatten();
        let mut sources: Vec<PathBuf> = sources.map(|entry| entry.path()).collect();
        sources.push(handlers.join("runtime/memory.c"));
        sources.push(handlers.join("runtime/integer.c"));
        // Other cards' handlers. That of PsPIN's tasks has other headers.
        let others: &[&str] = match cores {
            Cores::Nfp => &["task.c", "frame.c", "verdict.c", "check.c"],
            _ => &["task.c", "nfp.c"],
        };
        sources.retain(|path| {
            path.extension().is_some_and(|ending| ending == "c")
                && !others.iter().any(|other| path.ends_with(other))
        });
        sources.iter().map(|source| runtime_object(source, &handlers, (cores, unverified))).collect()
    })
}

fn runtime_object(source: &Path, handlers: &Path, (cores, unverified): (Cores, bool)) -> PathBuf {
    let name = source.file_stem().expect("a file").to_string_lossy();
    let object =
        folder().join(format!("{name}.{}{}.o", cores.isa(), if unverified { ".checked" } else { "" }));
    let (include, system) = (handlers.join("include"), handlers.join("runtime/include"));
    let mut arguments: Vec<&str> = cores.target().to_vec();
    arguments.extend(["-std=gnu17", "-O2", "-ffreestanding", "-fomit-frame-pointer", "-fno-builtin"]);
    arguments.extend(["-fno-strict-aliasing", "-fno-sanitize=all", "-ffunction-sections"]);
    if cores == Cores::Nfp {
        arguments.push("-DNICETY_XDP_NFP=1");
    }
    if unverified {
        arguments.push("-DNICETY_XDP_UNVERIFIED=1");
    }
    let paths =
        [&include, &system, &source.to_path_buf(), &object].map(|path| path.to_string_lossy().into_owned());
    arguments.extend(["-I", &paths[0], "-isystem", &paths[1], "-c", &paths[2], "-o", &paths[3]]);
    run(&arguments, folder());
    object
}

/// Links assembly with the runtime.
pub fn linked(name: &str, assembly: &str, cores: Cores) -> Vec<u8> {
    let source = folder().join(format!("{name}.{}.S", cores.isa()));
    std::fs::write(&source, assembly).expect("a writable folder");
    let layout = match cores {
        Cores::Nfp => "handlers/runtime/xdp/nfp.ld",
        _ => "handlers/runtime/layout.ld",
    };
    let layout = root().join(layout);
    let program = folder().join(format!("{name}.{}.elf", cores.isa()));
    let mut arguments: Vec<String> = cores.target().iter().map(|&option| option.to_owned()).collect();
    arguments.extend(["-static".to_owned(), "-nostdlib".to_owned(), "-T".to_owned()]);
    arguments.push(layout.to_string_lossy().into_owned());
    arguments.extend(["-Wl,-e,0".to_owned(), source.to_string_lossy().into_owned()]);
    let unverified = assembly.contains("nicety_xdp_areas");
    // A program that is the frame handler itself takes the place of the runtime's.
    let direct = assembly.contains(".set frame_handler,");
    let objects = runtime(cores, unverified).iter().map(|path| path.to_string_lossy().into_owned());
    arguments.extend(objects.filter(|path| !(direct && path.contains("/frame."))));
    arguments.extend(["-o".to_owned(), program.to_string_lossy().into_owned()]);
    run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), folder());
    std::fs::read(&program).expect("a linked program")
}

/// The object of a program of `handlers/xdp`, or of these tests' data.
pub fn compiled(name: &str) -> Vec<u8> {
    let handlers = root().join("handlers");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).with_extension("c");
    let source = if own.is_file() { own } else { handlers.join("xdp").join(name).with_extension("c") };
    let object = folder().join(format!("{name}.bpf.o"));
    let paths = [&handlers.join("include"), &source, &object].map(|path| path.to_string_lossy().into_owned());
    let mut arguments = vec!["-target", "bpfel-freestanding", "-O2", "-g", "-ffreestanding"];
    arguments.extend(["-fno-asynchronous-unwind-tables", "-I", &paths[0], "-c", &paths[1], "-o", &paths[2]]);
    run(&arguments, folder());
    std::fs::read(&object).expect("an object")
}

/// The object of a text in eBPF's assembly.
pub fn assembled(name: &str, text: &str) -> Vec<u8> {
    let (source, object) = (folder().join(format!("{name}.bpf.S")), folder().join(format!("{name}.bpf.o")));
    std::fs::write(&source, text).expect("a writable folder");
    let paths = [&source, &object].map(|path| path.to_string_lossy().into_owned());
    run(&["-target", "bpfel-freestanding", "-c", &paths[0], "-o", &paths[1]], folder());
    std::fs::read(&object).expect("an object")
}
