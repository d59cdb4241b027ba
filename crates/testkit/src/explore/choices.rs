//! From one scheduler to all its schedules.

use crate::random::SeededRandom;

/// Answers "which of these?" for a scheduler: in every way in turn, or as a seed has it.
///
/// A scheduler that asks the same questions after the same answers is run again and again; each run takes a way that
/// was not taken before, deepest question first.
pub struct Choices {
    path: Vec<Choice>,
    place: usize,
    random: Option<SeededRandom>,
}

struct Choice {
    taken: usize,
    of: usize,
}

impl Choices {
    /// Every way in turn; the first takes the first of everything.
    #[must_use]
    pub fn all() -> Self {
        Self {
            path: Vec::new(),
            place: 0,
            random: None,
        }
    }

    /// One way, drawn by a seed.
    #[must_use]
    pub fn drawn(seed: u64) -> Self {
        Self {
            path: Vec::new(),
            place: 0,
            random: Some(SeededRandom::new(seed)),
        }
    }

    /// Whether something out of the ordinary happens: both in turn, or once in four times.
    pub fn rarely(&mut self) -> bool {
        self.choose(2, 4) == 1
    }

    /// Picks one of `of` (at least one), from 0.
    pub fn pick(&mut self, of: usize) -> usize {
        self.choose(of, of)
    }

    /// Picks one of `of`, from 0: each in turn; a seed takes the first three times in four.
    pub fn pick_rarely(&mut self, of: usize) -> usize {
        self.choose(of, of * 4)
    }

    /// Picks one of `of`; a seed draws among `among`, of which those from `of` on stand for the first.
    fn choose(&mut self, of: usize, among: usize) -> usize {
        let place = self.place;
        self.place += 1;
        if let Some(choice) = self.path.get(place) {
            assert_eq!(
                choice.of, of,
                "a scheduler must ask the same after the same answers"
            );
            return choice.taken;
        }
        let taken = match &self.random {
            Some(random) => {
                let drawn = usize::try_from(random.next_u64() % (among as u64)).unwrap_or(0);
                if drawn < of { drawn } else { 0 }
            }
            None => 0,
        };
        self.path.push(Choice { taken, of });
        taken
    }

    /// Goes on to the next way; `false` when there is none.
    pub fn next_way(&mut self) -> bool {
        self.place = 0;
        if self.random.is_some() {
            return false;
        }
        while let Some(last) = self.path.last_mut() {
            last.taken += 1;
            if last.taken < last.of {
                return true;
            }
            self.path.pop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_taken_once() {
        let mut choices = Choices::all();
        let mut ways = Vec::new();
        loop {
            let first = choices.pick(3);
            let second = if first == 1 { choices.pick(2) } else { 9 };
            ways.push((first, second));
            if !choices.next_way() {
                break;
            }
        }
        assert_eq!(ways, [(0, 9), (1, 0), (1, 1), (2, 9)]);
    }

    #[test]
    fn a_seed_decides_the_way() {
        let way = |seed| {
            let mut choices = Choices::drawn(seed);
            (0..8).map(|_| choices.pick(5)).collect::<Vec<_>>()
        };
        assert_eq!(way(3), way(3));
        assert_ne!(way(3), way(4));
    }
}
