//! Random operations on several tables in an arena that is too small for them.

use proptest::prelude::*;

use super::dictionaries::Dictionaries;
use super::*;
use crate::test_support::{any_kind, cases};

const TABLES: usize = 3;
const ROWS_MAX: usize = if cfg!(miri) {
    200
} else {
    3 * VECTOR_ROWS - 100
};
const APPENDED_MAX: usize = if cfg!(miri) { 60 } else { 1_200 };

#[derive(Clone, Debug)]
enum Step {
    Append {
        rows: usize,
        variety: u32,
        nulls: bool,
    },
    Publish,
    Load {
        segment: u32,
        part: u8,
        margin: usize,
    },
    Read {
        segment: u32,
    },
    Hold {
        segment: u32,
    },
    LetGo {
        pick: prop::sample::Index,
    },
    AddColumn(LaneKind),
    DropColumn,
    NextGeneration,
    Purge,
    Close,
}

fn any_step() -> impl Strategy<Value = Step> {
    let segment = || 0..3_u32;
    prop_oneof![
        4 => (1..APPENDED_MAX, prop_oneof![Just(5_u32), Just(9_000)], any::<bool>())
            .prop_map(|(rows, variety, nulls)| Step::Append { rows, variety, nulls }),
        2 => Just(Step::Publish),
        8 => (segment(), any::<u8>(), 0..3_usize)
            .prop_map(|(segment, part, margin)| Step::Load { segment, part, margin }),
        5 => segment().prop_map(|segment| Step::Read { segment }),
        2 => segment().prop_map(|segment| Step::Hold { segment }),
        2 => any::<prop::sample::Index>().prop_map(|pick| Step::LetGo { pick }),
        1 => any_kind().prop_map(Step::AddColumn),
        1 => Just(Step::DropColumn),
        1 => Just(Step::NextGeneration),
        1 => Just(Step::Purge),
        1 => Just(Step::Close),
    ]
}

/// A segment that is held, and what it must show for as long as it is.
struct Held {
    pinned: Segment<MutexLocks>,
    number: u32,
    rows: usize,
    kinds: Vec<LaneKind>,
    values: Vec<Vec<Value>>,
}

impl Held {
    fn check(&self) {
        assert_segment(
            &self.pinned,
            self.number,
            &self.kinds,
            &self.values,
            self.rows,
        );
    }
}

struct Table {
    key: RelationKey,
    generation: u64,
    kinds: Vec<LaneKind>,
    values: Vec<Vec<Value>>,
    rows: usize,
    /// First row and rows of each run.
    runs: Vec<(usize, usize)>,
    relation: Option<Relation<MutexLocks>>,
}

impl Table {
    fn new(number: usize, kinds: &[LaneKind]) -> Self {
        Table {
            key: key(number as u32),
            generation: 0,
            kinds: kinds.to_vec(),
            values: vec![Vec::new(); kinds.len()],
            rows: 0,
            runs: Vec::new(),
            relation: None,
        }
    }

    fn open(&mut self, arena: &TestArena) -> Relation<MutexLocks> {
        let (key, generation) = (self.key, self.generation);
        let relation = self
            .relation
            .get_or_insert_with(|| arena.open(key, generation).expect("slots suffice"));
        assert_eq!((relation.key(), relation.generation()), (key, generation));
        relation.clone()
    }

    /// Publishes what the arena has not yet, and checks what it has.
    fn publish(&mut self, arena: &TestArena) {
        let relation = self.open(arena);
        let refusals = arena.stats().refusals;
        let (known, position) = relation.published();
        assert_eq!(position.index, known, "read together");
        let entries = self.runs[known as usize..]
            .iter()
            .map(|&(first, rows)| RunEntry {
                first_row: first as u64,
                rows: rows as u32,
                xmin: first as u32 + 7,
                ..RunEntry::default()
            })
            .collect::<Vec<_>>();
        let position = Position {
            block: 3,
            index: self.runs.len() as u32,
        };
        assert!(!relation.publish(known + 1, &entries, position));
        if !relation.publish(known, &entries, position) {
            assert!(arena.stats().refusals > refusals, "refused without reason");
            return;
        }
        assert_eq!(relation.published(), (self.runs.len() as u32, position));
        for (index, &(first, rows)) in (0..).zip(&self.runs) {
            let run = relation.run(index);
            assert_eq!(run.first_row as usize, first);
            assert_eq!((run.rows, run.xmin), (rows as u32, first as u32 + 7));
            assert_eq!(relation.find_run(first as u64), Some(index));
            assert_eq!(relation.find_run(run.end_row() - 1), Some(index));
        }
        assert_eq!(relation.find_run(self.rows as u64), None);
        for segment in 0..4 {
            let start = segment_first_row(segment) as usize;
            let expected = self
                .runs
                .partition_point(|(first, rows)| first + rows <= start);
            assert_eq!(relation.first_run_of_segment(segment), expected as u32);
        }
    }

