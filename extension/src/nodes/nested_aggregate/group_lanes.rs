//! Finished groups as lanes: a lane for each entry, 2,048 groups at a time.
//!
//! A text key is a lane of codes. Its dictionary contains the distinct texts of the key, and its
//! codes are their numbers. All other entries are numbers or bools. The *number lanes* of keys
//! follow the entries. They contain the number of each group's value, which replaces the value
//! where a key is a grouping key again.

use std::ops::Range;

use lanes_columnar::aggregate::Numbers;
use lanes_columnar::lane::{DictionaryView, Lane, LaneData};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::VECTOR_WORDS;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::item_list::ItemList;
use lanes_columnar::vector::lane_buffer::LaneBuffer;
use lanes_columnar::vector::number::{Number, NumberType, Scalar};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use super::finished::Finished;
use super::outputs::{Outputs, is_text};
use crate::expressions::translate::{number_type, to_scalar};
use crate::pg::datum;

/// The lanes of a vector of groups.
pub struct GroupLanes {
    filled: Vec<FilledLane>,
    lanes: Vec<Lane>,
    dictionaries: Vec<DictionaryView>,
    /// The dictionaries of the lanes of codes.
    texts: Vec<ItemList>,
}

/// A lane that is filled for each vector.
struct FilledLane {
    source: LaneSource,
    content: Content,
    values: LaneBuffer,
    validity: Box<[u64; VECTOR_WORDS]>,
    /// The numbers of a key's values.
    numbers: Box<[u32; VECTOR_ROWS]>,
}

/// The origin of a lane's values.
enum LaneSource {
    /// The numbers of a key's values. No number is NULL.
    KeyNumbers(usize),
    /// The values of a key, by their numbers.
    Key(usize, Vec<Option<Scalar>>),
    /// The results of an aggregate.
    Aggregate(usize),
}

/// The type of a lane's values.
#[derive(Clone, Copy)]
enum Content {
    Number(NumberType),
    Bool,
    Codes,
}

impl GroupLanes {
    /// The lanes of these attributes: entries, and after them the number lanes of keys. The groups are those of the
    /// aggregation with these outputs.
    pub fn new(outputs: &Outputs<'_>, wanted: &[usize], below: &mut dyn Finished) -> GroupLanes {
        let attributes = outputs.entry_types.len() + outputs.keys;
        let mut lanes = GroupLanes {
            filled: Vec::new(),
            lanes: vec![Lane::NULL; attributes],
            dictionaries: vec![DictionaryView::default(); attributes],
            texts: Vec::new(),
        };
        for &attribute in wanted {
            lanes.add(outputs, attribute, below);
        }
        lanes
    }

    fn add(&mut self, outputs: &Outputs<'_>, attribute: usize, below: &mut dyn Finished) {
        let (keys, entries) = (outputs.keys, outputs.entry_types.len());
        if attribute >= entries {
            let source = LaneSource::KeyNumbers(attribute - entries);
            self.push(attribute, source, Content::Number(NumberType::I64));
            return;
        }
        let type_of = outputs.entry_types[attribute];
        let content = match number_type(type_of) {
            Some(number) => Content::Number(number),
            None if is_text(type_of) => Content::Codes,
            None => Content::Bool,
        };
        if attribute >= keys {
            self.push(attribute, LaneSource::Aggregate(attribute - keys), content);
            return;
        }
        let datums = below.key_datums(attribute);
        if let Content::Codes = content {
            self.texts.push(texts(&datums));
        }
        let values = datums.iter().enumerate();
        let values = values.map(|(value, datum)| {
            datum.map(|datum| match content {
                Content::Number(number) => to_scalar(number, datum),
                Content::Bool => Scalar(u64::from(datum.value() & 0xff != 0)),
                Content::Codes => Scalar(value as u64),
            })
        });
        self.push(
            attribute,
            LaneSource::Key(attribute, values.collect()),
            content,
        );
    }

