//! A label set as a value of type jsonb.
//!
//! ```text
//! varlena header │ header of the object │ an entry for each name │ an entry for each value │ names │ values
//! ```
//! PostgreSQL's `jsonb_in` makes the same of any JSON text, in about a microsecond. A panel reads the label sets of
//! thousands of series, which are all objects of texts. What is anything else here, or cannot be told to be the same,
//! is left to `jsonb_in`.

use lanes_labels::label_set;
use pgrx::pg_sys;

use crate::pg::text;

/// `JB_FOBJECT`: the container is an object. Its other bits hold the number of pairs.
const OBJECT: u32 = 0x2000_0000;
/// `JENTRY_HAS_OFF`: the entry tells where its text ends, not how long it is.
const HAS_OFFSET: u32 = 0x8000_0000;
/// `JB_OFFSET_STRIDE`: one of so many entries tells that.
const OFFSET_STRIDE: usize = 32;
/// `JENTRY_OFFLENMASK`: the most that an entry can tell. Entries of texts have no other bits.
const TEXTS_BYTES_MAX: usize = 0x0fff_ffff;

/// The value in memory of the current context.
pub fn of_label_set(set: &str) -> pg_sys::Datum {
    let made = bytes_of(set).map(|bytes| {
        // SAFETY: room for all bytes, which begin with a varlena header.
        unsafe {
            let value = pg_sys::palloc(bytes.len()).cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), value, bytes.len());
            pg_sys::Datum::from(value)
        }
    });
    made.unwrap_or_else(|| {
        let mut json = text::server_text(set.as_bytes()).into_owned();
        json.push(0);
        let json = pg_sys::Datum::from(json.as_ptr());
        // SAFETY: the input function of jsonb takes a text that ends in a zero, and copies what it keeps.
        let value = unsafe { pgrx::direct_function_call_as_datum(pg_sys::jsonb_in, &[Some(json)]) };
        value.expect("the input function of jsonb gives a value")
    })
}

/// The bytes of the value; none if it had better be made by PostgreSQL.
fn bytes_of(set: &str) -> Option<Vec<u8>> {
    if set.contains('\\') || !text::is_server_utf8(set) {
        return None;
    }
    let mut labels = label_set::parse(set).ok()?;
    // Names of an object are in the order of their lengths, then of their bytes.
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
