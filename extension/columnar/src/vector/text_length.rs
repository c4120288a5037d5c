//! The length of texts.

use super::external_value::RowFunction;
use super::frame::Frame;
use super::number::{Number, Scalar};
use super::selection::Selection;
use super::text::item_payload;

/// How a text is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextUnit {
    /// In bytes.
    Bytes,
    /// In characters of valid UTF-8.
    Utf8,
}

/// The length of the text that a row has in a column.
pub struct TextLength {
    attribute: usize,
    unit: TextUnit,
}

impl TextLength {
    /// The length of the texts of an attribute.
    pub fn new(attribute: usize, unit: TextUnit) -> TextLength {
        TextLength { attribute, unit }
    }

    fn of(&self, text: &[u8]) -> i32 {
        let length = match self.unit {
            TextUnit::Bytes => text.len(),
            // All bytes of a character but its first are between these.
            TextUnit::Utf8 => text.iter().filter(|byte| (**byte as i8) >= -64).count(),
        };
        length as i32
    }
}

impl RowFunction for TextLength {
    fn compute(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        let lane = frame.lane(self.attribute);
        let known = frame.present(self.attribute, rows);
        rows.for_each(|row| {
            // SAFETY: the lane has an item for each row that is not NULL.
            let length = known.contains(row).then(|| unsafe {
                self.of(item_payload(lane.pointer(frame.place + row)))
                    .to_scalar()
            });
            take(row, length);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_by_their_first_bytes() {
        for text in [
            "",
            "a",
            "ä",
            "a\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}",
            "日本語 text",
        ] {
            let length = |unit| TextLength::new(0, unit).of(text.as_bytes());
            assert_eq!(
                length(TextUnit::Utf8),
                text.chars().count() as i32,
                "{text}"
            );
            assert_eq!(length(TextUnit::Bytes), text.len() as i32, "{text}");
        }
    }
}
