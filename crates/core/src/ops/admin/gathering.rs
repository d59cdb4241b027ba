//! Pages of entries that may be large: they end at a number of bytes too.

use super::Page;

/// What the entries of a page weigh together, at most, unless one alone weighs more.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// How many entries are asked for before it is known what one weighs: the heaviest has some 240 kB.
const FIRST: usize = 16;

/// A page that is read bit by bit, so that no more is read than it may hold.
pub(crate) struct Gathering<T> {
    entries: Vec<T>,
    limit: usize,
    bytes: usize,
    heaviest: usize,
    asked: usize,
    exhausted: bool,
}

impl<T> Gathering<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            limit,
            bytes: 0,
            heaviest: 1,
            asked: 0,
            exhausted: false,
        }
    }

    /// How many entries to read next, behind the last; `None` when it is full or there are no more.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let room = self.limit.saturating_add(1) - self.entries.len();
        if self.exhausted || room == 0 || self.bytes >= PAGE_BYTES {
            return None;
        }
        let fit = (PAGE_BYTES - self.bytes) / self.heaviest;
        let most = if self.entries.is_empty() {
            FIRST
        } else {
            fit.max(FIRST)
        };
        self.asked = room.min(most);
        Some(self.asked)
    }

    /// The last that was read.
    pub(crate) fn last(&self) -> Option<&T> {
        self.entries.last()
    }

    /// Adds what was read.
    pub(crate) fn add(&mut self, found: Vec<T>, weight: impl Fn(&T) -> usize) {
        self.exhausted = found.len() < self.asked;
        for entry in found {
            let weight = weight(&entry);
            self.heaviest = self.heaviest.max(weight);
            // one entry at least, else nobody could read on
            if self.bytes >= PAGE_BYTES && !self.entries.is_empty() {
                self.exhausted = false;
                return;
            }
            self.bytes += weight;
            self.entries.push(entry);
        }
    }

    /// The page; `place` names where an entry stands.
    pub(crate) fn page(mut self, place: impl Fn(&T) -> String) -> Page<T> {
        let more = self.entries.len() > self.limit || !self.exhausted;
        self.entries.truncate(self.limit);
        let next = self.entries.last().filter(|_| more).map(place);
        Page {
            entries: self.entries,
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a list of entries with these weights, in pages of `limit`; the pages' lengths.
    fn pages(weights: &[usize], limit: usize) -> Vec<usize> {
        let all: Vec<(usize, usize)> = weights.iter().copied().enumerate().collect();
        let (mut from, mut lengths, mut seen) = (0, Vec::new(), Vec::new());
        loop {
            let mut page = Gathering::new(limit);
            while let Some(count) = page.next() {
                let behind = page.last().map_or(from, |(n, _)| n + 1);
                page.add(all.iter().skip(behind).take(count).copied().collect(), |e| e.1);
            }
            let page = page.page(|(n, _)| n.to_string());
            lengths.push(page.entries.len());
            seen.extend(page.entries);
            match page.next {
                Some(last) => from = last.parse::<usize>().unwrap() + 1,
                None => break,
            }
        }
        assert_eq!(seen, all, "every entry stands on one page");
        lengths
    }

    #[test]
    fn light_entries_fill_their_pages() {
        assert_eq!(pages(&[], 10), [0]);
        assert_eq!(pages(&[100; 10], 10), [10]);
        assert_eq!(pages(&[100; 11], 10), [10, 1]);
        assert_eq!(pages(&[100; 2500], 1000), [1000, 1000, 500]);
    }

    #[test]
    fn heavy_entries_end_a_page_early() {
        let lengths = pages(&[230_000; 100], 1000);
        assert!(lengths.iter().all(|n| *n <= 19), "{lengths:?}");
        assert_eq!(pages(&[PAGE_BYTES * 2; 3], 1000), [1, 1, 1]);
        let mixed: Vec<usize> = (0..500)
            .map(|n| if n % 50 == 49 { 240_000 } else { 300 })
            .collect();
        pages(&mixed, 1000);
    }
}
