//! Bodies and heads as few bytes.
//!
//! One message alone compresses badly: its member names come once. A dictionary of what such messages have in common brings a
//! snapshot of 4 kB under one write unit, attribute names and keys included. A byte in front says how the rest was made, so that
//! another dictionary can follow while what was written with this one is kept. `examples/archive_dictionary.rs` makes the file
//! and tells the sizes.

use std::sync::OnceLock;

use storybus_core::domain::message::{About, Attributes};
use storybus_core::ports::StoreError;
use storybus_protocol::id::CorrelationId;
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CParameter, get_frame_content_size};

use crate::item::unreadable;

/// Trained on messages of our own; never changed, as messages were written with it.
const DICTIONARY: &[u8] = include_bytes!("dictionary-1.zstd");
/// Higher levels take many times as long for a percent: see the example.
const LEVEL: i32 = 9;
/// What no text in the archive is longer than: a damaged length must not take the memory.
const MAX: u64 = 1 << 20;

/// As it is.
const PLAIN: u8 = 0;
/// Compressed with [`DICTIONARY`].
const FIRST: u8 = 1;

/// Bytes in their stored form.
pub(super) fn pack(bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    static ENCODER: OnceLock<EncoderDictionary<'static>> = OnceLock::new();
    let encoder = ENCODER.get_or_init(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
    let packed = Compressor::with_prepared_dictionary(encoder).and_then(|mut compressor| {
        compressor.set_parameter(CParameter::DictIdFlag(false))?; // our own byte says it
        compressor.compress(bytes)
    });
    let packed = packed.map_err(|error| StoreError::Internal {
        reason: format!("compression failed: {error}"),
    })?;
    let (tag, rest) = if packed.len() < bytes.len() {
        (FIRST, packed.as_slice())
    } else {
        (PLAIN, bytes)
    };
    let mut out = Vec::with_capacity(1 + rest.len());
    out.push(tag);
    out.extend_from_slice(rest);
    Ok(out)
}

/// What was packed.
pub(super) fn unpack(stored: &[u8]) -> Result<Vec<u8>, StoreError> {
    static DECODER: OnceLock<DecoderDictionary<'static>> = OnceLock::new();
    match stored.split_first() {
        Some((&PLAIN, rest)) => Ok(rest.to_vec()),
        Some((&FIRST, rest)) => {
            let length = get_frame_content_size(rest).ok().flatten();
            let length = length
                .filter(|length| *length <= MAX)
                .ok_or_else(|| unreadable("a length"))?;
            let decoder = DECODER.get_or_init(|| DecoderDictionary::copy(DICTIONARY));
            Decompressor::with_prepared_dictionary(decoder)
                .and_then(|mut it| it.decompress(rest, usize::try_from(length).unwrap_or_default()))
                .map_err(unreadable)
        }
        _ => Err(unreadable("a form that this version does not know")),
    }
}

/// What a head holds besides the item's keys: type, family, topic, correlation id if it is not written as most write it,
/// producer, system, version, story id, sequence number.
type Texts<'a> = (
    &'a str,
    Option<&'a str>,
    &'a str,
    Option<&'a str>,
    &'a str,
    &'a str,
    &'a str,
    Option<&'a str>,
    Option<&'a str>,
);
/// The same, read.
type Owned = (
    String,
    Option<String>,
    String,
    Option<String>,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
);

/// A head's texts in their stored form.
pub(super) fn pack_head(
    attributes: &Attributes,
    about: &About,
    correlation: CorrelationId,
) -> Result<Vec<u8>, StoreError> {
    let sent = attributes.correlation_id.as_str();
    let texts: Texts<'_> = (
        &attributes.message_type,
        attributes.family.as_deref(),
        &attributes.topic,
        Some(sent).filter(|sent| *sent != correlation.to_string()),
        attributes.producer_id.as_str(),
        &attributes.system_id,
        &attributes.som_version,
        about.story_id.as_deref(),
        about.sequence_number.as_deref(),
    );
    pack(&serde_json::to_vec(&texts).map_err(unreadable)?)
}

/// What was packed, with what the item's keys say.
pub(super) fn unpack_head(
    stored: &[u8],
    story: Option<[u8; 16]>,
    correlation: CorrelationId,
) -> Result<(Attributes, About), StoreError> {
    let texts: Owned = serde_json::from_slice(&unpack(stored)?).map_err(unreadable)?;
    let (message_type, family, topic, sent, producer, system_id, som_version, story_id, sequence_number) =
        texts;
    let attributes = Attributes {
        message_type,
        family,
        topic,
        correlation_id: sent.unwrap_or_else(|| correlation.to_string()),
        producer_id: producer.parse().map_err(|_| unreadable("a producer's id"))?,
        system_id,
        som_version,
    };
    let about = About {
        story,
        story_id,
        sequence_number,
    };
    Ok((attributes, about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let snapshot = include_str!("../../../../events/story/3-developing.json");
        let noise: Vec<u8> = (0..240_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let empty: &[u8] = b"";
        for bytes in [
            snapshot.as_bytes(),
            empty,
            b"{}",
            noise.as_slice(),
            &[b' '; 240_000],
        ] {
            let packed = pack(bytes).unwrap();
            assert!(packed.len() <= bytes.len() + 1);
            assert_eq!(unpack(&packed).unwrap(), bytes);
        }
    }

    #[test]
    fn damage_is_an_error_or_other_bytes_and_never_a_panic() {
        let packed = pack(include_bytes!("../../../../events/story/4-corrected.json")).unwrap();
        for end in 0..packed.len() {
            assert!(unpack(&packed[..end]).is_err(), "{end}");
        }
        for at in 0..packed.len() {
            for change in [1, 0x80, 0xff] {
                let mut packed = packed.clone();
                packed[at] ^= change;
                drop(unpack(&packed));
            }
        }
    }
}
