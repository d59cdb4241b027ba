//! A block's heads: all that is known of its messages but their bodies, as bytes.
//!
//! One head after another: the distances from the one before (place, time), the ids as bytes, texts with their lengths before them.
//! What repeats from head to head is left to the compression.

use std::ops::Range;

use storybus_core::domain::archived::Head;
use storybus_core::domain::message::{About, Attributes};
use storybus_core::domain::time::Millis;
use storybus_protocol::id::{CorrelationId, MessageId};

use crate::rows;

/// The first byte: another layout has another.
const LAYOUT: u8 = 1;

const STORY: u8 = 1;
const STORY_ID: u8 = 2;
const SEQUENCE_NUMBER: u8 = 4;
const FAMILY: u8 = 8;
/// The correlation id is written as most write it, so its bytes alone are kept.
const PLAIN_CORRELATION: u8 = 16;

/// The bytes are not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// Writes heads.
pub(super) struct Encoder {
    out: Vec<u8>,
    seq: i64,
    at: i64,
}

impl Encoder {
    /// Begins with where the first one lies, and when it was published.
    pub(super) fn new(seq: i64, at: Millis) -> Self {
        Self {
            out: vec![LAYOUT],
            seq,
            at: at.0,
        }
    }

    /// Adds one; `body` is the length of its body.
    pub(super) fn push(&mut self, seq: i64, head: &Head, body: usize) {
        let (about, attributes) = (&head.about, &head.attributes);
        let correlation = attributes.correlation_id.parse::<CorrelationId>().ok();
        let plain = correlation.filter(|id| id.to_string() == attributes.correlation_id);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        self.whole(seq.wrapping_sub(self.seq).cast_unsigned());
        self.whole(head.published_at.0.wrapping_sub(self.at).cast_unsigned());
        (self.seq, self.at) = (seq, head.published_at.0);
        self.whole(u64::try_from(body).unwrap_or(u64::MAX));
        self.out.extend_from_slice(head.message_id.as_bytes());
        self.out.push(
            flag(about.story.is_some(), STORY)
                | flag(about.story_id.is_some(), STORY_ID)
                | flag(about.sequence_number.is_some(), SEQUENCE_NUMBER)
                | flag(attributes.family.is_some(), FAMILY)
                | flag(plain.is_some(), PLAIN_CORRELATION),
        );
        about
            .story
            .iter()
            .for_each(|story| self.out.extend_from_slice(story));
        match plain {
            Some(id) => self.out.extend_from_slice(id.as_bytes()),
            None => self.text(&attributes.correlation_id),
        }
        let optional = [&about.story_id, &about.sequence_number, &attributes.family];
        optional.into_iter().flatten().for_each(|text| self.text(text));
        for text in [
            &attributes.message_type,
            &attributes.topic,
            attributes.producer_id.as_str(),
            &attributes.system_id,
            &attributes.som_version,
        ] {
            self.text(text);
        }
    }

    /// All of them.
    pub(super) fn finish(self) -> Vec<u8> {
        self.out
    }

    fn text(&mut self, text: &str) {
        self.whole(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Seven bits a byte, the low ones first; the high bit says that more follow.
    fn whole(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(0x80 | (number & 0x7f) as u8);
            number >>= 7;
        }
        self.out.push((number & 0x7f) as u8);
    }
}

/// The correlation id of a head.
#[derive(Debug, Clone, Copy)]
enum Correlation<'a> {
    Plain([u8; 16]),
    Text(&'a str),
}

/// One head, its texts where they were decompressed.
#[derive(Debug, Clone)]
pub(super) struct HeadRef<'a> {
    pub(super) seq: i64,
    pub(super) published_at: Millis,
    pub(super) message_id: [u8; 16],
    pub(super) story: Option<[u8; 16]>,
    /// Where its body lies in the block's.
    pub(super) body: Range<usize>,
    correlation: Correlation<'a>,
    story_id: Option<&'a str>,
    sequence_number: Option<&'a str>,
    family: Option<&'a str>,
    message_type: &'a str,
    topic: &'a str,
    producer: &'a str,
    system_id: &'a str,
    som_version: &'a str,
}

impl HeadRef<'_> {
    /// The correlation id's bytes.
    pub(super) fn correlation(&self) -> Option<[u8; 16]> {
        match self.correlation {
            Correlation::Plain(bytes) => Some(bytes),
            Correlation::Text(text) => text.parse().ok().map(|id: CorrelationId| *id.as_bytes()),
        }
    }

    pub(super) fn to_head(&self) -> Result<Head, Damaged> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Ok(Head {
            position: rows::position(self.seq),
            message_id: MessageId::from_bytes(self.message_id),
            published_at: self.published_at,
            attributes: Attributes {
                message_type: self.message_type.to_owned(),
                family: text(self.family),
                topic: self.topic.to_owned(),
                correlation_id: match self.correlation {
                    Correlation::Plain(bytes) => CorrelationId::from_bytes(bytes).to_string(),
                    Correlation::Text(text) => text.to_owned(),
                },
                producer_id: self.producer.parse().map_err(|_| Damaged)?,
                system_id: self.system_id.to_owned(),
                som_version: self.som_version.to_owned(),
            },
            about: About {
                story: self.story,
                story_id: text(self.story_id),
                sequence_number: text(self.sequence_number),
            },
        })
    }
}

