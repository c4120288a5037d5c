//! Nodes by their tags: which structure a node is, new nodes, and copies.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use super::expression::Expr;
use super::list::{Integers, List, Oids};
use super::operands::{
    Aggref, ArrayExpr, BoolExpr, BooleanTest, CaseExpr, CaseWhen, CoalesceExpr, Const, FuncExpr,
    GroupingFunc, MinMaxExpr, NamedArgExpr, NullTest, OpExpr, Param, PlaceHolderVar, RelabelType,
    RowExpr, ScalarArrayOpExpr, SubLink, SubPlan, SubscriptingRef, TargetEntry, Var,
};
use super::path::{
    AggPath, AppendPath, CustomPath, GatherMergePath, GatherPath, GroupPath, HashPath,
    IncrementalSortPath, JoinPath, LimitPath, MaterialPath, MemoizePath, MergePath, NestPath, Path,
    ProjectionPath, SortPath, SubqueryScanPath, UpperUniquePath, WindowAggPath,
};
use super::plan::{
    Append, CustomScan, Join, MergeAppend, Plan, PlannedStmt, SubqueryScan, TableScan,
};
use super::planner::{RelOptInfo, RestrictInfo, RowsRequest};
use super::query::{
    CommonTableExpr, FromExpr, JoinExpr, JoinTree, Name, Query, RangeTblEntry, RangeTblRef,
    SetOperationStmt, SortGroupClause,
};
use super::statement::{AlterTableStmt, CreateStmt, CreateTableAsStmt, IndexStmt, RenameStmt};
use super::view::{Field, View, tag_of};
use super::window::WindowFunc;
use crate::pg::definitions::Definition;

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
    fn downcast<V: Kinded<'p>>(self) -> Option<V> {
        // SAFETY: a live node; the tag says which structure it is.
        V::TAGS
            .contains(&self.tag())
            .then(|| unsafe { V::at(self.as_ptr().cast()) })
    }

    /// The node as one of any kind.
    #[inline]
    fn as_node(self) -> Expr<'p> {
        // SAFETY: a live node begins with a tag.
        unsafe { Expr::at(self.as_ptr().cast()) }
    }
}

/// Views of nodes that their tags tell.
///
/// # Safety
/// Each of `TAGS` is the tag of a node that is, or begins with, the view's structure.
pub unsafe trait Kinded<'p>: Node<'p> {
    /// The tags of such nodes.
    const TAGS: &'static [NodeTag];
}

/// Views of one kind of nodes.
///
/// # Safety
/// `TAG` is the tag of the view's structure, of which zero is a legal value of every other field.
pub unsafe trait Tagged<'p>: Kinded<'p> {
    /// The tag that such a node begins with.
    const TAG: NodeTag;
}

macro_rules! nodes {
    ($($view:ident),* $(,)?) => {$(
        // SAFETY: PostgreSQL declares the structure as a node.
        unsafe impl<'p> Node<'p> for $view<'p> {}
    )*};
}

macro_rules! kinds {
    ($($view:ident = $tag:ident;)*) => {$(
        nodes!($view);
        // SAFETY: PostgreSQL's own `makeNode` pairs structure and tag so.
        unsafe impl<'p> Kinded<'p> for $view<'p> {
            const TAGS: &'static [NodeTag] = &[NodeTag::$tag];
        }
        // SAFETY: the pair is the same, and `makeNode` begins with zeros.
        unsafe impl<'p> Tagged<'p> for $view<'p> {
            const TAG: NodeTag = NodeTag::$tag;
        }
    )*};
}

/// Views of what several kinds of nodes begin with.
macro_rules! families {
    ($($view:ident = $($tag:ident)|+;)*) => {$(
        nodes!($view);
        // SAFETY: PostgreSQL declares the structures of these tags so.
        unsafe impl<'p> Kinded<'p> for $view<'p> {
            const TAGS: &'static [NodeTag] = &[$(NodeTag::$tag),+];
        }
    )*};
}

/// Views as views of what their structures begin with.
macro_rules! beginnings {
    ($($view:ident.$name:ident -> $beginning:ident;)*) => {$(
        impl<'p> $view<'p> {
            #[doc = concat!("What the node begins with: a `", stringify!($beginning), "`.")]
            #[inline]
            pub fn $name(self) -> $beginning<'p> {
                // SAFETY: PostgreSQL declares the structure so.
                unsafe { $beginning::at(self.as_ptr().cast()) }
            }
        }
    )*};
}

