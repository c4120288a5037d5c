//! Finished groups as lanes: a lane an entry, 2,048 groups at a time.
//!
//! A key that is a text is a lane of codes: its dictionary is the texts that the key has had, its codes are their
//! numbers. All other entries are numbers or bools. Behind the entries follow the *number lanes* of keys: the number
//! of each group's value, which stands for the value where a key is grouped by again.

use std::ops::Range;

use lanes_columnar::aggregate::Numbers;
use lanes_columnar::lane::{DictionaryView, Lane, LaneData};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::VECTOR_WORDS;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::item_list::ItemList;
use lanes_columnar::vector::number::{Number, NumberType, Scalar};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use super::outputs::{Outputs, is_text};
use crate::expressions::translate::{number_type, to_scalar};
use crate::nodes::aggregate::results::Results;
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
    /// The numbers of the values of a key.
    numbers: Box<[u32; VECTOR_ROWS]>,
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
            numbers: Box::new([0; VECTOR_ROWS]),
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
        if let (Source::Aggregate(aggregate), Content::Number(number)) =
            (&self.source, self.content)
            && number.width() == size_of::<u64>()
        {
            let mut out = Numbers {
                values: &mut self.values[..],
                validity: &mut self.validity[..],
            };
            if below.numbers(*aggregate, groups.clone(), &mut out) {
                return;
            }
        }
        match self.content {
            Content::Number(number) => with_number!(number, T => {
                let values = self.values.as_mut_ptr().cast::<T>();
                self.fill_each(groups, below, |row, scalar| {
                    // SAFETY: the buffer has room for a vector of numbers of any width.
                    unsafe { *values.add(row) = T::of_scalar(scalar) }
                });
            }),
            Content::Codes => {
                let values = self.values.as_mut_ptr().cast::<u32>();
                self.fill_each(groups, below, |row, scalar| {
                    // SAFETY: as above.
                    unsafe { *values.add(row) = scalar.0 as u32 }
                });
            }
            Content::Truth => {
                let mut truths = [0; VECTOR_WORDS];
                self.fill_each(groups, below, |row, scalar| {
                    truths[row / 64] |= (scalar.0 & 1) << (row % 64);
                });
                self.values[..VECTOR_WORDS].copy_from_slice(&truths);
            }
        }
    }

    /// Calls `set` with the value of each group that has one, and marks it as valid.
    #[inline(always)]
    fn fill_each(
        &mut self,
        groups: Range<usize>,
        below: &Results,
        mut set: impl FnMut(usize, Scalar),
    ) {
        let count = groups.len();
        let validity = &mut self.validity;
        let mut put = |row: usize, value: Option<Scalar>| {
            if let Some(scalar) = value {
                validity[row / 64] |= 1 << (row % 64);
                set(row, scalar);
            }
        };
        if let Source::KeyNumbers(key) | Source::Key(key, _) = &self.source {
            below.key_numbers(*key, groups.clone(), &mut self.numbers[..count]);
        }
        let numbers = self.numbers[..count].iter().enumerate();
        match &self.source {
            Source::KeyNumbers(_) => {
                numbers.for_each(|(row, number)| put(row, Some(Scalar(u64::from(*number)))));
            }
            Source::Key(_, values) => {
                numbers.for_each(|(row, number)| put(row, values[*number as usize]));
            }
            Source::Aggregate(aggregate) => {
                let answers = groups.map(|group| below.answer(group, *aggregate));
                answers
                    .enumerate()
                    .for_each(|(row, answer)| put(row, answer));
            }
        }
    }
}
