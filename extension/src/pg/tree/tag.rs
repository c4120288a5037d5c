//! Nodes by their tags: which structure a node is, and new nodes.

use pgrx::pg_sys::{self, NodeTag};

use super::expression::Expr;
use super::list::{Integers, List, Oids};
use super::operands::{
    Aggref, BoolExpr, Const, FuncExpr, OpExpr, RelabelType, SubPlan, TargetEntry, Var,
};
use super::path::{CustomPath, Path, ProjectionPath, SubqueryScanPath};
use super::plan::{Append, CustomScan, Join, MergeAppend, Plan, PlannedStmt, SubqueryScan};
use super::planner::{RelOptInfo, RestrictInfo};
use super::query::{
    JoinTree, Name, Query, RangeTblEntry, RangeTblRef, SetOperationStmt, SortGroupClause,
};
use super::raw;
use super::statement::{AlterTableStmt, CreateStmt, CreateTableAsStmt, IndexStmt, RenameStmt};
use super::view::{Field, View, tag_of};

/// Views of nodes: structures that begin with a tag.
///
/// # Safety
/// The structure begins with a tag.
pub unsafe trait Node<'p>: View<'p> {
    /// The node's tag.
    #[inline]
    fn tag(self) -> NodeTag {
        // SAFETY: a live node, see the trait.
        unsafe { tag_of(self.as_ptr()) }
    }

    /// The node as one of this kind, if it is one.
    #[inline]
    fn downcast<V: Tagged<'p>>(self) -> Option<V> {
        // SAFETY: a live node; the tag says which structure it is.
        (self.tag() == V::TAG).then(|| unsafe { V::at(self.as_ptr().cast()) })
    }

    /// The node as one of any kind.
    #[inline]
    fn as_node(self) -> Expr<'p> {
        // SAFETY: a live node begins with a tag.
        unsafe { Expr::at(self.as_ptr().cast()) }
    }
}

/// Views of one kind of nodes.
///
/// # Safety
/// `TAG` is the tag of the view's structure, of which zero is a legal value of every other field.
pub unsafe trait Tagged<'p>: Node<'p> {
    /// The tag that such a node begins with.
    const TAG: NodeTag;
}

macro_rules! nodes {
    ($($view:ident),*) => {$(
        // SAFETY: PostgreSQL declares the structure as a node.
        unsafe impl<'p> Node<'p> for $view<'p> {}
    )*};
}

macro_rules! kinds {
    ($($view:ident = $tag:ident;)*) => {$(
        nodes!($view);
        // SAFETY: PostgreSQL's own `makeNode` pairs structure and tag so, and begins with zeros.
        unsafe impl<'p> Tagged<'p> for $view<'p> {
            const TAG: NodeTag = NodeTag::$tag;
        }
    )*};
}

nodes!(Expr, Join, JoinTree, Path, Plan);

kinds! {
    Aggref = T_Aggref;
    AlterTableStmt = T_AlterTableStmt;
    Append = T_Append;
    BoolExpr = T_BoolExpr;
    Const = T_Const;
    CreateStmt = T_CreateStmt;
    CreateTableAsStmt = T_CreateTableAsStmt;
    CustomPath = T_CustomPath;
    CustomScan = T_CustomScan;
    FuncExpr = T_FuncExpr;
    IndexStmt = T_IndexStmt;
    MergeAppend = T_MergeAppend;
    Name = T_String;
    OpExpr = T_OpExpr;
    PlannedStmt = T_PlannedStmt;
    ProjectionPath = T_ProjectionPath;
    Query = T_Query;
    RangeTblEntry = T_RangeTblEntry;
    RangeTblRef = T_RangeTblRef;
    RelOptInfo = T_RelOptInfo;
    RelabelType = T_RelabelType;
    RenameStmt = T_RenameStmt;
    RestrictInfo = T_RestrictInfo;
    SetOperationStmt = T_SetOperationStmt;
    SortGroupClause = T_SortGroupClause;
    SubPlan = T_SubPlan;
    SubqueryScan = T_SubqueryScan;
    SubqueryScanPath = T_SubqueryScanPath;
    TargetEntry = T_TargetEntry;
    Var = T_Var;
}

/// A new node, all zero but for its tag: `makeNode`.
pub fn new<'p, V: Tagged<'p>>() -> V {
    // SAFETY: the tag is that of the structure; a node is never null.
    unsafe { V::at(raw::make(V::TAG)) }
}

/// Lists are nodes too; a null list is none.
impl<'p, T: View<'p>> List<'p, T> {
    /// The list as a node.
    pub fn as_node(self) -> Option<Expr<'p>> {
        // SAFETY: null, or a live list, which begins with a tag.
        unsafe { Field::of(self.as_ptr().cast()) }
    }
}

impl<'p> Integers<'p> {
    /// The list as a node.
    pub fn as_node(self) -> Option<Expr<'p>> {
        // SAFETY: null, or a live list, which begins with a tag.
        unsafe { Field::of(self.raw().cast()) }
    }
}

impl<'p> Oids<'p> {
    /// The list as a node.
    pub fn as_node(self) -> Option<Expr<'p>> {
        // SAFETY: null, or a live list, which begins with a tag.
        unsafe { Field::of(self.raw().cast()) }
    }
}

impl<'p> Expr<'p> {
    /// The OIDs, if the node is a list of OIDs.
    pub fn as_oids(self) -> Option<Oids<'p>> {
        // SAFETY: a live list of OIDs.
        (self.tag() == NodeTag::T_OidList)
            .then(|| unsafe { Field::of(self.as_ptr().cast::<pg_sys::List>()) })
    }

    /// The elements, if the node is a list of nodes of this kind.
    pub fn as_list<V: Tagged<'p>>(self) -> Option<List<'p, V>> {
        let all = self.as_nodes()?;
        // SAFETY: a live list, whose elements are null or have the tag of this structure.
        all.present()
            .all(|node| node.tag() == V::TAG)
            .then(|| unsafe { Field::of(all.as_ptr()) })
    }

    /// The elements, if the node is a list of nodes.
    pub fn as_nodes(self) -> Option<List<'p, Expr<'p>>> {
        // SAFETY: a live list of pointers. PostgreSQL and this extension put nodes into lists that are nodes
        // themselves.
        (self.tag() == NodeTag::T_List).then(|| unsafe { Field::of(self.as_ptr().cast()) })
    }

    /// The numbers, if the node is a list of integers.
    pub fn as_integers(self) -> Option<Integers<'p>> {
        // SAFETY: a live list of integers.
        (self.tag() == NodeTag::T_IntList)
            .then(|| unsafe { Field::of(self.as_ptr().cast::<pg_sys::List>()) })
    }
}
