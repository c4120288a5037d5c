//! A segment that is kept as it is stored: the images of sealed runs, a few bytes for each row,
//! from which a scan decodes what it needs.
//!
//! It has an entry as other segments do, and is pinned, evicted and adopted like them. Readers of
//! lanes see no columns and no rows in it. Its `rows_max` of 0 marks it. After its head:
//!
//! | bytes | |
//! |---|---|
//! | 4 | number of images |
//! | 4 | number of scans that read most of its rows |
//! | 4 | number of times that it was opened for reading |
//! | 4 | unused |
//! | 32 each | first row of the run, offset of its image, bytes of it, columns and vectors of its zones |
//!
//! The [zones](super::image_zones) of an image precede its bytes. Nothing changes after publication
//! except the two counts and the zones. By these counts, a scan decides to decode the images to
//! lanes, which take many times the memory. Whenever the clock's hand passes over the segment, both
//! counts are halved, so old reads lose their weight.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::Locks;
use super::core::Core;
use super::image_zones::ImageZones;
use super::memory::Shared;
use super::relation::Relation;
use super::segment::SegmentPin;
use super::segment_head::{self, SegmentHead};
use super::zones::{ZONE_BYTES, ZoneHead};
use crate::kind::LaneKind;
use crate::zone_map::Zone;

/// The list after the segment's head.
#[repr(C)]
struct ListHead {
    images: AtomicU32,
    looks: AtomicU32,
    opens: AtomicU32,
    unused: AtomicU32,
}

#[repr(C)]
struct ImageHead {
    first_row: AtomicU64,
    offset: AtomicU64,
    bytes: AtomicU64,
    columns: AtomicU32,
    vectors: AtomicU32,
}

// SAFETY: atomics only.
unsafe impl Shared for ListHead {}
// SAFETY: atomics only.
unsafe impl Shared for ImageHead {}

const LIST_OFFSET: u64 = size_of::<SegmentHead>() as u64;
const IMAGES_OFFSET: u64 = LIST_OFFSET + size_of::<ListHead>() as u64;

fn image_head(core: &Core, segment: u64, index: u32) -> &ImageHead {
    let offset = IMAGES_OFFSET + u64::from(index) * size_of::<ImageHead>() as u64;
    // SAFETY: the caller has a segment of images with that one.
    unsafe { core.head(segment + offset) }
}

/// The image of a sealed run that is to be kept.
pub struct NewImage<'a> {
    /// The first row of the run.
    pub first_row: u64,
    /// The image, verified.
    pub bytes: &'a [u8],
    /// Columns, and vectors of each, whose zones are to be kept with it.
    pub columns: usize,
    /// Vectors of each column.
    pub vectors: usize,
}

impl NewImage<'_> {
    fn zones(&self) -> usize {
        self.columns * self.vectors
    }

    fn bytes_kept(&self) -> u64 {
        self.zones() as u64 * ZONE_BYTES + self.bytes.len() as u64
    }
}

/// The image of a sealed run, as the arena keeps it.
#[derive(Clone, Copy)]
pub struct KeptImage<'a> {
    bytes: &'a [u8],
    zones: ImageZones<'a>,
}

impl<'a> KeptImage<'a> {
    /// An image that is kept elsewhere: its zones are worked out each time.
    pub fn without_zones(bytes: &'a [u8]) -> Self {
        let zones = ImageZones::new(&[], 0);
        KeptImage { bytes, zones }
    }

    /// The image as it is stored.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The zone of a vector of a column, computed by `find` if it is not stored yet. It is not
    /// exact.
    pub fn zone(
        &self,
        column: usize,
        vector: usize,
        kind: LaneKind,
        find: impl FnOnce() -> Option<Zone>,
    ) -> Option<Zone> {
        self.zones.get_or_find((column, vector), kind, find)
    }
}

/// Pinned images of sealed runs. They do not move and are not freed while this value lives.
/// Dropping it takes no lock.
pub struct Images<L: Locks> {
    pin: SegmentPin,
    // After the pin: see `Segment`.
    _relation: Relation<L>,
}

impl<L: Locks> Images<L> {
    /// The images of a pinned segment, if it consists of images.
    pub(super) fn new(pin: SegmentPin, relation: Relation<L>) -> Option<Self> {
        pin.is_images().then(|| Images {
            pin,
            _relation: relation,
        })
    }

    fn list(&self) -> &ListHead {
        // SAFETY: a pinned segment is not freed, and one of images has a list.
        unsafe { self.pin.core().head(self.pin.segment() + LIST_OFFSET) }
    }

