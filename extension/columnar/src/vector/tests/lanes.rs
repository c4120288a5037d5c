//! Windows of random rows: lanes, and beside them the plain list of what each row has.

use std::ptr::null;

use super::bytes16_column::bytes16;
use crate::kind::{self, LaneKind};
use crate::lane::{DictionaryView, Lane, LaneData};
use crate::limits::VECTOR_ROWS;
use crate::repeats::ValueRepeats;
use crate::vector::frame::Frame;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::zone_map::{self, CodeZone, Zone};

/// All types, in the order in which a random window has columns of them.
pub(crate) const TYPES: [NumberType; 5] = [
    NumberType::I16,
    NumberType::I32,
    NumberType::I64,
    NumberType::F32,
    NumberType::F64,
];

/// A random window has, for each type, a column without and one with NULLs; then these.
pub(crate) const BOOL: usize = 10;
pub(crate) const CODED: usize = 12;
pub(crate) const PLAIN: usize = 13;
pub(crate) const ABSENT: usize = 14;
/// Two of 16 bytes, without and with NULLs.
pub(crate) const BYTES16: usize = 15;
pub(crate) const ATTRIBUTES: usize = 17;

/// For each type it has three scalars and NULL; then these, of which the third is NULL.
pub(crate) const TRUTH_SCALAR: usize = 20;
/// Two doubles that are legal weights of a moving average, as which they are named.
pub(crate) const ALPHA: usize = 23;
pub(crate) const SPAN: usize = 24;

/// Random numbers that depend on a seed alone.
pub(crate) struct Source(pub(crate) u64);

impl Source {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    /// A number: small, or one of the extremes of its type once in `rarity` times (0 = never).
    pub(crate) fn number(&mut self, number: NumberType, rarity: u64) -> Scalar {
        let wild = rarity > 0 && self.one_in(rarity);
        let pick = self.next() as usize;
        let small = (pick % 9) as i64 - 4;
        match number {
            NumberType::F32 | NumberType::F64 => {
                let value = if wild {
                    let values = [
                        -0.0,
                        f64::NAN,
                        f64::INFINITY,
                        f64::NEG_INFINITY,
                        f64::MAX,
                        f64::MIN_POSITIVE,
                        -5e-324,
                        f64::from(f32::MAX),
                        1e200,
                        -1e150,
                        1e30,
                        1e-30,
                        32767.5,
                        -32768.5,
                        2147483646.5,
                        -2147483648.5,
                        9.3e18,
                        -9223372036854775808.0,
                    ];
                    values[pick % values.len()]
                } else {
                    small as f64 / 2.0
                };
                if number == NumberType::F32 {
                    (value as f32).to_scalar()
                } else {
                    value.to_scalar()
                }
            }
            integer => {
                let (least, greatest) = integer_range(integer);
                let extremes = [least, least + 1, greatest, greatest - 1, greatest / 2 + 1];
                Scalar(if wild { extremes[pick % 5] } else { small } as u64)
            }
        }
    }

    /// For each row the first one of its run: mostly itself.
    fn run_starts(&mut self, rows: usize) -> Vec<usize> {
        let length = [1, 1, 4, 20, 100, 700][self.below(6) as usize];
        let mut start = 0;
        (0..rows)
            .map(|row| {
                if self.one_in(length) {
                    start = row;
                }
                start
            })
            .collect()
    }

    /// The values, or what the first row of each run has for all of it.
    fn in_runs<T: Clone>(&mut self, values: Vec<T>, starts: &[usize]) -> Vec<T> {
        if self.one_in(3) {
            return values;
        }
        starts.iter().map(|start| values[*start].clone()).collect()
    }

    /// Rows of a vector: none, all, or some.
    pub(crate) fn selection(&mut self, rows: usize) -> Selection {
        let mut selection = Selection::first(rows);
        match self.below(8) {
            0 => return Selection::NONE,
            1 | 2 => return selection,
            3 => {
                let (a, b) = (self.below(rows as u64 + 1), self.below(rows as u64 + 1));
                return selection.within(a.min(b) as usize, a.max(b) as usize);
            }
            4 => selection.words.iter_mut().for_each(|word| {
                *word &= self.next() & self.next() & self.next() & self.next();
            }),
            _ => selection
                .words
                .iter_mut()
                .for_each(|word| *word &= self.next()),
        }
        selection
    }
}

