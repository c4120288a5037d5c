//! The check that an image from outside is the image of its remote segment.
//!
//! Neither the supplier of an image nor the places where it was kept are trusted. The checksum of an
//! image protects only against accidents, because whoever changes the image can correct its checksum.
//! So its digest decides: it was computed from the image that the database itself had written, when the
//! part was moved to object storage, and is stored in the table's pages. An image that agrees with it
//! is as trustworthy as those pages. Parts that were moved before digests existed have none. Everything
//! in their images that reading depends on is verified, so they do no harm, but their values are taken
//! on trust.

use std::fmt;

use lanes_columnar::digest::Digest;
use lanes_columnar::image::Image;

use crate::pg::datum;

/// The size and the digest that an image must have, known before the image arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    pub bytes: u32,
    pub digest: Option<Digest>,
}

/// Why an image is not the expected one.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    Length { found: usize, expected: u32 },
    Damaged(String),
    Changed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Length { found, expected } => {
                write!(formatter, "it has {found} bytes instead of {expected}")
            }
            Refusal::Damaged(failure) => write!(formatter, "it is damaged: {failure}"),
            Refusal::Changed => formatter
                .write_str("its SHA-256 is not the one that the database noted when it went away"),
        }
    }
}

impl Expected {
    /// Whether an image from outside is the expected one.
    pub fn check(&self, image: &[u8]) -> Result<(), Refusal> {
        let parsed = parse(image, self.bytes)?;
        match self.digest {
            Some(digest) if Digest::of(image) == digest => Ok(()),
            Some(_) => Err(Refusal::Changed),
            None => parsed
                .verify_sealed(|_, item| datum::is_item(item))
                .map_err(|failure| Refusal::Damaged(failure.to_string())),
        }
    }
}

/// An image of so many bytes whose checksum is right.
pub fn parse(image: &[u8], bytes: u32) -> Result<Image<'_>, Refusal> {
    if image.len() != bytes as usize {
        return Err(Refusal::Length {
            found: image.len(),
            expected: bytes,
        });
    }
    Image::parse(image).map_err(|failure| Refusal::Damaged(failure.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanes_columnar::column::Column;
    use lanes_columnar::image;
    use lanes_columnar::kind::LaneKind;

    /// The image of a column of one text.
    fn image_of(text: &[u8]) -> Vec<u8> {
        let mut item = Vec::new();
        datum::item_from_payload(text, true, &mut item);
        image_of_item(&item)
    }

    fn image_of_item(item: &[u8]) -> Vec<u8> {
        let mut column = Column::new(LaneKind::Varlena {
            dictionary: true,
            packed: true,
        });
        column.push_item(item);
        let mut bytes = Vec::new();
        image::encode_sealed(&[column], 1, &[], &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_whole_image_that_is_not_the_one_that_was_written_is_refused() {
        let (right, other) = (image_of(b"seven"), image_of(b"eight"));
        assert_eq!(right.len(), other.len());
        let mut expected = Expected {
            bytes: right.len() as u32,
            digest: Some(Digest::of(&right)),
        };
        assert_eq!(expected.check(&right), Ok(()));
        assert_eq!(expected.check(&other), Err(Refusal::Changed));
        // Nothing more is known of it.
        expected.digest = None;
        assert_eq!(expected.check(&other), Ok(()));
    }

    #[test]
    fn an_image_without_a_digest_has_no_item_that_points_elsewhere() {
        // As of a value out of line, which reading would follow.
        let pointing = image_of_item(&[1, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut expected = Expected {
            bytes: pointing.len() as u32,
            digest: None,
        };
        let refused = expected.check(&pointing);
        assert!(matches!(refused, Err(Refusal::Damaged(_))), "{refused:?}");
        let plain = image_of(b"plain");
        expected.bytes = plain.len() as u32;
        assert_eq!(expected.check(&plain), Ok(()));
    }

    #[test]
    fn damage_is_told_from_change() {
        let right = image_of(b"seven");
        let expected = Expected {
            bytes: right.len() as u32,
            digest: Some(Digest::of(&right)),
        };
        let mut damaged = right.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(matches!(expected.check(&damaged), Err(Refusal::Damaged(_))));
        let cut = &right[..right.len() - 1];
        assert!(matches!(expected.check(cut), Err(Refusal::Length { .. })));
    }
}
