//! The label index as a query sees it: runs, and series that no run covers yet.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::rc::Rc;

use lanes_labels::index::top::{self, RunRef};
use lanes_labels::index::{self, Blocks, Builder, Directory};
use lanes_labels::{IdSet, METRIC_NAME, Malformed, Selector, label_set};
use pgrx::pg_sys::BuiltinOid::{INT4ARRAYOID, INT4OID, INT8OID};
use pgrx::prelude::*;

use super::conditions::Condition;
use super::packed;
use crate::error;
use crate::pg::statement::{OwnedArgument, Statement};
use crate::pg::text;
use crate::pg::{catalog, server};

/// The runs, each with the first id of the latest registration. Usually no series is later than all runs, and finding
/// that out here costs less than a statement of its own. The subqueries name all columns that queries for series read,
/// so that the caller needs the privileges for them, also if a cache has the answer.
static RUNS: Statement = Statement::reading(
    c"
    SELECT tableoid, run, last_id, pg_catalog.substr(directory, 1, 1),
           (SELECT first_id FROM lanes.series_runs
             WHERE last_id IS NOT NULL AND metric IS NOT NULL AND labels IS NOT NULL ORDER BY first_id DESC LIMIT 1),
           (SELECT terms FROM lanes.label_blocks WHERE false AND run IS NULL AND block IS NULL)
      FROM lanes.label_runs ORDER BY first_id",
    &[],
);
const DIRECTORY_SQL: &CStr =
    c"SELECT directory FROM lanes.label_runs WHERE run OPERATOR(pg_catalog.=) $1";
static DIRECTORY: Statement = Statement::reading(DIRECTORY_SQL, &[INT8OID]);
static DIRECTORY_BY_NOW: Statement = Statement::changing(DIRECTORY_SQL, &[INT8OID]);
const BLOCKS_SQL: &CStr = c"
    SELECT terms FROM lanes.label_blocks
     WHERE run OPERATOR(pg_catalog.=) $1 AND block OPERATOR(pg_catalog.=) ANY ($2) ORDER BY block";
static BLOCKS: Statement = Statement::reading(BLOCKS_SQL, &[INT8OID, INT4ARRAYOID]);
static BLOCKS_BY_NOW: Statement = Statement::changing(BLOCKS_SQL, &[INT8OID, INT4ARRAYOID]);
static SERIES_AFTER: Statement = Statement::reading(
    c"
    SELECT first_id, metric, labels FROM lanes.series_runs
     WHERE first_id OPERATOR(pg_catalog.>) $1 ORDER BY first_id",
    &[INT4OID],
)
.planned_with_values();

/// The tables that a query of series reads.
pub const TABLES: [&CStr; 3] = [c"series_runs", c"label_runs", c"label_blocks"];

/// The number of blocks that one statement reads.
const BLOCKS_AT_ONCE: usize = 256;
/// The largest size of the directories that a session caches, in bytes.
const DIRECTORY_BYTES_MAX: usize = 16 << 20;

/// A run is identified by its table, as the extension may be created anew, and by its number, which is never reused.
type RunKey = (pg_sys::Oid, i64);

/// The directories that this session has read. Runs never change.
#[derive(Default)]
struct Directories {
    known: HashMap<RunKey, Rc<Directory>>,
    bytes: usize,
}

thread_local! {
    static DIRECTORIES: RefCell<Directories> = RefCell::default();
}

/// A run of the index.
pub struct Run {
    /// Its directory.
    pub directory: Rc<Directory>,
    /// Its blocks.
    pub blocks: RunBlocks,
}

/// The blocks of a run.
pub enum RunBlocks {
    /// The stored blocks of the run with this number, as the calling query sees them.
    Stored(i64),
    /// The stored blocks of the run with this number, as a new snapshot sees them.
    StoredByNow(i64),
    /// The blocks of a run that exists for this query only.
    InMemory(Vec<Vec<u8>>),
}

impl Blocks for RunBlocks {
    type Error = Malformed;

    fn read(
        &mut self,
        blocks: &[usize],
        take: &mut dyn FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        match self {
            RunBlocks::InMemory(kept) => kept.read(blocks, take),
            RunBlocks::Stored(run) => read_stored(&BLOCKS, *run, blocks, take),
            RunBlocks::StoredByNow(run) => read_stored(&BLOCKS_BY_NOW, *run, blocks, take),
        }
    }
}

