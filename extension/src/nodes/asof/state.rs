//! Executes an accelerated join: reads the right side once into a [`History`], then looks up each row of the left side.
//!
//! Where it cannot stand in for the nested loop below it (rechecks of concurrently updated rows, or a plan without a
//! [`Node`]), it runs the loop. It hands over to the loop, too, if the history would take more memory than it may:
//! that is known before the first row of the left side is read. What it holds in Rust memory is dropped when the
//! query's memory context goes, however the query ends.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::history::{Column, History, TieImage};
use super::private_data::Node;
use crate::custom_scan::stand_in;
use crate::pg::{executor, ports, tree};

/// The node's state as Postgres sees it.
#[repr(C)]
struct State {
    base: pg_sys::CustomScanState,
    /// Null until the node begins.
    run: *mut Run,
}

struct Run {
    below: *mut pg_sys::PlanState,
    /// `None`: the nested loop runs itself.
    join: Option<Join>,
    /// Whether the loop runs because memory was not enough.
    handed_over: bool,
    lines: *mut pg_sys::List,
}

struct Join {
    node: Node,
    context: *mut pg_sys::ExprContext,
    keys: Vec<*mut pg_sys::ExprState>,
    bounds: Vec<*mut pg_sys::ExprState>,
    residual: *mut pg_sys::ExprState,
    chosen: *mut pg_sys::ExprState,
    /// A row of kept columns, for the conditions.
    candidate: *mut pg_sys::TupleTableSlot,
    /// A row as the loop's right side would have given it.
    matched: *mut pg_sys::TupleTableSlot,
    history: Option<History>,
    searches: u64,
    /// The key being looked up.
    key: Vec<u8>,
}

struct Methods(pg_sys::CustomExecMethods);
// SAFETY: constant, and Postgres is single-threaded.
unsafe impl Sync for Methods {}
static METHODS: Methods = Methods(pg_sys::CustomExecMethods {
    CustomName: super::plan::NAME.as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(execute),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: None,
    InitializeDSMCustomScan: None,
    ReInitializeDSMCustomScan: None,
    InitializeWorkerCustomScan: None,
    ShutdownCustomScan: None,
    ExplainCustomScan: Some(explain),
});