    /// Loads a part of what a segment lacks.
    fn load(&mut self, arena: &TestArena, segment: u32, part: u8, margin: usize) {
        let relation = self.open(arena);
        let start = segment_first_row(segment) as usize;
        let Some(available) = self
            .rows
            .checked_sub(start)
            .map(|rows| rows.min(VECTOR_ROWS))
        else {
            return;
        };
        let pinned = relation.pin_segment(segment);
        let resident = pinned
            .as_ref()
            .map_or(0, |pinned| pinned.rows_resident() as usize);
        let is_current = pinned.as_ref().is_none_or(|pinned| {
            (0..pinned.columns().max(self.kinds.len()))
                .all(|column| pinned.kind(column) == self.kinds.get(column).copied())
        });
        drop(pinned);
        let rows = (available - resident) * usize::from(part) / 255;
        // Rows before and after that are not meant to be copied.
        let first = margin.min(start + resident);
        let from = start + resident - first;
        let columns = build_all(
            &self.kinds,
            &self.values,
            from..(start + resident + rows + margin).min(self.rows),
        );
        let refusals = arena.stats().refusals;
        let resident_u32 = resident as u32;
        let extend = |at| relation.extend_segment(segment, &self.kinds, at, &columns, first, rows);
        if is_current {
            assert!(!extend(resident_u32 + 1), "a gap");
        }
        let done = extend(resident_u32);
        let now = relation.pin_segment(segment);
        match (done, is_current) {
            (true, true) => {
                if let Some(now) = now {
                    assert_eq!(now.rows_resident() as usize, resident + rows);
                }
            }
            (true, false) => panic!("extended a segment of other columns"),
            (false, false) => assert!(now.is_none(), "not retired"),
            (false, true) => {
                assert!(arena.stats().refusals > refusals || columns.is_empty());
            }
        }
    }

    fn read(&mut self, arena: &TestArena, segment: u32) -> Option<Held> {
        let pinned = self.open(arena).pin_segment(segment)?;
        let kinds = (0..pinned.columns())
            .filter_map(|column| pinned.kind(column))
            .collect::<Vec<_>>();
        if kinds != self.kinds {
            return None;
        }
        let held = Held {
            rows: pinned.rows_resident() as usize,
            pinned,
            number: segment,
            kinds,
            values: self.values.clone(),
        };
        held.check();
        Some(held)
    }
}

fn run(kinds: &[LaneKind], steps: Vec<(usize, Step)>, bytes: usize) {
    with_arena(bytes, TABLES as u32 * 4, |arena| {
        let mut seed = 1;
        let mut held = Vec::<Held>::new();
        let mut dictionaries = Dictionaries::default();
        let mut tables = (0..TABLES)
            .map(|number| Table::new(number, kinds))
            .collect::<Vec<_>>();
        for (number, step) in steps {
            let table = &mut tables[number];
            match step {
                Step::Append {
                    rows,
                    variety,
                    nulls,
                } => {
                    let rows = rows.min(ROWS_MAX - table.rows);
                    if rows == 0 {
                        continue;
                    }
                    for (&kind, values) in table.kinds.iter().zip(&mut table.values) {
                        values.extend(generate(kind, rows, variety, nulls, &mut seed));
                    }
                    table.runs.push((table.rows, rows));
                    table.rows += rows;
                }
                Step::Publish => table.publish(arena),
                Step::Load {
                    segment,
                    part,
                    margin,
                } => {
                    table.load(arena, segment, part, margin);
                }
                Step::Read { segment } => {
                    if let Some(held) = table.read(arena, segment) {
                        dictionaries.check(&held.pinned, &held.kinds);
                    }
                }
                Step::Hold { segment } => held.extend(table.read(arena, segment)),
                Step::LetGo { pick } => {
                    if !held.is_empty() {
                        let held = held.swap_remove(pick.index(held.len()));
                        held.check();
                        dictionaries.check(&held.pinned, &held.kinds);
                    }
                }
                Step::AddColumn(kind) => {
                    table.kinds.push(kind);
                    table.values.push(vec![None; table.rows]);
                }
                Step::DropColumn => {
                    if let Some(kind) = table.kinds.first_mut() {
                        *kind = LaneKind::Absent;
                        table.values[0] = vec![None; table.rows];
                    }
                }
                Step::NextGeneration => {
                    table.generation += 1;
                    table.relation = None;
                    assert!(table.open(arena).runs() <= table.runs.len() as u32);
                }
                Step::Purge => {
                    arena.purge((table.key.space, table.key.database, table.key.file));
                    table.relation = None;
                    assert_eq!(table.open(arena).runs(), 0);
                }
                Step::Close => table.relation = None,
            }
            arena.core.assert_invariants();
        }
        held.iter().for_each(Held::check);
        drop(held);
        let keys = tables
            .into_iter()
            .map(|table| table.key)
            .collect::<Vec<_>>();
        assert_all_comes_back(arena, &keys);
    });
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn segments_show_what_was_loaded(
        kinds in prop::collection::vec(any_kind(), 0..4),
        steps in prop::collection::vec((0..TABLES, any_step()), 1..if cfg!(miri) { 25 } else { 90 }),
        kilobytes in 256..1_500_usize,
    ) {
        run(&kinds, steps, kilobytes << 10);
    }
}