/// Reads blocks of a stored run with one of the two statements for it.
fn read_stored(
    statement: &Statement,
    run: i64,
    blocks: &[usize],
    take: &mut dyn FnMut(&[u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    for part in blocks.chunks(BLOCKS_AT_ONCE) {
        let (mut found, mut failure) = (0, None);
        let numbers: Vec<i32> = part.iter().map(|block| *block as i32).collect();
        let numbers = OwnedArgument::of(numbers).ok_or(Malformed("no block is requested"))?;
        let arguments = [pg_sys::Datum::from(run), numbers.datum()];
        statement.each_row(&arguments, |row| {
            found += 1;
            if failure.is_none()
                && let Some(block) = row.get::<&[u8]>(1)
            {
                failure = take(block).err();
            }
        });
        if found != part.len() {
            failure = failure.or(Some(Malformed("a block is missing")));
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        pgrx::check_for_interrupts!();
    }
    Ok(())
}

/// The label index.
pub struct Index {
    /// Its runs, in the order of their ids.
    pub runs: Vec<Run>,
    /// What identifies the stored runs.
    keys: Vec<RunKey>,
    /// The last id that a run covers.
    indexed_to: i32,
    /// Whether no series is later than the runs. Otherwise there may be some.
    is_complete: bool,
}

impl Index {
    /// The index as the calling query sees it.
    pub fn visible() -> Index {
        let mut index = Index {
            runs: Vec::new(),
            keys: Vec::new(),
            indexed_to: 0,
            is_complete: false,
        };
        if hides_series() {
            return index;
        }
        let (mut found, mut latest) = (Vec::new(), None);
        let mut is_known = true;
        RUNS.each_row(&[], |row| {
            // Runs of another version of this library, and all runs after them, are ignored.
            is_known = is_known && row.get::<&[u8]>(4) == Some(&[index::VERSION]);
            if let (Some(table), Some(run), Some(last)) = (row.get(1), row.get(2), row.get(3))
                && is_known
            {
                found.push(((table, run), last));
                latest = row.get::<i32>(5);
            }
        });
        for (key, last) in found {
            index.indexed_to = last;
            index.keys.push(key);
            index.runs.push(Run {
                directory: directory(key),
                blocks: RunBlocks::Stored(key.1),
            });
        }
        index.is_complete = index.indexed_to > 0 && latest.is_none_or(|id| id <= index.indexed_to);
        index
    }

    /// The ids of the series that a selector selects.
    pub fn select(&mut self, selector: &Selector) -> IdSet {
        self.select_covered(selector, &mut []) | self.select_after(selector)
    }

    /// What identifies the stored runs. Indexes of one version have the same series in their runs. `None` if there are
    /// no stored runs.
    pub fn version(&self) -> Option<String> {
        (!self.keys.is_empty()).then(|| format!("{:?}", self.keys))
    }

    /// The ids of the series that runs cover, that a selector selects and that may meet conditions.
    pub fn select_covered(&mut self, selector: &Selector, conditions: &mut [Condition]) -> IdSet {
        let mut selected = IdSet::new();
        for run in &mut self.runs {
            let found = sound(index::select(&run.directory, &mut run.blocks, selector));
            let conditions = conditions.iter_mut();
            selected |= conditions.fold(found, |found, condition| condition.narrow(run, found));
        }
        selected
    }

    /// The ids of the series that no run covers and that a selector selects. They are greater than those of the others.
    pub fn select_after(&self, selector: &Selector) -> IdSet {
        let mut selected = IdSet::new();
        if self.is_complete {
            return selected;
        }
        each_series_after(
            self.indexed_to,
            |metric| selector.admits_metric(metric),
            |id, metric, labels| {
                let labels = sound(label_set::parse(labels));
                let value = |name: &str| match name {
                    METRIC_NAME => metric,
                    _ => {
                        let label = labels.iter().find(|(known, _)| known == name);
                        label.map_or("", |(_, value)| value.as_ref())
                    }
                };
                if selector.matches(value) {
                    selected.insert(id);
                }
            },
        );
        selected
    }

    /// The ids that the runs cover. Some may have no series.
    pub fn covered(&self) -> IdSet {
        (1..=self.indexed_to as u32).collect()
    }

    /// The runs, for a function that reads all of them.
    pub fn run_refs(&mut self) -> Vec<RunRef<'_, RunBlocks>> {
        let runs = self.runs.iter_mut().map(|run| RunRef {
            directory: &run.directory,
            blocks: &mut run.blocks,
        });
        runs.collect()
    }

    /// Builds a run, for this query only, of the series that no run covers. `counts_values` says whether the run counts
    /// values that no earlier run has.
    pub fn cover_all(&mut self, counts_values: bool) {
        if self.is_complete {
            return;
        }
        let mut builder = Builder::default();
        each_series_after(
            self.indexed_to,
            |_| true,
            |id, metric, labels| {
                builder.add(id, metric, &sound(label_set::parse(labels)));
                self.indexed_to = id as i32;
            },
        );
        if builder.series() == 0 {
            return;
        }
        let mut kept = Vec::new();
        let put = |_, block| -> Result<(), Malformed> {
            kept.push(block);
            Ok(())
        };
        let mut runs = self.run_refs();
        let known = |name: &str, values: &[&str]| match counts_values {
            true => top::known_values(&mut runs, name, values),
            false => Ok(0),
        };
        let directory = sound(builder.finish(put, known));
        self.runs.push(Run {
            directory: Rc::new(directory),
            blocks: RunBlocks::InMemory(kept),
        });
    }
}

/// Whether row-level security hides series, or parts of the index, from the caller.
fn hides_series() -> bool {
    let mut tables = TABLES.iter().filter_map(|name| catalog::lanes_table(name));
    tables.any(server::hides_rows)
}

fn directory(key: RunKey) -> Rc<Directory> {
    let known = DIRECTORIES.with_borrow(|directories| directories.known.get(&key).cloned());
    if let Some(directory) = known {
        return directory;
    }
    let directory = Rc::new(read_directory(&DIRECTORY, key.1));
    DIRECTORIES.with_borrow_mut(|directories| {
        directories.bytes += directory.bytes();
        if directories.bytes > DIRECTORY_BYTES_MAX {
            directories.known.clear();
            directories.bytes = directory.bytes();
        }
        directories.known.insert(key, directory.clone());
    });
    directory
}

/// The directory of the run with this number, as a new snapshot sees it.
pub fn directory_by_now(run: i64) -> Directory {
    read_directory(&DIRECTORY_BY_NOW, run)
}

fn read_directory(statement: &Statement, run: i64) -> Directory {
    let mut read = Err(Malformed("a run has no directory"));
    statement.each_row(&[pg_sys::Datum::from(run)], |row| {
        if let Some(bytes) = row.get::<&[u8]>(1) {
            read = Directory::read(bytes);
        }
    });
    sound(read)
}

/// Calls `visit` with the id, the metric and the label set of each series that no run covers and
/// whose metric is admitted. The runs end with the id `indexed_to`, which is 0 if there are none.
fn each_series_after(
    indexed_to: i32,
    admits: impl Fn(&str) -> bool,
    visit: impl FnMut(u32, &str, &str),
) {
    let arguments = [pg_sys::Datum::from(indexed_to)];
    each_series(&SERIES_AFTER, &arguments, admits, visit);
}

/// Calls `visit` with the id, the metric and the label set of each series in the rows of a statement whose metric is
/// admitted. The rows are of `lanes.series_runs`: first id, metric, label sets.
pub fn each_series(
    statement: &Statement,
    arguments: &[pg_sys::Datum],
    admits: impl Fn(&str) -> bool,
    mut visit: impl FnMut(u32, &str, &str),
) {
    statement.each_row(arguments, |row| {
        let columns = (row.get::<i32>(1), row.get::<&[u8]>(2), row.get::<&[u8]>(3));
        let (Some(first), Some(metric), Some(labels)) = columns else {
            return;
        };
        let metric = text::utf8_text(metric);
        let metric = String::from_utf8_lossy(&metric);
        if !admits(&metric) {
            return;
        }
        let mut id = first as u32;
        packed::unpack(labels, |labels| {
            visit(id, &metric, labels);
            id += 1;
        });
        pgrx::check_for_interrupts!();
    });
}

/// The value that was read. A damaged index is an error.
pub fn sound<T>(read: Result<T, Malformed>) -> T {
    read.unwrap_or_else(|failure| {
        error::raise(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            format!("the label index is damaged: {failure}"),
            "TRUNCATE lanes.label_runs, lanes.label_blocks. A background worker or lanes.index_labels() rebuilds the index.",
        )
    })
}