/// Makes the state of a node.
///
/// # Safety
/// Called by the executor.
#[pg_guard]
pub unsafe extern "C-unwind" fn create_state(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: the state begins with the node that Postgres knows.
    unsafe {
        let state: *mut State = tree::make(pg_sys::NodeTag::T_CustomScanState);
        (*state).base.methods = &METHODS.0;
        state.cast()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(
    base: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    flags: i32,
) {
    // SAFETY: called by the executor with a state of ours.
    unsafe {
        let scan: *mut pg_sys::CustomScan = (*base).ss.ps.plan.cast();
        let below = pg_sys::ExecInitNode(ports::list_nth((*scan).custom_plans, 0), estate, flags);
        let node = Node::decode((*scan).custom_private);
        let lines = node
            .as_ref()
            .map_or(std::ptr::null_mut(), |node| node.lines);
        let join = match node {
            Some(node)
                if (*estate).es_epq_active.is_null()
                    && tree::is_a(below, pg_sys::NodeTag::T_NestLoopState) =>
            {
                Some(Join::begin(node, below, estate))
            }
            _ => None,
        };
        // EXPLAIN shows what runs.
        let shown = if join.is_some() {
            (*below).lefttree
        } else {
            below
        };
        (*base).custom_ps = tree::list(&[shown]);
        let run = Box::into_raw(Box::new(Run {
            below,
            join,
            handed_over: false,
            lines,
        }));
        (*base.cast::<State>()).run = run;
        let callback: *mut pg_sys::MemoryContextCallback =
            pg_sys::palloc0(size_of::<pg_sys::MemoryContextCallback>()).cast();
        (*callback).func = Some(drop_run);
        (*callback).arg = run.cast();
        pg_sys::MemoryContextRegisterResetCallback((*estate).es_query_cxt, callback);
    }
}

/// The query's memory goes: nothing of Postgres's is touched, it goes too.
unsafe extern "C-unwind" fn drop_run(run: *mut std::ffi::c_void) {
    // SAFETY: made by `begin`, dropped here only.
    drop(unsafe { Box::from_raw(run.cast::<Run>()) });
}

impl Join {
    unsafe fn begin(
        node: Node,
        below: *mut pg_sys::PlanState,
        estate: *mut pg_sys::EState,
    ) -> Join {
        // SAFETY: live executor state; expressions were made for it by `plan`.
        unsafe {
            let init = |list| -> Vec<*mut pg_sys::ExprState> {
                tree::elements::<pg_sys::Expr>(list)
                    .into_iter()
                    .map(|expression| pg_sys::ExecInitExpr(expression, std::ptr::null_mut()))
                    .collect()
            };
            let table = pg_sys::relation_open(node.table, pg_sys::AccessShareLock as i32);
            let kept = pg_sys::CreateTemplateTupleDesc(node.kept.len() as i32);
            for (place, &column) in node.kept.iter().enumerate() {
                pg_sys::TupleDescCopyEntry(kept, place as i16 + 1, (*table).rd_att, column);
            }
            pg_sys::relation_close(table, pg_sys::NoLock as i32);
            let virtual_slot =
                |shape| pg_sys::MakeSingleTupleTableSlot(shape, &raw const pg_sys::TTSOpsVirtual);
            Join {
                context: pg_sys::CreateExprContext(estate),
                keys: init(node.key_expressions),
                bounds: init(node.bound_expressions),
                residual: pg_sys::ExecInitQual(node.residual_quals, std::ptr::null_mut()),
                chosen: pg_sys::ExecInitQual(node.chosen_quals, std::ptr::null_mut()),
                candidate: virtual_slot(kept),
                matched: virtual_slot(pg_sys::ExecGetResultType((*below).righttree)),
                history: None,
                searches: 0,
                key: Vec::new(),
                node,
            }
        }
    }

    unsafe fn drop_slots(&self) {
        // SAFETY: the caller has a join that is not used any more.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.candidate);
            pg_sys::ExecDropSingleTupleTableSlot(self.matched);
        }
    }

    /// The right side's row for the left row in `outer`, or none.
    unsafe fn find(&mut self, outer: *mut pg_sys::TupleTableSlot) -> Option<usize> {
        // SAFETY: expressions run in their own context; the candidate's values live as long as the history.
        unsafe {
            let history = self.history.as_mut()?;
            let context = self.context;
            executor::reset(context);
            (*context).ecxt_outertuple = outer;
            self.searches += 1;
            self.key.clear();
            for (key, &state) in self.node.keys.iter().zip(&self.keys) {
                match executor::evaluate(state, context) {
                    Some(value) => {
                        self.key.push(1);
                        executor::in_context((*context).ecxt_per_tuple_memory, || {
                            key.outer_kind.append_key(value, &mut self.key)
                        });
                    }
                    None if key.nulls_match => self.key.push(0),
                    None => return None,
                }
            }
            let (mut lower, mut upper) = (i64::MIN, i64::MAX);
            for (bound, &state) in self.node.bounds.iter().zip(&self.bounds) {
                let limit = bound
                    .outer_kind
                    .ordered(executor::evaluate(state, context)?);
                if bound.upper {
                    let limit = if bound.inclusive {
                        limit
                    } else {
                        limit.checked_sub(1)?
                    };
                    upper = upper.min(limit);
                } else {
                    let limit = if bound.inclusive {
                        limit
                    } else {
                        limit.checked_add(1)?
                    };
                    lower = lower.max(limit);
                }
            }
            let (residual, candidate) = (self.residual, self.candidate);
            let found = history.find(
                &self.key,
                lower,
                upper,
                self.node.backward,
                |columns, row| {
                    if residual.is_null() {
                        return true;
                    }
                    // There may be as many candidates as the right side has rows. Keys and bounds are no datums any more.
                    ports::CHECK_FOR_INTERRUPTS();
                    executor::reset(context);
                    let places = 0..columns.len() as i32;
                    fill(candidate, columns, row, places);
                    (*context).ecxt_innertuple = candidate;
                    executor::passes(residual, context)
                },
            )?;
            if !self.chosen.is_null() {
                let places = 0..history.columns.len() as i32;
                fill(candidate, &history.columns, found, places);
                (*context).ecxt_innertuple = candidate;
                if !executor::passes(self.chosen, context) {
                    return None;
                }
            }
            Some(found)
        }
    }

    /// Reads the right side; false if it takes too much memory.
    unsafe fn build(&mut self, estate: *mut pg_sys::EState) -> bool {
        // SAFETY: the table is locked as the plan's; the slot and the scan end before it is closed, or with the transaction.
        unsafe {
            let node = &self.node;
            let limit = stand_in::memory_limit();
            let history = History::new(node.kept.len(), node.ties.len(), limit);
            let history = self.history.insert(history);
            let table = pg_sys::relation_open(node.table, pg_sys::AccessShareLock as i32);
            let shape = (*table).rd_att;
            let quals = pg_sys::ExecInitQual(node.table_quals, std::ptr::null_mut());
            let slot = pg_sys::table_slot_create(table, std::ptr::null_mut());
            let context = self.context;
            let kept: Vec<_> = node
                .kept
                .iter()
                .map(|&column| {
                    let attribute = ports::TupleDescAttr(shape, column as usize - 1);
                    (column, attribute.attbyval, i32::from(attribute.attlen))
                })
                .collect();
            let last = node
                .kept
                .iter()
                .copied()
                .chain(node.keys.iter().map(|key| key.column))
                .chain(node.ties.iter().map(|tie| tie.column))
                .chain([node.time])
                .max()
                .unwrap_or(0);
            let mut ties: Vec<TieImage> = Vec::with_capacity(node.ties.len());
            let mut fits = true;
            let Some(scan) = executor::begin_scan(table, (*estate).es_snapshot) else {
                return fits;
            };
            while executor::next(scan, slot) {
                ports::CHECK_FOR_INTERRUPTS();
                executor::reset(context);
                (*context).ecxt_scantuple = slot;
                if !executor::passes(quals, context) {
                    continue;
                }
                let Some(time) = executor::attribute(slot, last, node.time) else {
                    continue;
                };
                self.key.clear();
                let keyed =
                    node.keys
                        .iter()
                        .all(|key| match executor::attribute(slot, last, key.column) {
                            Some(value) => {
                                self.key.push(1);
                                executor::in_context((*context).ecxt_per_tuple_memory, || {
                                    key.kind.append_key(value, &mut self.key)
                                });
                                true
                            }
                            None => {
                                self.key.push(0);
                                key.nulls_match
                            }
                        });
                if !keyed {
                    continue;
                }
                ties.clear();
                ties.extend(
                    node.ties
                        .iter()
                        .map(|tie| tie.image(executor::attribute(slot, last, tie.column))),
                );
                let arrival = executor::place(slot);
                let arrival = if node.arrival_inverted {
                    !arrival
                } else {
                    arrival
                };
                let elsewhere = |&(column, by_value, length): &(i16, bool, i32)| {
                    let value = executor::attribute(slot, last, column).filter(|_| !by_value);
                    value.map(|value| executor::bytes(value, length))
                };
                let lengths = kept.iter().filter_map(elsewhere).map(<[u8]>::len);
                // Each begins at a word of its own.
                let length = lengths.map(|length| length.next_multiple_of(8)).sum();
                fits = history.make_room(self.key.len(), length);
                if !fits {
                    break;
                }
                history.add(&self.key, node.time_kind.ordered(time), &ties, arrival);
                for (place, of) in kept.iter().enumerate() {
                    let value = executor::attribute(slot, last, of.0);
                    let word = match elsewhere(of) {
                        Some(bytes) => history.values.copy(bytes),
                        None => value.map_or(0, |value| value.value()),
                    };
                    history.columns[place].values.push(word);
                    history.columns[place].nulls.push(value.is_none());
                }
            }
            executor::end_scan(scan);
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            pg_sys::relation_close(table, pg_sys::NoLock as i32);
            if fits {
                history.seal();
            }
            fits
        }
    }

    /// The join's next row; null at the end. As core's nested loop does it, with at most one row on the right. `None`:
    /// the right side takes too much memory, and no row was returned.
    unsafe fn next(
        &mut self,
        below: *mut pg_sys::PlanState,
    ) -> Option<*mut pg_sys::TupleTableSlot> {
        // SAFETY: `below` is a nested loop; its expressions run in its own context.
        unsafe {
            let nested: *mut pg_sys::NestLoopState = below.cast();
            let context = (*below).ps_ExprContext;
            if self.history.is_none() && !self.build((*below).state) {
                return None;
            }
            loop {
                ports::CHECK_FOR_INTERRUPTS();
                let outer = executor::next_row((*below).lefttree);
                if executor::is_empty(outer) {
                    return Some(std::ptr::null_mut());
                }
                executor::reset(context);
                (*context).ecxt_outertuple = outer;
                let found = self.find(outer);
                let mut matched = false;
                if let (Some(row), Some(history)) = (found, &self.history) {
                    fill(
                        self.matched,
                        &history.columns,
                        row,
                        self.node.outputs.iter().copied(),
                    );
                    (*context).ecxt_innertuple = self.matched;
                    matched = executor::passes((*nested).js.joinqual, context);
                }
                if !matched {
                    if (*nested).js.jointype != pg_sys::JoinType::JOIN_LEFT {
                        continue;
                    }
                    (*context).ecxt_innertuple = (*nested).nl_NullInnerTupleSlot;
                }
                if executor::passes((*below).qual, context) {
                    return Some(executor::project((*below).ps_ProjInfo));
                }
            }
        }
    }
}

impl Run {
    /// Leaves the rest to the nested loop, of which nothing was executed yet, if it has not been left to it before.
    unsafe fn hand_over(&mut self, base: *mut pg_sys::CustomScanState) {
        let Some(join) = self.join.take() else {
            return;
        };
        self.handed_over = true;
        // SAFETY: a state of ours that has begun; the slots are the join's alone. EXPLAIN shows what runs.
        unsafe {
            join.drop_slots();
            *(*(*base).custom_ps).elements = pg_sys::ListCell {
                ptr_value: self.below.cast(),
            };
        }
    }
}

/// Makes `slot` the row of these columns; a place without a column is NULL.
unsafe fn fill(
    slot: *mut pg_sys::TupleTableSlot,
    columns: &[Column],
    row: usize,
    places: impl Iterator<Item = i32>,
) {
    // SAFETY: a virtual slot of as many columns; values outlive it.
    unsafe {
        ports::ExecClearTuple(slot);
        for (target, place) in places.enumerate() {
            let column = columns.get(place as usize);
            *(*slot).tts_values.add(target) =
                pg_sys::Datum::from(column.map_or(0, |column| column.values[row]));
            *(*slot).tts_isnull.add(target) = column.is_none_or(|column| column.nulls[row]);
        }
        executor::filled(slot);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn execute(
    base: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a state of ours that has begun.
    unsafe {
        let run = &mut *(*base.cast::<State>()).run;
        let row = match &mut run.join {
            Some(join) => join.next(run.below),
            None => None,
        };
        let row = match row {
            Some(row) => row,
            None => {
                run.hand_over(base);
                executor::next_row(run.below)
            }
        };
        if executor::is_empty(row) {
            return std::ptr::null_mut();
        }
        let projection = (*base).ss.ps.ps_ProjInfo;
        if projection.is_null() {
            return row;
        }
        let context = (*base).ss.ps.ps_ExprContext;
        executor::reset(context);
        (*context).ecxt_scantuple = row;
        executor::project(projection)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(base: *mut pg_sys::CustomScanState) {
    // SAFETY: a state of ours; null if beginning failed.
    unsafe {
        let run = (*base.cast::<State>()).run;
        if run.is_null() {
            return;
        }
        if let Some(join) = &(*run).join {
            join.drop_slots();
        }
        pg_sys::ExecEndNode((*run).below);
    }
}

/// The history stays: nothing that it was read by can have changed within the query.
#[pg_guard]
unsafe extern "C-unwind" fn rescan(base: *mut pg_sys::CustomScanState) {
    // SAFETY: a state of ours that has begun.
    unsafe {
        let run = &*(*base.cast::<State>()).run;
        if !(*base).ss.ps.chgParam.is_null() {
            pg_sys::UpdateChangedParamSet(run.below, (*base).ss.ps.chgParam);
        }
        pg_sys::ExecReScan(run.below);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain(
    base: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    state: *mut pg_sys::ExplainState,
) {
    // SAFETY: a state of ours that has begun.
    unsafe {
        let run = &*(*base.cast::<State>()).run;
        let Some(join) = &run.join else {
            let line = |label: &CStr, text: &str| {
                let text = CString::new(text).unwrap_or_default();
                pg_sys::ExplainPropertyText(label.as_ptr(), text.as_ptr(), state);
            };
            line(c"Algorithm", "nested loop");
            if run.handed_over && (*state).analyze {
                line(c"Handed Over", stand_in::RIGHT_SIDE_TOO_LARGE);
            }
            return;
        };
        let lines = tree::elements::<pg_sys::String>(run.lines);
        for line in lines.chunks_exact(2) {
            pg_sys::ExplainPropertyText((*line[0]).sval, (*line[1]).sval, state);
        }
        let Some(history) = join.history.as_ref().filter(|_| (*state).analyze) else {
            return;
        };
        let number = |label: &CStr, unit, number: usize| {
            pg_sys::ExplainPropertyInteger(label.as_ptr(), unit, number as i64, state);
        };
        number(c"Right Rows", std::ptr::null(), history.rows());
        number(c"Right Keys", std::ptr::null(), history.keys());
        number(c"Keys Sorted", std::ptr::null(), history.groups_sorted);
        number(c"Searches", std::ptr::null(), join.searches as usize);
        number(c"Memory", c"kB".as_ptr(), history.bytes().div_ceil(1024));
    }
}
