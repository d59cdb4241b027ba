//! Finding a name among those that a schema knows. Every member of a message and every value of an `enum` is looked up, so this is
//! where a check spends its time.

/// Names and what is said of each, found by a hash: no text is compared but one that is found and longer than [`Key::WHOLE`].
#[derive(Debug)]
pub(super) struct Names<'s, T = ()> {
    known: Box<[Known<'s, T>]>,
    /// By a name's hash, or behind it, its index in `known` and one; 0 where there is none.
    slots: Box<[u16]>,
}

#[derive(Debug)]
struct Known<'s, T> {
    key: Key,
    name: &'s str,
    said: T,
}

impl<T> Known<'_, T> {
    #[inline]
    fn is(&self, key: Key, name: &[u8]) -> bool {
        self.key == key && (key.length <= Key::WHOLE || self.name.as_bytes() == name)
    }
}

/// A name as numbers: what is compared, and hashed, instead of its text. Up to 16 bytes they say all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    length: usize,
    head: u64,
    tail: u64,
}

impl Key {
    /// The longest name that its numbers say all of.
    const WHOLE: usize = 16;

    #[inline]
    fn of(bytes: &[u8]) -> Self {
        let (head, tail) = if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
            (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
        } else if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
            (u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into())
        } else {
            let byte = |at: usize| u64::from(bytes.get(at).copied().unwrap_or_default());
            (byte(0), byte(1) << 8 | byte(2))
        };
        Self {
            length: bytes.len(),
            head,
            tail,
        }
    }

    /// Spread over the high bits.
    #[inline]
    fn hash(self) -> u64 {
        let mixed = self.head ^ self.tail.rotate_left(31) ^ self.length as u64;
        mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl<'s, T> Names<'s, T> {
    /// Each once.
    pub(super) fn new(names: impl Iterator<Item = (&'s str, T)>) -> Self {
        let known: Box<[_]> = names
            .map(|(name, said)| Known {
                key: Key::of(name.as_bytes()),
                name,
                said,
            })
            .collect();
        // At most a quarter is in use, so that a look-up rarely meets another's slot; and there always is a free one.
        let mut slots = vec![0; (known.len() * 4).next_power_of_two().max(2)];
        for (known, index) in known.iter().zip(1..) {
            let mut slot = slot_of(known.key, slots.len());
            while slots.get(slot).is_some_and(|taken| *taken != 0) {
                slot = (slot + 1) % slots.len();
            }
            if let Some(free) = slots.get_mut(slot) {
                *free = index;
            }
        }
        Self {
            known,
            slots: slots.into(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// What is said of a name, if it is known.
    pub(super) fn find(&self, name: &[u8]) -> Option<&T> {
        let index = self.index(Key::of(name), name)?;
        self.known.get(index).map(|known| &known.said)
    }

    /// The same for names that come in the order of the known ones, more or less: `next` is the index that is tried first, and becomes the
    /// one behind what is found. It starts at 0.
    #[inline]
    pub(super) fn find_in_order(&self, next: &mut usize, name: &[u8]) -> Option<&T> {
        let key = Key::of(name);
        if let Some(known) = self.known.get(*next)
            && known.is(key, name)
        {
            *next += 1;
            return Some(&known.said);
        }
        let index = self.index(key, name)?;
        *next = index + 1;
        self.known.get(index).map(|known| &known.said)
    }

    #[inline(never)]
    fn index(&self, key: Key, name: &[u8]) -> Option<usize> {
        let mut slot = slot_of(key, self.slots.len());
        loop {
            let index = usize::from(*self.slots.get(slot)?).checked_sub(1)?;
            if self.known.get(index)?.is(key, name) {
                return Some(index);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// In their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'s str, &T)> {
        self.known.iter().map(|known| (known.name, &known.said))
    }
}

/// The first slot of a name; the number of slots is a power of two, at least 2.
#[inline]
fn slot_of(key: Key, slots: usize) -> usize {
    (key.hash() >> (64 - slots.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn a_name_is_found_and_no_other() {
        // of every length about the borders of a key's numbers, and such as differ in one place alone
        let mut names: Vec<String> = (0..40).map(|length| "x".repeat(length)).collect();
        for length in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 40] {
            for at in 0..length {
                let mut name = "a".repeat(length);
                name.replace_range(at..=at, "b");
                names.push(name);
            }
        }
        for known in [&names[..], &names[..1], &names[7..20], &[]] {
            let table = Names::new(known.iter().map(String::as_str).zip(0..));
            for name in &names {
                assert_eq!(
                    table.find(name.as_bytes()).copied(),
                    known.iter().position(|known| known == name),
                    "{name}"
                );
            }
            // also where another one is expected, before, at and behind the end
            let mut next = 0;
            for name in known.iter().chain(known.iter().rev()).chain(&names) {
                let found = table.find_in_order(&mut next, name.as_bytes()).copied();
                assert_eq!(found, known.iter().position(|known| known == name), "{name}");
            }
        }
    }
}
