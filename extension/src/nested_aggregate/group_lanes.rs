//! Finished groups as lanes: a lane an entry, 2,048 groups at a time.
//!
//! A key that is a text is a lane of codes: its dictionary is the texts that the key has had, its codes are their
//! numbers. All other entries are numbers or bools. Behind the entries follow the *number lanes* of keys: the number
//! of each group's value, which stands for the value where a key is grouped by again.

use std::ops::Range;

use lanes_columnar::lane::{DictionaryView, Lane, LaneData};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::VECTOR_WORDS;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::item_list::ItemList;
use lanes_columnar::vector::number::{Number, NumberType, Scalar};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use super::outputs::{Outputs, is_text};
use crate::custom_scan::results::Results;
use crate::custom_scan::translate::{number_type, to_scalar};
use crate::pg::datum;

/// The lanes of a vector of groups.
pub struct GroupLanes {
    filled: Vec<FilledLane>,
    lanes: Vec<Lane>,
    dictionaries: Vec<DictionaryView>,
    /// The dictionaries that lanes of codes refer to.
    texts: Vec<ItemList>,
}

/// A lane that is filled for each vector.
struct FilledLane {
    source: Source,
    content: Content,
    values: Box<[u64; VECTOR_ROWS]>,
    validity: Box<[u64; VECTOR_WORDS]>,
}

/// Where the values of a lane come from.
enum Source {
    /// The numbers of a key's values, none of which counts as NULL.
    KeyNumbers(usize),
    /// A key's values, by their numbers.
    Key(usize, Vec<Option<Scalar>>),
    /// The answers of an aggregate.
    Aggregate(usize),
}

/// What a lane holds.
#[derive(Clone, Copy)]
enum Content {
    Number(NumberType),
    Truth,
    Codes,
}

impl GroupLanes {
    /// The lanes of these attributes: entries, and behind them the number lanes of keys.
    ///
    /// # Safety
    /// Runs inside of a query; the groups are of the aggregation that has these outputs.
    pub unsafe fn new(outputs: &Outputs, wanted: &[usize], below: &mut Results) -> GroupLanes {
        let attributes = outputs.entry_types.len() + outputs.keys;
        let mut lanes = GroupLanes {
            filled: Vec::new(),
            lanes: vec![Lane::NULL; attributes],
            dictionaries: vec![DictionaryView::default(); attributes],
            texts: Vec::new(),
        };
        for &attribute in wanted {
            // SAFETY: the caller's promise.
            unsafe { lanes.add(outputs, attribute, below) }
        }
        lanes
    }

    unsafe fn add(&mut self, outputs: &Outputs, attribute: usize, below: &mut Results) {
        let (keys, entries) = (outputs.keys, outputs.entry_types.len());
        if attribute >= entries {
            let source = Source::KeyNumbers(attribute - entries);
            self.push(attribute, source, Content::Number(NumberType::I64));
            return;
        }
        let type_of = outputs.entry_types[attribute];
        let content = match number_type(type_of) {
            Some(number) => Content::Number(number),
            None if is_text(type_of) => Content::Codes,
            None => Content::Truth,
        };
        if attribute >= keys {
            self.push(attribute, Source::Aggregate(attribute - keys), content);
            return;
        }
        // SAFETY: the caller's promise.
        let datums = unsafe { below.key_datums(attribute) };
        if let Content::Codes = content {
            // SAFETY: datums of texts.
            self.texts.push(unsafe { texts(&datums) });
        }
        let values = datums.iter().enumerate();
        let values = values.map(|(value, datum)| {
            datum.map(|datum| match content {
                Content::Number(number) => to_scalar(number, datum),
                Content::Truth => Scalar(u64::from(datum.value() & 0xff != 0)),
                Content::Codes => Scalar(value as u64),
            })
        });
        self.push(attribute, Source::Key(attribute, values.collect()), content);
    }