/// Reads heads.
pub(super) struct Heads<'a> {
    rest: &'a [u8],
    seq: i64,
    at: i64,
    body: usize,
}

impl<'a> Heads<'a> {
    /// Of bytes that were begun with this place and time.
    pub(super) fn new(bytes: &'a [u8], seq: i64, at: Millis) -> Result<Self, Damaged> {
        let (layout, rest) = bytes.split_first().ok_or(Damaged)?;
        if *layout != LAYOUT {
            return Err(Damaged);
        }
        Ok(Self {
            rest,
            seq,
            at: at.0,
            body: 0,
        })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    fn sixteen(&mut self) -> Result<[u8; 16], Damaged> {
        self.take(16)?.try_into().map_err(|_| Damaged)
    }

    fn whole(&mut self) -> Result<u64, Damaged> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first().ok_or(Damaged)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    fn length(&mut self) -> Result<usize, Damaged> {
        usize::try_from(self.whole()?).map_err(|_| Damaged)
    }

    fn text(&mut self) -> Result<&'a str, Damaged> {
        let len = self.length()?;
        std::str::from_utf8(self.take(len)?).map_err(|_| Damaged)
    }

    fn one(&mut self) -> Result<HeadRef<'a>, Damaged> {
        self.seq = self.seq.wrapping_add(self.whole()?.cast_signed());
        self.at = self.at.wrapping_add(self.whole()?.cast_signed());
        let begin = self.body;
        self.body = begin.checked_add(self.length()?).ok_or(Damaged)?;
        let message_id = self.sixteen()?;
        let flags = *self.take(1)?.first().ok_or(Damaged)?;
        let is = |flag: u8| flags & flag != 0;
        let story = is(STORY).then(|| self.sixteen()).transpose()?;
        let correlation = if is(PLAIN_CORRELATION) {
            Correlation::Plain(self.sixteen()?)
        } else {
            Correlation::Text(self.text()?)
        };
        Ok(HeadRef {
            seq: self.seq,
            published_at: Millis(self.at),
            message_id,
            story,
            body: begin..self.body,
            correlation,
            story_id: is(STORY_ID).then(|| self.text()).transpose()?,
            sequence_number: is(SEQUENCE_NUMBER).then(|| self.text()).transpose()?,
            family: is(FAMILY).then(|| self.text()).transpose()?,
            message_type: self.text()?,
            topic: self.text()?,
            producer: self.text()?,
            system_id: self.text()?,
            som_version: self.text()?,
        })
    }
}

impl<'a> Iterator for Heads<'a> {
    type Item = Result<HeadRef<'a>, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let one = self.one();
        if one.is_err() {
            self.rest = &[];
        }
        Some(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(n: i64, correlation: &str, full: bool) -> Head {
        let text = |text: &str| full.then(|| text.to_owned());
        Head {
            position: rows::position(n * 3),
            message_id: MessageId::from_bytes([n as u8; 16]),
            published_at: Millis(1000 + n / 2),
            attributes: Attributes {
                message_type: "story.context".to_owned(),
                family: text("story-context"),
                topic: "som.story".to_owned(),
                correlation_id: correlation.to_owned(),
                producer_id: "p1".parse().unwrap(),
                system_id: "ncs-\u{fc}".to_owned(),
                som_version: "1.0.0".to_owned(),
            },
            about: About {
                story: full.then_some([7; 16]),
                story_id: text("st\u{f8}ry"),
                sequence_number: text("12"),
            },
        }
    }

    fn encoded() -> (Vec<u8>, Vec<Head>) {
        let correlations = [
            "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07",
            "0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B07",
            "",
        ];
        let heads: Vec<Head> = (0..9)
            .map(|n| head(n, correlations[n as usize % 3], n % 2 == 0))
            .collect();
        let mut encoder = Encoder::new(0, Millis(1000));
        for (n, head) in (0..).zip(&heads) {
            encoder.push(n * 3, head, 200 * n as usize);
        }
        (encoder.finish(), heads)
    }

    #[test]
    fn what_is_written_is_read() {
        let (bytes, heads) = encoded();
        let mut begin = 0;
        let mut count = 0;
        for (n, (read, head)) in Heads::new(&bytes, 0, Millis(1000))
            .unwrap()
            .zip(&heads)
            .enumerate()
        {
            let read = read.unwrap();
            assert_eq!(read.to_head().as_ref(), Ok(head));
            assert_eq!(read.body, begin..begin + 200 * n);
            begin = read.body.end;
            count += 1;
        }
        assert_eq!(count, heads.len());
    }

    #[test]
    fn damage_is_an_error_or_another_head_and_never_a_panic() {
        let (bytes, heads) = encoded();
        for end in 0..bytes.len() {
            let read = Heads::new(&bytes[..end], 0, Millis(0)).map_or(0, |heads| heads.flatten().count());
            assert!(read < heads.len() || end == bytes.len());
        }
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                if let Ok(heads) = Heads::new(&bytes, 0, Millis(0)) {
                    heads.flatten().for_each(|head| drop(head.to_head()));
                }
            }
        }
    }
}
