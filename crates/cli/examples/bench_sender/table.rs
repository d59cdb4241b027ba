//! What was measured, beside its bar.

use crate::measure::Worked;

/// Prints lines as they come, and remembers whether a bar was missed.
#[derive(Debug, Default)]
pub(crate) struct Table {
    missed: usize,
}

impl Table {
    pub(crate) fn begin(&mut self, what: &str) {
        println!("\n| {what} | | bar |\n|---|---|---|");
    }

    pub(crate) fn told(&mut self, what: &str, measured: f64) {
        println!("| {what} | {} | |", number(measured));
    }

    pub(crate) fn worked(&mut self, worked: &Worked) {
        self.told("· processor time a message, µs: relay", worked.relay_micros);
        if let Some(server) = worked.server_micros {
            self.told("· the server's process", server);
        }
        self.told("· the bus", worked.bus_micros);
        self.told("· the relay's memory, MiB", worked.memory);
    }

    pub(crate) fn at_least(&mut self, what: &str, measured: f64, bar: f64) {
        self.held(what, measured, "at least", bar, measured >= bar);
    }

    pub(crate) fn at_most(&mut self, what: &str, measured: f64, bar: f64) {
        self.held(what, measured, "at most", bar, measured <= bar);
    }

    fn held(&mut self, what: &str, measured: f64, how: &str, bar: f64, met: bool) {
        let missed = if met { "" } else { ": missed" };
        self.missed += usize::from(!met);
        println!(
            "| {what} | {} | {how} {}{missed} |",
            number(measured),
            number(bar)
        );
    }

    pub(crate) fn all_met(&self) -> bool {
        self.missed == 0
    }
}

fn number(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}