    fn push(&mut self, attribute: usize, source: Source, content: Content) {
        let lane = FilledLane {
            source,
            content,
            values: Box::new([0; VECTOR_ROWS]),
            validity: Box::new([0; VECTOR_WORDS]),
        };
        let values = lane.values.as_ptr();
        let data = match content {
            Content::Number(number) => LaneData::Fixed {
                values: values.cast(),
                stride: number.width() as u32,
            },
            Content::Truth => LaneData::Bool(values),
            Content::Codes => {
                let texts = self.texts.last().expect("its texts came before");
                self.dictionaries[attribute] = texts.view();
                texts.lane(values.cast())
            }
        };
        self.lanes[attribute] = Lane {
            data,
            validity: lane.validity.as_ptr(),
        };
        self.filled.push(lane);
    }

    /// Fills the lanes with these groups, of which there is at most a vector.
    pub fn fill(&mut self, groups: Range<usize>, below: &Results) {
        for lane in &mut self.filled {
            lane.fill(groups.clone(), below);
        }
    }

    /// A vector of so many groups.
    pub fn frame<'a>(&'a self, rows: usize, scalars: &'a [Option<Scalar>]) -> Frame<'a> {
        Frame {
            lanes: &self.lanes,
            dictionaries: &self.dictionaries,
            ..Frame::of_nulls(rows, scalars)
        }
    }
}

/// A list of texts, with an empty one in the place of NULL, which no row refers to.
///
/// # Safety
/// Datums of texts.
unsafe fn texts(datums: &[Option<pg_sys::Datum>]) -> ItemList {
    let items: Vec<Vec<u8>> = datums
        .iter()
        .map(|datum| {
            let mut item = Vec::new();
            match datum {
                // SAFETY: the caller's promise.
                Some(datum) => unsafe { datum::text_item(*datum, &mut item) },
                None => datum::item_from_payload(&[], true, &mut item),
            }
            item
        })
        .collect();
    ItemList::new(items.iter().map(Vec::as_slice))
}

impl FilledLane {
    fn fill(&mut self, groups: Range<usize>, below: &Results) {
        self.validity.fill(0);
        let FilledLane {
            source,
            content,
            values,
            validity,
        } = self;
        match content {
            Content::Number(number) => with_number!(*number, T => {
                let values = values.as_mut_ptr().cast::<T>();
                fill(source, groups, below, validity, |row, scalar| {
                    // SAFETY: the buffer has room for a vector of numbers of any width.
                    unsafe { *values.add(row) = T::of_scalar(scalar) }
                });
            }),
            Content::Codes => {
                let values = values.as_mut_ptr().cast::<u32>();
                fill(source, groups, below, validity, |row, scalar| {
                    // SAFETY: as above.
                    unsafe { *values.add(row) = scalar.0 as u32 }
                });
            }
            Content::Truth => {
                values[..VECTOR_WORDS].fill(0);
                fill(source, groups, below, validity, |row, scalar| {
                    values[row / 64] |= (scalar.0 & 1) << (row % 64);
                });
            }
        }
    }
}

/// Sets the value of each group that has one.
#[inline(always)]
fn fill(
    source: &Source,
    groups: Range<usize>,
    below: &Results,
    validity: &mut [u64; VECTOR_WORDS],
    mut set: impl FnMut(usize, Scalar),
) {
    let first = groups.start;
    let mut put = |group: usize, value: Option<Scalar>| {
        if let Some(scalar) = value {
            let row = group - first;
            validity[row / 64] |= 1 << (row % 64);
            set(row, scalar);
        }
    };
    match source {
        Source::KeyNumbers(key) => {
            groups.for_each(|group| put(group, Some(Scalar(below.key_number(group, *key).into()))));
        }
        Source::Key(key, values) => {
            groups.for_each(|group| put(group, values[below.key_number(group, *key) as usize]));
        }
        Source::Aggregate(aggregate) => {
            groups.for_each(|group| put(group, below.answer(group, *aggregate)));
        }
    }
}
