//! `cargo bench -p lanes-columnar [-- <part of a query's name>]`: what a query costs the engine
//! alone, in nanoseconds a vector and a row and in GB/s, beside the speed at which this machine
//! reads the same lanes in the same run. A ratio near 1 means that memory is the bound.
//!
//! The lanes are 1M trades and 5M events in private memory; vectors are driven as a scan drives
//! them. As in the kernels' benchmarks there is no framework, because the figure that matters is a
//! ratio to another measurement of the same run. Each figure is the median of its runs.

use lanes_columnar::aggregate::extreme::{End, Extreme};
use lanes_columnar::aggregate::logic::Logic;
use lanes_columnar::aggregate::moments::Moments;
use lanes_columnar::aggregate::sum::{FloatSum, IntegerResult, IntegerSums};
use lanes_columnar::aggregate::weighted::Weighted;
use lanes_columnar::aggregate::{Accumulator, Aggregate, Aggregation, Argument, Key, accumulator};
use lanes_columnar::decimal_lane::DecimalLane;
use lanes_columnar::lane::{DictionaryView, Lane, LaneData};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{NumberType, Operation, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::text::OneOf;
use lanes_columnar::vector::{predicate::TextPredicate, value::Value};
use lanes_simd::Comparison;
use std::hint::black_box;
use std::ptr::null;
use std::time::{Duration, Instant};

const SYMBOLS: u32 = 1000;
/// Attributes of a trade.
const SYM: usize = 1;
const PRICE: usize = 2;
const SIZE: usize = 3;
/// Attributes of an event.
const DURATION: usize = 0;
const IS_ERROR: usize = 1;
const SERVICE: usize = 2;

fn main() {
    let wanted = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let (trades, events) = (Table::trades(1_000_000), Table::events(5_000_000));
    println!(
        "{:<40}{:>11}{:>10}{:>9}{:>9}{:>8}",
        "query", "ns/vector", "ns/row", "GB/s", "read", "ratio"
    );
    for query in queries() {
        if wanted
            .as_ref()
            .is_some_and(|part| !query.name.contains(part.as_str()))
        {
            continue;
        }
        let table = if query.of_trades { &trades } else { &events };
        let bytes: usize = query.reads.iter().map(|lane| table.bytes(*lane)).sum();
        let read = median(|| query.reads.iter().for_each(|lane| table.read(*lane)));
        let time = median(|| {
            black_box(table.run(&query));
        });
        println!(
            "{:<40}{:>11.0}{:>10.3}{:>9.1}{:>9.1}{:>8.2}",
            query.name,
            time / table.rows.div_ceil(VECTOR_ROWS) as f64,
            time / table.rows as f64,
            bytes as f64 / time,
            bytes as f64 / read,
            read / time,
        );
    }
}

/// Nanoseconds of the median of the runs that fit into 300 ms.
fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) || times.len() < 5 {
        let start = Instant::now();
        run();
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    times[times.len() / 2].max(1) as f64
}

/// Reads each word once and keeps nothing but their exclusive or.
fn plain_read(words: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        black_box(unsafe { exclusive_or_avx2(words) });
        return;
    }
    black_box(exclusive_or(words));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn exclusive_or_avx2(words: &[u64]) -> [u64; 32] {
    exclusive_or(words)
}

#[inline(always)]
fn exclusive_or(words: &[u64]) -> [u64; 32] {
    let mut all = [0; 32];
    for chunk in words.as_chunks::<32>().0 {
        all.iter_mut()
            .zip(chunk)
            .for_each(|(one, word)| *one ^= word);
    }
    all
}

/// Lanes with the memory that they lie in.
struct Table {
    rows: usize,
    lanes: Vec<Lane>,
    dictionaries: Vec<DictionaryView>,
    memory: Vec<Vec<u64>>,
    _dictionary: (Box<[u64]>, Box<[u8]>),
}

/// Packs values into words.
fn words<const N: usize>(bytes: impl Iterator<Item = [u8; N]>) -> Vec<u64> {
    let all: Vec<u8> = bytes.flatten().collect();
    let mut words: Vec<u64> = all
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        })
        .collect();
    words.push(0);
    words
}

