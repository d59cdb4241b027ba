//! Finding a name among those that a schema knows. Every member of a message and every value of an `enum` is looked up, so this is
//! where a check spends its time.

/// Names, found by a hash: no text is compared but one that is found and longer than [`Key::WHOLE`].
#[derive(Debug, Default)]
pub(super) struct Names<'s> {
    known: Box<[(Key, &'s str)]>,
    /// By a name's hash, or behind it, its index in `known` and one; 0 where there is none.
    slots: Box<[u16]>,
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
    fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
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

impl<'s> Names<'s> {
    /// Each once.
    pub(super) fn new(names: impl Iterator<Item = &'s str>) -> Self {
        let known: Box<[_]> = names.map(|name| (Key::of(name), name)).collect();
        // At most a quarter is in use, so that a look-up rarely meets another's slot; and there always is a free one.
        let mut slots = vec![0; (known.len() * 4).next_power_of_two().max(2)];
        for ((key, _), index) in known.iter().zip(1..) {
            let mut slot = slot_of(*key, slots.len());
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

    /// The index of a name.
    #[inline]
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let key = Key::of(name);
        let mut slot = slot_of(key, self.slots.len());
        loop {
            let index = usize::from(*self.slots.get(slot)?).checked_sub(1)?;
            let (known, text) = self.known.get(index)?;
            if *known == key && (key.length <= Key::WHOLE || *text == name) {
                return Some(index);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// In their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'s str> {
        self.known.iter().map(|(_, name)| *name)
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
            let table = Names::new(known.iter().map(String::as_str));
            for name in &names {
                assert_eq!(
                    table.find(name),
                    known.iter().position(|known| known == name),
                    "{name}"
                );
            }
        }
    }
}