nodes!(Expr, JoinTree, Path, Plan);

kinds! {
    AggPath = T_AggPath;
    Aggref = T_Aggref;
    AlterTableStmt = T_AlterTableStmt;
    Append = T_Append;
    AppendPath = T_AppendPath;
    ArrayExpr = T_ArrayExpr;
    BoolExpr = T_BoolExpr;
    BooleanTest = T_BooleanTest;
    CaseExpr = T_CaseExpr;
    CaseWhen = T_CaseWhen;
    CoalesceExpr = T_CoalesceExpr;
    CommonTableExpr = T_CommonTableExpr;
    Const = T_Const;
    CreateStmt = T_CreateStmt;
    CreateTableAsStmt = T_CreateTableAsStmt;
    CustomPath = T_CustomPath;
    CustomScan = T_CustomScan;
    Definition = T_DefElem;
    FromExpr = T_FromExpr;
    FuncExpr = T_FuncExpr;
    GatherMergePath = T_GatherMergePath;
    GatherPath = T_GatherPath;
    GroupPath = T_GroupPath;
    GroupingFunc = T_GroupingFunc;
    HashPath = T_HashPath;
    IncrementalSortPath = T_IncrementalSortPath;
    IndexStmt = T_IndexStmt;
    JoinExpr = T_JoinExpr;
    LimitPath = T_LimitPath;
    MaterialPath = T_MaterialPath;
    MemoizePath = T_MemoizePath;
    MergeAppend = T_MergeAppend;
    MergePath = T_MergePath;
    Name = T_String;
    MinMaxExpr = T_MinMaxExpr;
    NamedArgExpr = T_NamedArgExpr;
    NestPath = T_NestPath;
    NullTest = T_NullTest;
    OpExpr = T_OpExpr;
    Param = T_Param;
    PlaceHolderVar = T_PlaceHolderVar;
    PlannedStmt = T_PlannedStmt;
    ProjectionPath = T_ProjectionPath;
    Query = T_Query;
    RangeTblEntry = T_RangeTblEntry;
    RangeTblRef = T_RangeTblRef;
    RelOptInfo = T_RelOptInfo;
    RelabelType = T_RelabelType;
    RenameStmt = T_RenameStmt;
    RestrictInfo = T_RestrictInfo;
    RowExpr = T_RowExpr;
    RowsRequest = T_SupportRequestRows;
    ScalarArrayOpExpr = T_ScalarArrayOpExpr;
    SetOperationStmt = T_SetOperationStmt;
    SortGroupClause = T_SortGroupClause;
    SortPath = T_SortPath;
    SubLink = T_SubLink;
    SubPlan = T_SubPlan;
    SubqueryScan = T_SubqueryScan;
    SubqueryScanPath = T_SubqueryScanPath;
    SubscriptingRef = T_SubscriptingRef;
    TargetEntry = T_TargetEntry;
    UpperUniquePath = T_UpperUniquePath;
    Var = T_Var;
    WindowAggPath = T_WindowAggPath;
    WindowFunc = T_WindowFunc;
}

families! {
    Join = T_NestLoop | T_MergeJoin | T_HashJoin;
    JoinPath = T_NestPath | T_MergePath | T_HashPath;
    // Scans of a table from its first row to its last, or by the places of rows.
    TableScan = T_SeqScan | T_SampleScan | T_TidScan | T_TidRangeScan;
}

beginnings! {
    CustomPath.as_path -> Path;
    CustomScan.as_plan -> Plan;
    FromExpr.as_join_tree -> JoinTree;
    JoinExpr.as_join_tree -> JoinTree;
    JoinPath.as_path -> Path;
    RangeTblRef.as_join_tree -> JoinTree;
    SubqueryScanPath.as_path -> Path;
}

