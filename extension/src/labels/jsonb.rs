//! Converts a label set to a value of type jsonb.
//!
//! ```text
//! varlena header │ header of the object │ an entry for each name │ an entry for each value │ names │ values
//! ```
//! PostgreSQL's `jsonb_in` makes the same value of any JSON text in about a microsecond. A panel
//! reads the label sets of thousands of series, which are all objects of texts. Any other text, and
//! any whose result might differ, is left to `jsonb_in`.

use lanes_labels::label_set;
use pgrx::pg_sys;

use crate::pg::text;

/// `JB_FOBJECT`: the container is an object. Its other bits hold the number of pairs.
const OBJECT: u32 = 0x2000_0000;
/// `JENTRY_HAS_OFF`: the entry holds the offset of its text's end, not the text's length.
const HAS_OFFSET: u32 = 0x8000_0000;
/// `JB_OFFSET_STRIDE`: one in this number of entries holds an offset.
const OFFSET_STRIDE: usize = 32;
/// `JENTRY_OFFLENMASK`: the largest length or offset of an entry. Entries of texts have no other bits.
const TEXTS_BYTES_MAX: usize = 0x0fff_ffff;

/// The value, in the current memory context.
pub fn of_label_set(set: &str) -> pg_sys::Datum {
    match bytes_of(set) {
        Some(bytes) => text::allocated(&bytes),
        None => text::jsonb_of_text(&text::server_text(set.as_bytes())),
    }
}

/// The bytes of the value; `None` if it is left to PostgreSQL.
fn bytes_of(set: &str) -> Option<Vec<u8>> {
    if set.contains('\\') || !text::is_server_utf8(set) {
        return None;
    }
    let mut labels = label_set::parse(set).ok()?;
    // The names of an object are sorted by length, then by their bytes.
    labels.sort_unstable_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    if labels.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let names = labels.iter().map(|(name, _)| name.as_bytes());
    let texts = names.chain(labels.iter().map(|(_, value)| value.as_bytes()));
    let texts_bytes: usize = texts.clone().map(<[u8]>::len).sum();
    let bytes = (2 + 2 * labels.len()) * size_of::<u32>() + texts_bytes;
    if texts_bytes > TEXTS_BYTES_MAX || bytes > TEXTS_BYTES_MAX {
        return None;
    }
    let mut value = Vec::with_capacity(bytes);
    let mut push = |word: u32| value.extend_from_slice(&word.to_ne_bytes());
    push((bytes as u32) << 2);
    push(labels.len() as u32 | OBJECT);
    let mut end = 0;
    for (place, text) in texts.clone().enumerate() {
        end += text.len() as u32;
        push(match place % OFFSET_STRIDE {
            0 => end | HAS_OFFSET,
            _ => text.len() as u32,
        });
    }
    texts.for_each(|text| value.extend_from_slice(text));
    Some(value)
}
