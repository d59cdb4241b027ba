//! What the operating system says of this process, and what it allows it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the process uses; absent where the system does not say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Memory that is resident.
    pub resident_bytes: Option<f64>,
    /// Open file descriptors.
    pub open_files: Option<f64>,
    /// Processor time.
    pub cpu_seconds: Option<f64>,
    /// When it started, in seconds since 1970.
    pub started_at: Option<f64>,
}

/// Looks into `/proc`, where there is one.
#[must_use]
pub fn usage() -> Usage {
    let stat = std::fs::read_to_string("/proc/self/stat").ok();
    // The second field is the program's name in brackets, with anything in it.
    let fields: Vec<&str> = stat
        .as_deref()
        .and_then(|s| s.rsplit_once(')'))
        .map(|(_, f)| f.split(' ').collect())
        .unwrap_or_default();
    // As proc(5) numbers them, from 1; the third is the first behind the name.
    let field = |number: usize| fields.get(number - 2).and_then(|f| f.parse::<f64>().ok());
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Usage {
        resident_bytes: field(24).map(|pages| pages * rustix::param::page_size() as f64),
        open_files: std::fs::read_dir("/proc/self/fd")
            .ok()
            .map(|files| files.count() as f64 - 1.0),
        cpu_seconds: field(14)
            .zip(field(15))
            .map(|(user, system)| (user + system) / per_second),
        started_at: field(22)
            .zip(booted_at())
            .map(|(ticks, boot)| boot + ticks / per_second),
    }
}

fn booted_at() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    stat.lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

/// Asks for as many file descriptors as `connections` need beside the store's own. Says how many there are when they are
/// too few.
pub fn allow_files(connections: usize) -> Option<u64> {
    let needed = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(64);
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|l| l >= needed);
    if enough(limit.current) {
        return None;
    }
    let wanted = if enough(limit.maximum) {
        Some(needed)
    } else {
        limit.maximum
    };
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: wanted,
            maximum: limit.maximum,
        },
    )
    .is_ok();
    let now = if raised { wanted } else { limit.current };
    now.filter(|n| *n < needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_uses_something() {
        let usage = usage();
        assert!(usage.resident_bytes.unwrap() > 100_000.0);
        assert!(usage.open_files.unwrap() >= 3.0);
        assert!(usage.cpu_seconds.unwrap() < 10_000.0);
        assert!(usage.started_at.unwrap() > 1_600_000_000.0);
    }
}