/// Random numbers that depend on the row alone.
fn random(row: usize) -> u64 {
    let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

/// Items `S0000`, `S0001`, …, with one-byte headers.
fn dictionary(items: u32) -> (Box<[u64]>, Box<[u8]>) {
    let heap = (0..items).flat_map(|item| format!("\rS{item:04}").into_bytes());
    (
        (0..u64::from(items)).map(|item| item * 6).collect(),
        heap.collect(),
    )
}

impl Table {
    fn new(
        rows: usize,
        memory: Vec<Vec<u64>>,
        data: impl Fn(usize, *const u8) -> LaneData,
        dictionary: (Box<[u64]>, Box<[u8]>),
    ) -> Table {
        let lane = |(index, words): (usize, &Vec<u64>)| Lane {
            data: data(index, words.as_ptr().cast()),
            validity: null(),
            decimals: DecimalLane::NONE,
        };
        Table {
            rows,
            lanes: memory.iter().enumerate().map(lane).collect(),
            dictionaries: vec![
                DictionaryView {
                    instance: 1,
                    items: dictionary.0.len() as u32,
                    ..DictionaryView::default()
                };
                memory.len()
            ],
            memory,
            _dictionary: dictionary,
        }
    }

    fn trades(rows: usize) -> Table {
        let memory = vec![
            words((0..rows).map(|row| (row as i64 * 86_000).to_le_bytes())),
            words((0..rows).map(|row| (random(row) as u32 % SYMBOLS).to_le_bytes())),
            words(
                (0..rows).map(|row| (100.0 + (random(row) % 10_007) as f64 / 100.0).to_le_bytes()),
            ),
            words((0..rows).map(|row| ((random(row) % 500) as i32).to_le_bytes())),
        ];
        let dictionary = dictionary(SYMBOLS);
        let (slots, heap) = (dictionary.0.as_ptr(), dictionary.1.as_ptr());
        let data = |index, values: *const u8| match index {
            SYM => LaneData::Codes {
                codes: values.cast(),
                slots,
                heap,
            },
            SIZE => LaneData::Fixed { values, stride: 4 },
            _ => LaneData::Fixed { values, stride: 8 },
        };
        Table::new(rows, memory, data, dictionary)
    }

    fn events(rows: usize) -> Table {
        let memory = vec![
            words((0..rows).map(|row| ((random(row) % 10_007) as f32 / 100.0).to_le_bytes())),
            (0..=rows / 64)
                .map(|word| {
                    (0..64)
                        .map(|bit| u64::from(random(word * 64 + bit).is_multiple_of(37)) << bit)
                        .sum()
                })
                .collect(),
            words((0..rows).map(|row| (random(row) as u32 % 20).to_le_bytes())),
        ];
        let dictionary = dictionary(20);
        let (slots, heap) = (dictionary.0.as_ptr(), dictionary.1.as_ptr());
        let data = |index, values: *const u8| match index {
            DURATION => LaneData::Fixed { values, stride: 4 },
            IS_ERROR => LaneData::Bool(values.cast()),
            _ => LaneData::Codes {
                codes: values.cast(),
                slots,
                heap,
            },
        };
        Table::new(rows, memory, data, dictionary)
    }

    fn bytes(&self, lane: usize) -> usize {
        self.memory[lane].len() * 8
    }

    fn read(&self, lane: usize) {
        plain_read(&self.memory[lane]);
    }

    /// The query as the aggregate's node runs it, but for the search of visible rows and zone maps.
    fn run(&self, query: &Query) -> Aggregation {
        let Program {
            mut quals,
            keys,
            aggregates,
        } = (query.program)();
        let mut aggregation = Aggregation::new(keys, aggregates);
        let scalars = [150f64.to_bits(), u64::from(50f32.to_bits())].map(|bits| Some(Scalar(bits)));
        let mut passed = 0;
        // Most vectors are visible as a whole.
        let mut all = (0, Selection::NONE);
        for place in (0..self.rows).step_by(VECTOR_ROWS) {
            let frame = Frame {
                lanes: &self.lanes,
                dictionaries: &self.dictionaries,
                place,
                rows: VECTOR_ROWS.min(self.rows - place),
                scalars: &scalars,
                zones: &[],
                joined: &[],
                substitutes: &[],
            };
            if all.0 != frame.rows {
                all = (frame.rows, Selection::first(frame.rows));
            }
            if quals.is_empty() {
                aggregation
                    .add_counted(&frame, &all.1, frame.rows)
                    .expect("no aggregate that fails");
                continue;
            }
            let mut selection = all.1;
            for qual in &mut quals {
                qual.narrow(&frame, &mut selection)
                    .expect("no operator that fails");
            }
            let count = selection.count();
            passed += count;
            aggregation
                .add_counted(&frame, &selection, count)
                .expect("no aggregate that fails");
        }
        black_box(passed);
        aggregation
    }
}

struct Program {
    quals: Vec<Predicate>,
    keys: Vec<Key>,
    aggregates: Vec<Aggregate>,
}

struct Query {
    name: &'static str,
    of_trades: bool,
    /// The attributes that it reads.
    reads: &'static [usize],
    program: fn() -> Program,
}

fn aggregate(argument: Argument, accumulator: impl Accumulator + 'static) -> Aggregate {
    Aggregate {
        filter: None,
        argument,
        accumulator: Box::new(accumulator),
    }
}

fn price() -> Value {
    Value::Column(NumberType::F64, PRICE)
}

fn size() -> Value {
    Value::Column(NumberType::I32, SIZE)
}

fn wide_size() -> Value {
    Value::convert(NumberType::F64, size())
}

fn duration() -> Value {
    Value::Column(NumberType::F32, DURATION)
}

fn count() -> Aggregate {
    aggregate(Argument::Nothing, accumulator::Count::default())
}

fn average_price() -> Aggregate {
    aggregate(Argument::Number(price()), Moments::<f64>::new(false))
}

fn greatest_size() -> Aggregate {
    aggregate(Argument::Number(size()), Extreme::<i32>::new(End::Maximum))
}

fn dear() -> Predicate {
    let threshold = Value::Scalar(NumberType::F64, 0);
    Predicate::Compare(Comparison::Greater, price(), threshold)
}

fn long() -> Predicate {
    let threshold = Value::Scalar(NumberType::F32, 1);
    Predicate::Compare(Comparison::Greater, duration(), threshold)
}

fn of(quals: Vec<Predicate>, keys: Vec<Key>, aggregates: Vec<Aggregate>) -> Program {
    Program {
        quals,
        keys,
        aggregates,
    }
}

fn queries() -> Vec<Query> {
    let trades = |name, reads, program| Query {
        name,
        of_trades: true,
        reads,
        program,
    };
    let events = |name, reads, program| Query {
        name,
        of_trades: false,
        reads,
        program,
    };
    vec![
        events("count filter bool", &[IS_ERROR], || {
            let filter = Some(Predicate::Bool(IS_ERROR));
            of(vec![], vec![], vec![Aggregate { filter, ..count() }])
        }),
        events("count where bool", &[IS_ERROR], || {
            of(vec![Predicate::Bool(IS_ERROR)], vec![], vec![count()])
        }),
        events("bool_or", &[IS_ERROR], || {
            let any = aggregate(
                Argument::Truth(Predicate::Bool(IS_ERROR)),
                Logic::new(false),
            );
            of(vec![], vec![], vec![any])
        }),
        events("max f32", &[DURATION], || {
            let longest = aggregate(
                Argument::Number(duration()),
                Extreme::<f32>::new(End::Maximum),
            );
            of(vec![], vec![], vec![longest])
        }),
        events("count where f32 >", &[DURATION], || {
            of(vec![long()], vec![], vec![count()])
        }),
        events("count where f32 > f64", &[DURATION], || {
            let wide = Value::convert(NumberType::F64, duration());
            let threshold = Value::Scalar(NumberType::F64, 0);
            let long = Predicate::Compare(Comparison::Greater, wide, threshold);
            of(vec![long], vec![], vec![count()])
        }),
        events("avg f32", &[DURATION], || {
            of(
                vec![],
                vec![],
                vec![aggregate(
                    Argument::Number(duration()),
                    Moments::<f32>::new(false),
                )],
            )
        }),
        events("count group by 20 codes", &[SERVICE], || {
            of(vec![], vec![Key::Text(SERVICE)], vec![count()])
        }),
        trades("count where text", &[SYM], || {
            let one = OneOf::new(vec![b"S0077".as_slice().into()]);
            of(
                vec![Predicate::Text(TextPredicate::new(SYM, Box::new(one)))],
                vec![],
                vec![count()],
            )
        }),
        trades("sum f64", &[PRICE], || {
            of(
                vec![],
                vec![],
                vec![aggregate(
                    Argument::Number(price()),
                    FloatSum::<f64>::default(),
                )],
            )
        }),
        trades("vwap", &[PRICE, SIZE], || {
            of(
                vec![],
                vec![],
                vec![aggregate(
                    Argument::Pair(price(), wide_size()),
                    Weighted::default(),
                )],
            )
        }),
        trades("sum, vwap, count where f64 >", &[PRICE, SIZE], || {
            let sum = aggregate(Argument::Number(price()), FloatSum::<f64>::default());
            let vwap = aggregate(Argument::Pair(price(), wide_size()), Weighted::default());
            of(vec![dear()], vec![], vec![sum, vwap, count()])
        }),
        trades("sum(f64 * i32)", &[PRICE, SIZE], || {
            let product =
                Value::arithmetic(NumberType::F64, Operation::Multiply, price(), wide_size());
            of(
                vec![],
                vec![],
                vec![aggregate(
                    Argument::Number(product),
                    FloatSum::<f64>::default(),
                )],
            )
        }),
        trades("group by 1,000 codes: avg", &[SYM, PRICE], || {
            of(vec![], vec![Key::Text(SYM)], vec![average_price()])
        }),
        trades("group by 1,000 codes: max", &[SYM, SIZE], || {
            of(vec![], vec![Key::Text(SYM)], vec![greatest_size()])
        }),
        trades(
            "group by 1,000 codes: avg, max",
            &[SYM, PRICE, SIZE],
            || {
                of(
                    vec![],
                    vec![Key::Text(SYM)],
                    vec![average_price(), greatest_size()],
                )
            },
        ),
        trades(
            "group by 1,000 codes: avg, max, half",
            &[SYM, PRICE, SIZE],
            || {
                of(
                    vec![dear()],
                    vec![Key::Text(SYM)],
                    vec![average_price(), greatest_size()],
                )
            },
        ),
        trades(
            "group by 1,000 codes: sums, count",
            &[SYM, PRICE, SIZE],
            || {
                let sum = aggregate(Argument::Number(price()), FloatSum::<f64>::default());
                let sizes = aggregate(
                    Argument::Number(size()),
                    IntegerSums::<i32>::new(IntegerResult::Sum),
                );
                of(vec![], vec![Key::Text(SYM)], vec![sum, sizes, count()])
            },
        ),
    ]
}
