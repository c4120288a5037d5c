//! A sealed run as it comes to be streamed: its image, and where in that the lanes of its columns
//! lie.

use std::any::Any;
use std::ops::{Deref, Range};
use std::rc::Rc;

use crate::arena::{Images, KeptImage, Locks};
use crate::encoding::EncodedLane;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::kind::LaneKind;
use crate::zone_map::Zone;

/// A sealed run of which some rows are read.
pub struct SealedRun {
    /// Its image.
    pub image: ImageBytes,
    /// The number of rows that the image must contain.
    pub image_rows: usize,
    /// The rows of the image that have places.
    pub rows: Range<usize>,
    /// The place of the first of them.
    pub place: usize,
}

/// The bytes of an image.
pub enum ImageBytes {
    /// Read for this alone.
    Own(Vec<u8>),
    /// Kept by the arena, and verified.
    Kept {
        /// The image, as long as the value lives.
        image: KeptImage<'static>,
        /// Keeps the image in place.
        _pin: Rc<dyn Any>,
    },
}

impl ImageBytes {
    /// An image that is never freed and whose checksum was verified.
    pub fn kept_for_ever(image: KeptImage<'static>) -> ImageBytes {
        ImageBytes::Kept {
            image,
            _pin: Rc::new(()),
        }
    }

    /// The image of the run that begins at `first_row` and has so many bytes, if the arena keeps it. Its checksum was
    /// verified before the arena got it.
    pub fn kept<L: Locks + 'static>(
        images: &Rc<Images<L>>,
        first_row: u64,
        bytes: usize,
    ) -> Option<ImageBytes> {
        let image = images.of_run(first_row)?;
        if image.bytes().len() != bytes {
            return None;
        }
        // SAFETY: the pin that the value holds keeps what the image points to, and no reference to it leaves the value.
        let image = unsafe { std::mem::transmute::<KeptImage<'_>, KeptImage<'static>>(image) };
        Some(ImageBytes::Kept {
            image,
            _pin: images.clone(),
        })
    }

    /// The zone of a vector of a column, which `find` works out; the arena notes it with an image
    /// of its own.
    pub(super) fn zone(
        &self,
        (column, vector): (usize, usize),
        kind: LaneKind,
        find: impl FnOnce() -> Option<Zone>,
    ) -> Option<Zone> {
        match self {
            ImageBytes::Own(_) => find(),
            ImageBytes::Kept { image, .. } => image.zone(column, vector, kind, find),
        }
    }

    pub(super) fn parse(&self) -> Result<Image<'_>> {
        match self {
            ImageBytes::Own(_) => Image::parse(self),
            ImageBytes::Kept { .. } => Image::reparse(self),
        }
    }
}

impl Deref for ImageBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            ImageBytes::Own(bytes) => bytes,
            ImageBytes::Kept { image, .. } => image.bytes(),
        }
    }
}

impl SealedRun {
    /// Where in the image the lane of each column lies; `None` if one of them is not sealed.
    pub(super) fn lanes(
        &self,
        kinds: &[LaneKind],
        places: usize,
    ) -> Result<Option<Vec<Option<Range<usize>>>>> {
        let image = self.image.parse()?;
        if image.rows() != self.image_rows
            || self.rows.start > self.rows.end
            || self.rows.end > image.rows()
            || self.place + self.rows.len() > places
        {
            return Err(Error::Malformed("a sealed image does not have these rows"));
        }
        let mut lanes = Vec::with_capacity(kinds.len());
        for (index, &kind) in kinds.iter().enumerate() {
            let is_there = kind != LaneKind::Absent && index < image.columns();
            let place = image.sealed_lane(index).filter(|_| is_there);
            if is_there && place.is_none() {
                return Ok(None);
            }
            lanes.push(place);
        }
        Ok(Some(lanes))
    }

    /// The lane at a place of the image.
    pub(super) fn lane(&self, place: &Range<usize>, kind: LaneKind) -> Result<EncodedLane<'_>> {
        let lane = lane(&self.image, place, kind)?;
        if lane.rows() != self.image_rows {
            return Err(Error::Malformed("a sealed lane has other rows"));
        }
        Ok(lane)
    }
}

/// The lane at a place of an image whose checksum vouches for it.
pub(super) fn lane<'a>(
    image: &'a [u8],
    place: &Range<usize>,
    kind: LaneKind,
) -> Result<EncodedLane<'a>> {
    EncodedLane::reopen(&image[place.clone()], kind)
}