/// What an expression is.
#[derive(Clone, Copy, Debug)]
#[allow(
    dead_code,
    reason = "each kind carries the view of its node, whether it is read or not"
)]
pub enum Kind<'p> {
    /// A column.
    Var(Var<'p>),
    /// A constant.
    Const(Const<'p>),
    /// A parameter.
    Param(Param<'p>),
    /// A call of an aggregate function.
    Aggref(Aggref<'p>),
    /// `GROUPING(…)`.
    GroupingFunc(GroupingFunc<'p>),
    /// A call of a window function.
    WindowFunc(WindowFunc<'p>),
    /// A call of a function.
    FuncExpr(FuncExpr<'p>),
    /// An argument that is passed by name.
    NamedArgExpr(NamedArgExpr<'p>),
    /// An operator.
    OpExpr(OpExpr<'p>),
    /// `IS DISTINCT FROM`.
    DistinctExpr(OpExpr<'p>),
    /// `NULLIF`.
    NullIfExpr(OpExpr<'p>),
    /// `ANY` or `ALL` of an array.
    ScalarArrayOpExpr(ScalarArrayOpExpr<'p>),
    /// `AND`, `OR`, `NOT`.
    BoolExpr(BoolExpr<'p>),
    /// A sub-select, before planning.
    SubLink(SubLink<'p>),
    /// A subquery with a plan.
    SubPlan(SubPlan<'p>),
    /// A change of type that changes no bytes.
    RelabelType(RelabelType<'p>),
    /// `CASE`.
    CaseExpr(CaseExpr<'p>),
    /// `WHEN … THEN …` of `CASE`.
    CaseWhen(CaseWhen<'p>),
    /// `COALESCE`.
    CoalesceExpr(CoalesceExpr<'p>),
    MinMaxExpr(MinMaxExpr<'p>),
    /// `ARRAY[…]`.
    ArrayExpr(ArrayExpr<'p>),
    /// `IS [NOT] NULL`.
    NullTest(NullTest<'p>),
    /// `IS [NOT] TRUE | FALSE | UNKNOWN`.
    BooleanTest(BooleanTest<'p>),
    /// An expression that an outer join may turn to NULL.
    PlaceHolderVar(PlaceHolderVar<'p>),
    /// A condition with what the planner knows about it.
    RestrictInfo(RestrictInfo<'p>),
    /// A query.
    Query(Query<'p>),
    /// An entry of a range table.
    RangeTblEntry(RangeTblEntry<'p>),
    /// A reference to an entry of the range table.
    RangeTblRef(RangeTblRef<'p>),
    /// A join.
    JoinExpr(JoinExpr<'p>),
    /// Another node.
    Other(NodeTag),
}

impl<'p> Expr<'p> {
    /// What the expression is.
    #[inline]
    pub fn kind(self) -> Kind<'p> {
        /// The node as one of the kind that its tag tells.
        macro_rules! kind {
            ($kind:ident) => {
                // SAFETY: the tag says which structure the node is.
                Kind::$kind(unsafe { View::at(self.as_ptr().cast()) })
            };
        }
        match self.tag() {
            NodeTag::T_Var => kind!(Var),
            NodeTag::T_Const => kind!(Const),
            NodeTag::T_Param => kind!(Param),
            NodeTag::T_Aggref => kind!(Aggref),
            NodeTag::T_GroupingFunc => kind!(GroupingFunc),
            NodeTag::T_WindowFunc => kind!(WindowFunc),
            NodeTag::T_FuncExpr => kind!(FuncExpr),
            NodeTag::T_NamedArgExpr => kind!(NamedArgExpr),
            NodeTag::T_OpExpr => kind!(OpExpr),
            NodeTag::T_DistinctExpr => kind!(DistinctExpr),
            NodeTag::T_NullIfExpr => kind!(NullIfExpr),
            NodeTag::T_ScalarArrayOpExpr => kind!(ScalarArrayOpExpr),
            NodeTag::T_BoolExpr => kind!(BoolExpr),
            NodeTag::T_SubLink => kind!(SubLink),
            NodeTag::T_SubPlan => kind!(SubPlan),
            NodeTag::T_RelabelType => kind!(RelabelType),
            NodeTag::T_CaseExpr => kind!(CaseExpr),
            NodeTag::T_CaseWhen => kind!(CaseWhen),
            NodeTag::T_CoalesceExpr => kind!(CoalesceExpr),
            NodeTag::T_MinMaxExpr => kind!(MinMaxExpr),
            NodeTag::T_ArrayExpr => kind!(ArrayExpr),
            NodeTag::T_NullTest => kind!(NullTest),
            NodeTag::T_BooleanTest => kind!(BooleanTest),
            NodeTag::T_PlaceHolderVar => kind!(PlaceHolderVar),
            NodeTag::T_RestrictInfo => kind!(RestrictInfo),
            NodeTag::T_Query => kind!(Query),
            NodeTag::T_RangeTblEntry => kind!(RangeTblEntry),
            NodeTag::T_RangeTblRef => kind!(RangeTblRef),
            NodeTag::T_JoinExpr => kind!(JoinExpr),
            other => Kind::Other(other),
        }
    }
}

/// What a node of a join tree is.
#[derive(Clone, Copy, Debug)]
#[allow(
    dead_code,
    reason = "each kind carries the view of its node, whether it is read or not"
)]
pub enum JoinKind<'p> {
    /// A reference to an entry.
    Entry(RangeTblRef<'p>),
    /// A join.
    Join(JoinExpr<'p>),
    /// A list of FROM.
    From(FromExpr<'p>),
    /// Another node.
    Other(NodeTag),
}

impl<'p> JoinTree<'p> {
    /// What the node is.
    pub fn kind(self) -> JoinKind<'p> {
        let node = self.as_node();
        node.downcast()
            .map(JoinKind::Entry)
            .or_else(|| node.downcast().map(JoinKind::Join))
            .or_else(|| node.downcast().map(JoinKind::From))
            .unwrap_or(JoinKind::Other(node.tag()))
    }
}

/// A copy of a node's own fields. It shares what they point to.
pub fn shallow_copy<'p, V: Tagged<'p>>(node: V) -> V {
    // SAFETY: two nodes of this structure, of which nobody else knows the copy.
    unsafe {
        let copy = zeroed::<V::Raw>(V::TAG);
        std::ptr::copy_nonoverlapping(node.as_ptr(), copy, 1);
        V::at(copy)
    }
}

/// As [`shallow_copy`], for a node of any kind, if it is of the kind `V`.
pub fn shallow_copy_as<'p, V: Tagged<'p>, N: Node<'p>>(node: N) -> Option<N> {
    let copy = shallow_copy(node.downcast::<V>()?);
    // SAFETY: the copy has the structure of the node.
    Some(unsafe { N::at(copy.as_ptr().cast()) })
}

/// A deep copy: `copyObject`.
pub fn copy<'p, V: View<'p>>(node: V) -> V {
    // SAFETY: a live node; a copy is never null.
    unsafe { V::at(deep_copy(node.as_ptr())) }
}

/// A deep copy of a list.
pub fn copy_list<'p, T: View<'p>>(list: List<'p, T>) -> List<'p, T> {
    // SAFETY: null, or a live list; its copy has the same elements.
    unsafe { Field::of(deep_copy(list.as_ptr())) }
}

/// A new node, all zero but for its tag: `makeNode`.
pub fn new<'p, V: Tagged<'p>>() -> V {
    // SAFETY: the tag is that of the structure; a node is never null.
    unsafe { V::at(zeroed(V::TAG)) }
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
    pub fn as_list<V: Kinded<'p>>(self) -> Option<List<'p, V>> {
        let all = self.as_nodes()?;
        // SAFETY: a live list, whose elements are null or have the tag of this structure.
        all.present()
            .all(|node| V::TAGS.contains(&node.tag()))
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

/// A new node, all zero but for its tag.
///
/// # Safety
/// `T` is the node type of `tag`.
unsafe fn zeroed<T>(tag: NodeTag) -> *mut T {
    // SAFETY: every node begins with its tag, and zero is a value of every field.
    unsafe {
        let node = pg_sys::palloc0(std::mem::size_of::<T>());
        (*node.cast::<pg_sys::Node>()).type_ = tag;
        node.cast()
    }
}

/// A deep copy.
///
/// # Safety
/// A live tree or null.
unsafe fn deep_copy<T>(node: *mut T) -> *mut T {
    // SAFETY: this function's contract.
    unsafe { pg_sys::copyObjectImpl(node.cast::<c_void>().cast_const()).cast() }
}
