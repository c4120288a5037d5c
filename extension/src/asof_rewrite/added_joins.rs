//! Left joins that are added to a query's FROM.

use pgrx::pg_sys;

use crate::pg::outer_joins;
use crate::pg::tree::{
    Expr, FromExpr, JoinExpr, JoinTree, List, Node, Query, RangeTblEntry, TargetEntry, Var, make,
    tag,
};

/// The most relations of a query that gets joins: the default of `join_collapse_limit`.
const RELATIONS_MAX: usize = 8;

/// The left joins that are added to a query. Their right sides have one row at most for each row of FROM, so the rows
/// of the query stay the same.
pub struct AddedJoins<'p> {
    query: Query<'p>,
    /// FROM with the joins so far.
    from: JoinTree<'p>,
    /// How many relations the query has with the joins so far.
    relations: usize,
    added: usize,
}

/// The right side of an added join.
#[derive(Clone, Copy)]
pub struct AddedSide {
    /// The index of its entry.
    pub entry: i32,
    /// The index of the join.
    join: i32,
}

impl<'p> AddedJoins<'p> {
    /// Begins without a join, for a query with sub-selects. Returns its FROM and WHERE too. `None` if it reads no
    /// table, or cannot have more joins.
    pub fn of(query: Query<'p>) -> Option<(FromExpr<'p>, AddedJoins<'p>)> {
        let is_plain = query.hasSubLinks()
            && query.commandType() == pg_sys::CmdType::CMD_SELECT
            && query.setOperations().is_none()
            && query.rowMarks().is_empty()
            && !query.hasTargetSRFs();
        // PostgreSQL would evaluate a volatile condition without columns above the joins.
        let clause = query.jointree();
        let clause = clause.filter(|clause| is_plain && !clause.as_node().is_volatile())?;
        let tables: Vec<_> = clause.fromlist().iter().collect();
        let from = match tables[..] {
            [] => return None,
            [only] => only,
            _ => make::from(&tables, None).as_join_tree(),
        };
        let joins = AddedJoins {
            query,
            from,
            relations: relations(query),
            added: 0,
        };
        Some((clause, joins))
    }

    /// Whether PostgreSQL would still look for the best order of the joins if there was one more.
    pub fn has_room(&self) -> bool {
        self.relations < RELATIONS_MAX
    }

    /// Adds a sub-select's entry to the query's range table. [`AddedJoins::join`] has to follow.
    pub fn enter(&mut self, side: RangeTblEntry<'p>) -> AddedSide {
        let names = make::alias(c"unnamed_join", List::EMPTY);
        let entry: RangeTblEntry<'p> = tag::new();
        entry.set_kind(pg_sys::RTEKind::RTE_JOIN);
        entry.set_join_kind(pg_sys::JoinType::JOIN_LEFT);
        entry.set_names(Some(names));
        entry.set_in_from(true);
        AddedSide {
            entry: self.push(side),
            join: self.push(entry),
        }
    }

    /// Joins a side by a condition.
    pub fn join(&mut self, side: AddedSide, condition: Expr<'p>) {
        let join: JoinExpr<'p> = tag::new();
        join.set_kind(pg_sys::JoinType::JOIN_LEFT);
        join.set_left(Some(self.from));
        join.set_right(Some(make::reference(side.entry)));
        join.set_quals(Some(condition));
        join.set_index(side.join);
        self.from = join.as_join_tree();
        self.relations += 1;
        self.added += 1;
    }

    /// The column of a side that a target of its sub-select is, above the joins.
    pub fn column(&self, side: AddedSide, target: TargetEntry<'p>) -> Var<'p> {
        let column = make::var_of_target(side.entry, target);
        outer_joins::add(column, side.join);
        column
    }

    /// Makes the joins part of the query, with a condition for WHERE. Returns whether there are any.
    pub fn finish(self, quals: Option<Expr<'p>>) -> bool {
        if self.added > 0 {
            let from: FromExpr<'p> = make::from(&[self.from], quals);
            self.query.set_jointree(Some(from));
        }
        self.added > 0
    }

    /// Adds an entry to the query's range table, and returns its index.
    fn push(&self, entry: RangeTblEntry<'p>) -> i32 {
        let mut entries = self.query.rtable();
        entries.push(entry);
        self.query.set_rtable(entries);
        entries.len() as i32
    }
}

/// How many relations a query has once the queries in its FROM have become parts of it.
fn relations(query: Query<'_>) -> usize {
    let entries = query.rtable().iter();
    let relations = entries.map(|entry| match entry.subquery() {
        Some(inner) => relations(inner),
        None => usize::from(entry.rtekind() != pg_sys::RTEKind::RTE_JOIN),
    });
    relations.sum()
}