    /// The image of the run that begins at this row.
    pub fn of_run(&self, first_row: u64) -> Option<KeptImage<'_>> {
        let core = self.pin.core();
        let images = 0..self.list().images.load(Acquire);
        let mut heads = images.map(|index| image_head(core, self.pin.segment(), index));
        let head = heads.find(|head| head.first_row.load(Relaxed) == first_row)?;
        let (offset, bytes) = (head.offset.load(Relaxed), head.bytes.load(Relaxed));
        let vectors = head.vectors.load(Relaxed) as usize;
        let zones = head.columns.load(Relaxed) as usize * vectors;
        // SAFETY: both were written before the segment was published, where there is room for them,
        // and are not freed while it is pinned. The image does not change; zones are atomics.
        let (zones, bytes) = unsafe {
            let heads = core.memory.bytes(offset).cast::<ZoneHead>();
            let image = heads.add(zones).cast::<u8>();
            (
                std::slice::from_raw_parts(heads, zones),
                std::slice::from_raw_parts(image, bytes as usize),
            )
        };
        Some(KeptImage {
            bytes,
            zones: ImageZones::new(zones, vectors),
        })
    }

    /// The number of calls of [`note_look`](Self::note_look), halved at each visit of the clock's
    /// hand.
    pub fn looks(&self) -> u32 {
        self.list().looks.load(Relaxed)
    }

    /// The number of calls of [`note_open`](Self::note_open), halved at each visit of the clock's
    /// hand.
    pub fn opens(&self) -> u32 {
        self.list().opens.load(Relaxed)
    }

    /// Says that it was opened to be read.
    pub fn note_open(&self) {
        self.list().opens.fetch_add(1, Relaxed);
    }

    /// Counts a scan that read most of the rows.
    pub fn note_look(&self) {
        self.list().looks.fetch_add(1, Relaxed);
    }
}

impl<L: Locks> Relation<L> {
    /// Keeps the images of sealed runs as a segment that is not resident yet. False, with nothing
    /// kept, if there is a segment, or no room even after eviction.
    pub fn put_images(&self, segment: u32, images: &[NewImage<'_>]) -> bool {
        self.in_entry(segment, |core, locks, slot, entry| {
            // SAFETY: the elements of the table are entry words, and the relation is pinned.
            let word = unsafe { core.head::<AtomicU64>(entry) };
            if segment_head::segment_of(word.load(Relaxed)) != 0 {
                return false;
            }
            let made = locks.with_allocator(|| make(&core, slot, entry, images));
            let Some(made) = made else {
                return false;
            };
            for (index, image) in (0..).zip(images) {
                let offset = image_head(&core, made, index).offset.load(Relaxed);
                // SAFETY: a payload of that many bytes that is not published yet; zero is a zone
                // that was not computed.
                unsafe {
                    let zones = core.memory.bytes(offset).cast::<ZoneHead>();
                    zones.write_bytes(0, image.zones());
                    let into = zones.add(image.zones()).cast::<u8>();
                    into.copy_from_nonoverlapping(image.bytes.as_ptr(), image.bytes.len());
                }
            }
            locks.with_allocator(|| {
                segment_head::publish(word, made);
                segment_head::join_ring(&core, made, slot);
            });
            drop(SegmentPin::adopt(core, entry, made));
            true
        })
    }

    /// Retires the images of the segment so that lanes can replace them. Pinned images stay valid,
    /// but new readers do not find them.
    pub fn give_up_images(&self, segment: u32) {
        let Some(images) = self.pin_images(segment) else {
            return;
        };
        let pin = &images.pin;
        self.in_entry(segment, |core, locks, _, _| {
            if segment_head::segment_of(pin.entry().load(Relaxed)) == pin.segment() {
                locks.with_allocator(|| segment_head::retire(&core, pin.entry(), pin.segment()));
            }
            true
        });
    }

    /// Pins the images of a segment, if that is how it is kept.
    pub fn pin_images(&self, segment: u32) -> Option<Images<L>> {
        Images::new(self.pin(segment)?, self.clone())
    }
}

/// *Locked.* Halves the counts of a segment of images when the clock's hand passes over it.
pub(super) fn age(core: &Core, segment: u64) {
    // SAFETY: the caller has a resident segment there.
    let head = unsafe { core.head::<SegmentHead>(segment) };
    if head.rows_max.load(Relaxed) == 0 {
        // SAFETY: a segment of images has a list.
        let list: &ListHead = unsafe { core.head(segment + LIST_OFFSET) };
        for count in [&list.looks, &list.opens] {
            // A session that notes a read at this moment still has it counted.
            let _ = count.fetch_update(Relaxed, Relaxed, |count| Some(count / 2));
        }
    }
}

/// *Locked.* Makes an unpublished segment with memory for these images. Other segments are evicted
/// for it if necessary.
fn make(core: &Core, slot: u32, entry: u64, images: &[NewImage<'_>]) -> Option<u64> {
    let list = IMAGES_OFFSET + (images.len() * size_of::<ImageHead>()) as u64;
    let bytes: u64 = images.iter().map(NewImage::bytes_kept).sum();
    if !core.keep_budget(slot, list + bytes) {
        return None;
    }
    let segment = core.allocate(list)?;
    // SAFETY: a fresh payload of that many bytes; zero is a valid state of all heads in it.
    let head = unsafe {
        core.memory.bytes(segment).write_bytes(0, list as usize);
        core.memory.head::<SegmentHead>(segment)
    };
    head.bytes.store(core.block_bytes(segment), Relaxed);
    head.entry.store(entry, Relaxed);
    // SAFETY: as above.
    let list: &ListHead = unsafe { core.head(segment + LIST_OFFSET) };
    list.images.store(images.len() as u32, Relaxed);
    for (index, image) in (0..).zip(images) {
        let Some(offset) = core.allocate_for(head, image.bytes_kept()) else {
            core.free_segment(segment);
            return None;
        };
        let of_image = image_head(core, segment, index);
        of_image.first_row.store(image.first_row, Relaxed);
        of_image.offset.store(offset, Relaxed);
        of_image.bytes.store(image.bytes.len() as u64, Relaxed);
        of_image.columns.store(image.columns as u32, Relaxed);
        of_image.vectors.store(image.vectors as u32, Relaxed);
    }
    Some(segment)
}