/// The least and the greatest integer of a type.
pub(crate) fn integer_range(number: NumberType) -> (i64, i64) {
    let bits = number.width() * 8;
    (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))
}

/// The value of a row in a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Number(Scalar),
    Truth(bool),
    /// The payload.
    Text(Vec<u8>),
    Bytes16([u8; 16]),
}

/// Items and what is known of their origin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dictionary {
    pub(crate) view: DictionaryView,
    pub(crate) payloads: Vec<Vec<u8>>,
}

/// A lane with the memory that it points to.
pub(crate) struct Column {
    data: LaneData,
    /// Values of fixed width, bools, or offsets.
    pub(super) words: Vec<u64>,
    codes: Vec<u32>,
    heap: Vec<u8>,
    validity: Option<Vec<u64>>,
    view: DictionaryView,
    pub(super) kind: LaneKind,
    pub(crate) cells: Vec<Cell>,
}

impl Column {
    pub(super) fn new(data: LaneData, cells: Vec<Cell>, source: &mut Source) -> Column {
        let nulls = cells.contains(&Cell::Null) || source.one_in(4);
        let validity = nulls.then(|| {
            // Bits past the last row may be anything.
            let mut words: Vec<u64> = (0..cells.len().div_ceil(64))
                .map(|_| source.next())
                .collect();
            for (row, cell) in cells.iter().enumerate() {
                set_bit(&mut words, row, *cell != Cell::Null);
            }
            words
        });
        Column {
            data,
            words: Vec::new(),
            codes: Vec::new(),
            heap: Vec::new(),
            validity,
            view: DictionaryView::default(),
            kind: match data {
                LaneData::Bool(_) => LaneKind::Bool,
                _ => LaneKind::Absent,
            },
            cells,
        }
    }

    /// A lane in which everything is NULL.
    pub(crate) fn absent(rows: usize, source: &mut Source) -> Column {
        let mut column = Column::new(LaneData::Null, vec![Cell::Null; rows], source);
        column.validity = None;
        column
    }

    pub(crate) fn numbers(
        number: NumberType,
        values: &[Option<Scalar>],
        source: &mut Source,
    ) -> Column {
        let cells = values.iter().map(|v| v.map_or(Cell::Null, Cell::Number));
        let data = LaneData::Fixed {
            values: null(),
            stride: number.width() as u32,
        };
        let mut column = Column::new(data, cells.collect(), source);
        let width = number.width();
        column.kind = LaneKind::Fixed {
            width: width as u16,
            stride: width as u16,
            number: match number.is_float() {
                true => kind::Number::Float,
                false => kind::Number::Signed,
            },
        };
        let mut bytes = Vec::new();
        for value in values {
            // Under a NULL lies anything.
            let bits = value.map_or_else(|| source.number(number, 2).0, |scalar| scalar.0);
            bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0xAA);
        let words = bytes.chunks_exact(8);
        column.words = words
            .map(|w| u64::from_le_bytes(w.try_into().unwrap()))
            .collect();
        column
    }

    /// The column without a bitmap. None of its values is NULL.
    pub(crate) fn without_bitmap(self) -> Column {
        assert!(!self.cells.contains(&Cell::Null));
        Column {
            validity: None,
            ..self
        }
    }

    pub(crate) fn truths(values: &[Option<bool>], source: &mut Source) -> Column {
        let cells = values.iter().map(|v| v.map_or(Cell::Null, Cell::Truth));
        let mut column = Column::new(LaneData::Bool(null()), cells.collect(), source);
        column.words = (0..values.len().div_ceil(64))
            .map(|_| source.next())
            .collect();
        for (row, value) in values.iter().enumerate() {
            if let Some(truth) = value {
                set_bit(&mut column.words, row, *truth);
            }
        }
        column
    }

    /// Texts, each with its own item.
    pub(crate) fn plain(values: &[Option<Vec<u8>>], source: &mut Source) -> Column {
        let cells = values
            .iter()
            .cloned()
            .map(|v| v.map_or(Cell::Null, Cell::Text));
        let data = LaneData::Offsets {
            slots: null(),
            heap: null(),
        };
        let mut column = Column::new(data, cells.collect(), source);
        for value in values {
            column.push_item(value.as_deref().unwrap_or(b"under a NULL"));
        }
        column
    }

