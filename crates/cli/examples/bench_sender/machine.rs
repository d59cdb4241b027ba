//! What the system knows of processes.

use std::fs;

/// Ticks of processor time a second, on Linux.
const TICKS: f64 = 100.0;

/// How busy the machine is: figures of a busy one are lower bounds.
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let averages: Vec<&str> = load.split(' ').take(3).collect();
    format!("{cores} cores; load {}", averages.join(" "))
}

/// Processor time of a process so far, in seconds.
pub(crate) fn processor_time(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name of the program is in parentheses and may hold anything; after it the state is the first field.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = |at: usize| {
        fields
            .split_whitespace()
            .nth(at)
            .and_then(|field| field.parse::<f64>().ok())
    };
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS
}

/// The most memory that a process had, in MiB.
pub(crate) fn memory(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}
