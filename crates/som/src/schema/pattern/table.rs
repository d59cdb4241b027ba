//! From an expression's places to its table.

use std::collections::{BTreeMap, BTreeSet};

use super::read::Part;
use super::{DEAD, MATCHED, Pattern, SYMBOLS, Set};

/// The most states of a table. SOM's have a dozen.
const MOST_STATES: usize = 250;

/// The class of each symbol, and a symbol of each class: those that all places treat alike are one.
fn classes(places: &[Set]) -> (Box<[u8; SYMBOLS]>, Vec<usize>) {
    let mut classes = Box::new([0; SYMBOLS]);
    let mut count = 1;
    for set in places {
        // A class of which this place takes some and not others becomes two: `None` until it is known what it takes of it.
        let mut parted: Vec<Option<(bool, Option<u8>)>> = vec![None; usize::from(count)];
        for (class, taken) in classes.iter_mut().zip(set) {
            let Some(parts) = parted.get_mut(usize::from(*class)) else {
                continue;
            };
            match parts {
                None => *parts = Some((*taken, None)),
                Some((first, _)) if first == taken => {}
                Some((_, Some(other))) => *class = *other,
                Some((_, other)) => {
                    // There are fewer symbols than a byte counts.
                    *other = Some(count);
                    *class = count;
                    count += 1;
                }
            }
        }
    }
    let sample = |class: u8| classes.iter().position(|own| *own == class);
    let samples = (0..count).filter_map(sample).collect();
    (classes, samples)
}

/// The table in the making.
pub(super) struct Table {
    classes: Box<[u8; SYMBOLS]>,
    width: usize,
    next: Vec<u8>,
    matched: Vec<bool>,
    ends: Vec<bool>,
}

impl Table {
    pub(super) fn of(
        places: &[Set],
        whole: &Part,
        anchored: bool,
        to_the_end: bool,
    ) -> Result<Self, &'static str> {
        let takes = |place: usize, symbol: usize| {
            let set = places.get(place);
            set.and_then(|set| set.get(symbol)).copied().unwrap_or_default()
        };
        let (classes, samples) = classes(places);
        let mut follow: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in &whole.follow {
            follow.entry(*from).or_default().push(*to);
        }

        // A state is the places that the text so far may have ended at, and whether it may (still, or anew) begin.
        let mut table = Self {
            classes,
            width: samples.len(),
            next: Vec::new(),
            matched: Vec::new(),
            ends: Vec::new(),
        };
        type State = (bool, BTreeSet<usize>);
        let start: State = (true, BTreeSet::new());
        let mut states = vec![start.clone()];
        let mut numbers = BTreeMap::from([(start, 0u8)]);
        let mut at = 0;
        while let Some((begins, held)) = states.get(at).cloned() {
            let done = begins && whole.empty || held.iter().any(|place| whole.last.contains(place));
            table.matched.push(done && !to_the_end);
            table.ends.push(done);
            for symbol in &samples {
                let fresh = begins.then_some(&whole.first).into_iter().flatten();
                let further = held.iter().filter_map(|place| follow.get(place)).flatten();
                let reached: BTreeSet<usize> = fresh
                    .chain(further)
                    .copied()
                    .filter(|place| takes(*place, *symbol))
                    .collect();
                let state: State = (!anchored, reached);
                if !state.0 && state.1.is_empty() {
                    table.next.push(DEAD);
                    continue;
                }
                let number = match numbers.get(&state) {
                    Some(number) => *number,
                    None if states.len() == MOST_STATES => return Err("an expression with too many states"),
                    None => {
                        let number = states.len() as u8;
                        numbers.insert(state.clone(), number);
                        states.push(state);
                        number
                    }
                };
                table.next.push(number);
            }
            at += 1;
        }
        Ok(table)
    }

    pub(super) fn pattern(self, text: &str) -> Pattern<'_> {
        let matched = |state: u8| self.matched.get(usize::from(state)).copied().unwrap_or_default();
        let to_the_first_match = |state: &u8| if matched(*state) { MATCHED } else { *state };
        Pattern {
            text,
            classes: self.classes,
            next: self.next.iter().map(to_the_first_match).collect(),
            width: self.width,
            always: matched(0),
            ends: self.ends.into(),
        }
    }
}