    /// Texts of a dictionary.
    pub(crate) fn coded(
        dictionary: &Dictionary,
        codes: &[Option<u32>],
        source: &mut Source,
    ) -> Column {
        let payload = |code: u32| Cell::Text(dictionary.payloads[code as usize].clone());
        let cells = codes.iter().map(|code| code.map_or(Cell::Null, payload));
        let data = LaneData::Codes {
            codes: null(),
            slots: null(),
            heap: null(),
        };
        let mut column = Column::new(data, cells.collect(), source);
        let items = dictionary.payloads.len() as u64;
        column.codes = codes
            .iter()
            .map(|code| code.unwrap_or_else(|| source.below(items) as u32))
            .collect();
        for payload in &dictionary.payloads {
            column.push_item(payload);
        }
        column.view = dictionary.view;
        column.view.items = items as u32;
        column
    }

    fn push_item(&mut self, payload: &[u8]) {
        self.words.push(self.heap.len() as u64);
        self.heap.extend_from_slice(&item(payload));
    }

    pub(crate) fn lane(&self) -> Lane {
        let data = match self.data {
            LaneData::Null => LaneData::Null,
            LaneData::Bool(_) => LaneData::Bool(self.words.as_ptr()),
            LaneData::Fixed { stride, .. } => LaneData::Fixed {
                values: self.words.as_ptr().cast(),
                stride,
            },
            LaneData::Offsets { .. } => LaneData::Offsets {
                slots: self.words.as_ptr(),
                heap: self.heap.as_ptr(),
            },
            LaneData::Codes { .. } => LaneData::Codes {
                codes: self.codes.as_ptr(),
                slots: self.words.as_ptr(),
                heap: self.heap.as_ptr(),
            },
        };
        let validity = self
            .validity
            .as_ref()
            .map_or(null(), |words| words.as_ptr());
        Lane::new(data, validity)
    }
}

/// A payload with its header: of one byte if it is short.
pub(crate) fn item(payload: &[u8]) -> Vec<u8> {
    let mut item = if payload.len() < 127 {
        vec![(payload.len() as u8 + 1) << 1 | 1]
    } else {
        ((payload.len() as u32 + 4) << 2).to_le_bytes().to_vec()
    };
    item.extend_from_slice(payload);
    item
}

fn set_bit(words: &mut [u64], row: usize, bit: bool) {
    words[row / 64] &= !(1 << (row % 64));
    words[row / 64] |= u64::from(bit) << (row % 64);
}

/// A vector of some columns.
pub(crate) struct TestLanes {
    pub(crate) columns: Vec<Column>,
    pub(crate) place: usize,
    pub(crate) rows: usize,
    pub(crate) scalars: Vec<Option<Scalar>>,
    pub(crate) zones: Vec<Option<Zone>>,
}

impl TestLanes {
    /// All kinds of columns and scalars, see the constants of this module.
    pub(crate) fn random(seed: u64, rows: usize, rarity: u64) -> TestLanes {
        let mut source = Source(seed);
        let place = if source.one_in(6) { VECTOR_ROWS } else { 0 };
        let all = place + rows;
        let starts = source.run_starts(all);
        let mut columns = Vec::new();
        for number in TYPES {
            for with_nulls in [false, true] {
                let values: Vec<_> = (0..all)
                    .map(|_| {
                        let value = source.number(number, rarity);
                        (!(with_nulls && source.one_in(3))).then_some(value)
                    })
                    .collect();
                let values = source.in_runs(values, &starts);
                columns.push(Column::numbers(number, &values, &mut source));
            }
        }
        for with_nulls in [false, true] {
            let values: Vec<_> = (0..all)
                .map(|_| {
                    let truth = source.one_in(2);
                    (!(with_nulls && source.one_in(3))).then_some(truth)
                })
                .collect();
            columns.push(Column::truths(&values, &mut source));
        }
        let dictionary = Dictionary {
            view: DictionaryView {
                instance: 1,
                ..DictionaryView::default()
            },
            payloads: (0..70).map(text).collect(),
        };
        let nulls = [3, u64::MAX][source.below(2) as usize];
        let codes: Vec<_> = (0..all)
            .map(|_| {
                let code = (source.below(70) * source.below(70) / 70) as u32;
                (!source.one_in(nulls)).then_some(code)
            })
            .collect();
        let codes = source.in_runs(codes, &starts);
        columns.push(Column::coded(&dictionary, &codes, &mut source));
        let texts: Vec<_> = codes.iter().rev().map(|code| code.map(text)).collect();
        columns.push(Column::plain(&texts, &mut source));
        columns.push(Column::absent(all, &mut source));
        for with_nulls in [false, true] {
            let value = |source: &mut Source| bytes16(source.below(20));
            let values: Vec<_> = (0..all)
                .map(|_| (!(with_nulls && source.one_in(3))).then(|| value(&mut source)))
                .collect();
            let values = source.in_runs(values, &starts);
            columns.push(Column::bytes16(&values, &mut source));
        }
        let mut scalars = Vec::new();
        for number in TYPES {
            scalars.extend((0..3).map(|_| Some(source.number(number, rarity))));
            scalars.push(None);
        }
        scalars.extend([Some(Scalar(1)), Some(Scalar(0)), None]);
        scalars.extend([Some(0.3.to_scalar()), Some(4.0.to_scalar())]);
        TestLanes {
            columns,
            place,
            rows,
            scalars,
            zones: Vec::new(),
        }
    }