    fn push(&mut self, attribute: usize, source: LaneSource, content: Content) {
        let lane = FilledLane {
            source,
            content,
            values: LaneBuffer::new(),
            validity: Box::new([0; VECTOR_WORDS]),
            numbers: Box::new([0; VECTOR_ROWS]),
        };
        let values = lane.values.words().as_ptr();
        let data = match content {
            Content::Number(number) => LaneData::Fixed {
                values: values.cast(),
                stride: number.width() as u32,
            },
            Content::Bool => LaneData::Bool(values),
            Content::Codes => {
                let texts = self.texts.last().expect("the texts were added before");
                self.dictionaries[attribute] = texts.view();
                texts.lane(values.cast())
            }
        };
        self.lanes[attribute] = Lane::new(data, lane.validity.as_ptr());
        self.filled.push(lane);
    }

    /// Fills the lanes with at most a vector of groups.
    pub fn fill(&mut self, groups: Range<usize>, below: &dyn Finished) {
        for lane in &mut self.filled {
            lane.fill(groups.clone(), below);
        }
    }

    /// The frame of a vector of groups.
    pub fn frame<'a>(&'a self, rows: usize, scalars: &'a [Option<Scalar>]) -> Frame<'a> {
        Frame {
            lanes: &self.lanes,
            dictionaries: &self.dictionaries,
            ..Frame::of_nulls(rows, scalars)
        }
    }
}

/// A list of texts. The place of NULL contains an empty text, which no row refers to.
fn texts(datums: &[Option<pg_sys::Datum>]) -> ItemList {
    let items: Vec<Vec<u8>> = datums
        .iter()
        .map(|datum| {
            let mut item = Vec::new();
            match datum {
                Some(datum) => datum::text_item(*datum, &mut item),
                None => datum::item_from_payload(&[], true, &mut item),
            }
            item
        })
        .collect();
    ItemList::new(items.iter().map(Vec::as_slice))
}

impl FilledLane {
    fn fill(&mut self, groups: Range<usize>, below: &dyn Finished) {
        self.validity.fill(0);
        if let (LaneSource::Aggregate(aggregate), Content::Number(number)) =
            (&self.source, self.content)
            && number.width() == size_of::<u64>()
        {
            let mut out = Numbers {
                values: self.values.words_mut(),
                validity: &mut self.validity[..],
            };
            if below.numbers(*aggregate, groups.clone(), &mut out) {
                return;
            }
        }
        match self.content {
            Content::Number(number) => with_number!(number, T => {
                self.fill_each(groups, below, |values, row, scalar| {
                    values.set(row, T::of_scalar(scalar));
                });
            }),
            Content::Codes => {
                self.fill_each(groups, below, |values, row, scalar| {
                    values.set(row, scalar.0 as u32 as i32);
                });
            }
            Content::Bool => {
                self.values.words_mut()[..VECTOR_WORDS].fill(0);
                self.fill_each(groups, below, |values, row, scalar| {
                    values.words_mut()[row / 64] |= (scalar.0 & 1) << (row % 64);
                });
            }
        }
    }

    /// Calls `set` with the value of each group that has one, and marks it as valid.
    #[inline(always)]
    fn fill_each(
        &mut self,
        groups: Range<usize>,
        below: &dyn Finished,
        mut set: impl FnMut(&mut LaneBuffer, usize, Scalar),
    ) {
        let count = groups.len();
        let (values, validity) = (&mut self.values, &mut self.validity);
        let mut put = |row: usize, value: Option<Scalar>| {
            if let Some(scalar) = value {
                validity[row / 64] |= 1 << (row % 64);
                set(values, row, scalar);
            }
        };
        if let LaneSource::KeyNumbers(key) | LaneSource::Key(key, _) = &self.source {
            below.key_numbers(*key, groups.clone(), &mut self.numbers[..count]);
        }
        let numbers = self.numbers[..count].iter().enumerate();
        match &self.source {
            LaneSource::KeyNumbers(_) => {
                numbers.for_each(|(row, number)| put(row, Some(Scalar(u64::from(*number)))));
            }
            LaneSource::Key(_, values) => {
                numbers.for_each(|(row, number)| put(row, values[*number as usize]));
            }
            LaneSource::Aggregate(aggregate) => {
                let results = groups.map(|group| below.result(group, *aggregate));
                results
                    .enumerate()
                    .for_each(|(row, result)| put(row, result));
            }
        }
    }
}