    /// A vector of these columns, from row 0 on.
    pub(crate) fn of(columns: Vec<Column>) -> TestLanes {
        TestLanes {
            place: 0,
            rows: columns[0].cells.len(),
            columns,
            scalars: Vec::new(),
            zones: Vec::new(),
        }
    }

    pub(crate) fn with_frame<R>(&self, take: impl FnOnce(&Frame<'_>) -> R) -> R {
        let lanes: Vec<_> = self.columns.iter().map(Column::lane).collect();
        let dictionaries: Vec<_> = self.columns.iter().map(|column| column.view).collect();
        take(&Frame {
            lanes: &lanes,
            dictionaries: &dictionaries,
            place: self.place,
            rows: self.rows,
            scalars: &self.scalars,
            zones: &self.zones,
            joined: &[],
            substitutes: &[],
        })
    }

    /// The zone of a column over the vector, exact.
    pub(crate) fn zone(&self, attribute: usize) -> Zone {
        let column = &self.columns[attribute];
        let rows = self.place..self.place + self.rows;
        // SAFETY: the column is of that kind and has these rows.
        unsafe { zone_map::compute(&column.lane(), column.kind, rows) }
    }

    /// The codes of a column in the vector, if it has codes.
    pub(crate) fn codes(&self, attribute: usize) -> Option<CodeZone> {
        let codes = self.columns[attribute].codes.get(self.place..);
        codes
            .filter(|codes| !codes.is_empty())
            .map(|codes| CodeZone::of(&codes[..self.rows]))
    }

    /// The runs of equal values of a column's vector, if it has numbers or codes.
    pub(crate) fn value_repeats(&self, attribute: usize) -> Option<ValueRepeats> {
        let column = &self.columns[attribute];
        let rows = self.place..self.place + self.rows;
        let value = |row: usize| match (&column.cells[row], column.data) {
            (Cell::Null, _) => Some(None),
            (Cell::Number(scalar), _) => Some(Some(scalar.0)),
            (_, LaneData::Codes { .. }) => Some(Some(column.codes[row].into())),
            _ => None,
        };
        let values = rows.map(value).collect::<Option<Vec<_>>>()?;
        let runs = values.chunk_by(|a, b| a == b);
        let runs: Vec<_> = runs.map(|run| (run.len(), run[0])).collect();
        Some(ValueRepeats::of(&runs))
    }

    /// The cell of a row of the vector in a column.
    pub(crate) fn cell(&self, attribute: usize, row: usize) -> &Cell {
        &self.columns[attribute].cells[self.place + row]
    }

    /// The number of a row of the vector in a column of numbers.
    pub(crate) fn number(&self, attribute: usize, row: usize) -> Option<Scalar> {
        match self.cell(attribute, row) {
            Cell::Number(scalar) => Some(*scalar),
            _ => None,
        }
    }
}

/// The text that goes by a number; some are long.
pub(crate) fn text(number: u32) -> Vec<u8> {
    let length = if number % 17 == 16 { 150 } else { number % 5 };
    let mut payload = number.to_string().into_bytes();
    payload.resize(payload.len() + length as usize, b'x');
    payload
}

/// The number of rows of a vector: often few, sometimes all.
pub(crate) fn any_rows() -> impl proptest::strategy::Strategy<Value = usize> {
    use proptest::prelude::*;
    prop_oneof![4 => 1..200_usize, 1 => 1..=VECTOR_ROWS, 1 => Just(VECTOR_ROWS)]
}
