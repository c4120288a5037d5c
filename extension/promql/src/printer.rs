//! A syntax tree to the text of a query, as Prometheus prints it.

use crate::ast::{
    Aggregate, At, Binary, Call, Cardinality, DurationExpr, Expr, Extension, NumberLiteral,
    RangeSelector, Subquery, TimeModifiers, VectorSelector,
};
use crate::duration;
use crate::labels::{METRIC_NAME, is_plain_name};
use crate::matcher::{MatchOperator, Matcher};
use crate::number::{format_general, format_plain};
use crate::quote::quote;
use std::fmt::{self, Display, Formatter};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Number(number) => number.fmt(f),
            Expr::String(string) => f.write_str(&quote(&string.value)),
            Expr::Selector(selector) => selector.fmt(f),
            Expr::Range(range) => range.fmt(f),
            Expr::Subquery(subquery) => subquery.fmt(f),
            Expr::Call(call) => call.fmt(f),
            Expr::Aggregate(aggregate) => aggregate.fmt(f),
            Expr::Binary(binary) => binary.fmt(f),
            Expr::Unary(unary) => {
                f.write_str(if unary.is_minus { "-" } else { "+" })?;
                unary.expr.fmt(f)
            }
            Expr::Paren(paren) => write!(f, "({})", paren.expr),
        }
    }
}

impl Display for NumberLiteral {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.is_duration {
            true => f.write_str(&duration::format((self.value * 1e9) as i64)),
            false => f.write_str(&format_plain(self.value)),
        }
    }
}

struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, item) in self.0.iter().enumerate() {
            f.write_str(if place > 0 { ", " } else { "" })?;
            item.fmt(f)?;
        }
        Ok(())
    }
}

struct LabelNames<'a>(&'a [String]);

impl Display for LabelNames<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shown = |name: &String| match is_plain_name(name) {
            true => name.clone(),
            false => quote(name),
        };
        let names: Vec<String> = self.0.iter().map(shown).collect();
        write!(f, "({})", List(&names))
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.function.name, List(&self.args))
    }
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.operator.text().unwrap_or_default())?;
        if self.without {
            write!(f, " without {} ", LabelNames(&self.grouping))?;
        } else if !self.grouping.is_empty() {
            write!(f, " by {} ", LabelNames(&self.grouping))?;
        }
        match &self.param {
            Some(param) => write!(f, "({param}, {})", self.expr),
            None => write!(f, "({})", self.expr),
        }
    }
}

impl Display for Binary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let operator = self.operator.text().unwrap_or_default();
        write!(f, "{} {operator}", self.left)?;
        f.write_str(if self.returns_bool { " bool" } else { "" })?;
        let matching = &self.matching;
        let group = match matching.cardinality {
            Cardinality::ManyToOne => Some(" group_left "),
            Cardinality::OneToMany => Some(" group_right "),
            Cardinality::OneToOne | Cardinality::ManyToMany => None,
        };
        if !matching.labels.is_empty() || matching.on || group.is_some() {
            f.write_str(if matching.on { " on " } else { " ignoring " })?;
            LabelNames(&matching.labels).fmt(f)?;
        }
        if let Some(group) = group {
            write!(f, "{group}{}", LabelNames(&matching.include))?;
        }
        match (matching.fill_left, matching.fill_right) {
            (Some(left), Some(right)) if left == right => {
                write!(f, " fill ({})", format_general(left))?;
            }
            (left, right) => {
                if let Some(left) = left {
                    write!(f, " fill_left ({})", format_general(left))?;
                }
                if let Some(right) = right {
                    write!(f, " fill_right ({})", format_general(right))?;
                }
            }
        }
        write!(f, " {}", self.right)
    }
}

/// Whether a matcher is the one of the name before the braces.
fn is_of_name(matcher: &Matcher, name: &str) -> bool {
    matcher.name() == METRIC_NAME
        && matcher.operator() == MatchOperator::Equal
        && matcher.value() == name
        && !name.is_empty()
}

impl VectorSelector {
    fn fmt_series(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let others = self
            .matchers
            .iter()
            .filter(|matcher| !is_of_name(matcher, &self.name));
        let mut texts: Vec<String> = others.map(Matcher::to_string).collect();
        texts.sort_unstable();
        match texts.is_empty() {
            true => Ok(()),
            false => write!(f, "{{{}}}", texts.join(",")),
        }
    }

    fn fmt_extension(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.extension {
            None => "",
            Some(Extension::Anchored) => " anchored",
            Some(Extension::Smoothed) => " smoothed",
        })
    }
}

impl TimeModifiers {
    fn fmt_at(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.at {
            None => Ok(()),
            Some(At::Time(millis)) => write!(f, " @ {:.3}", millis as f64 / 1000.0),
            Some(At::Start) => f.write_str(" @ start()"),
            Some(At::End) => f.write_str(" @ end()"),
        }
    }

    fn fmt_offset(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.offset_expr {
            Some(expr) => write!(f, " offset {expr}"),
            None if self.offset == 0 => Ok(()),
            None => write!(f, " offset {}", duration::format(self.offset)),
        }
    }
}

impl Display for VectorSelector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt_series(f)?;
        self.time.fmt_at(f)?;
        self.fmt_extension(f)?;
        self.time.fmt_offset(f)
    }
}

impl Display for RangeSelector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.selector.fmt_series(f)?;
        write!(f, "[{}]", Duration(self.range, &self.range_expr))?;
        self.selector.fmt_extension(f)?;
        self.selector.time.fmt_at(f)?;
        self.selector.time.fmt_offset(f)
    }
}

struct Duration<'a>(i64, &'a Option<DurationExpr>);

impl Display for Duration<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(expr) => expr.fmt(f),
            None => f.write_str(&duration::format(self.0)),
        }
    }
}

impl Display for Subquery {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}[{}:",
            self.expr,
            Duration(self.range, &self.range_expr)
        )?;
        if self.step != 0 || self.step_expr.is_some() {
            Duration(self.step, &self.step_expr).fmt(f)?;
        }
        f.write_str("]")?;
        self.time.fmt_at(f)?;
        self.time.fmt_offset(f)
    }
}

impl Display for DurationExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            DurationExpr::Literal(literal) => literal.fmt(f),
            DurationExpr::Step(_) => f.write_str("step()"),
            DurationExpr::Range(_) => f.write_str("range()"),
            DurationExpr::MinOf(sides, _) => write!(f, "min_of({}, {})", sides.0, sides.1),
            DurationExpr::MaxOf(sides, _) => write!(f, "max_of({}, {})", sides.0, sides.1),
            DurationExpr::Negated(inner, _) => write!(f, "-{inner}"),
            DurationExpr::Binary(operator, sides) => {
                let operator = operator.text().unwrap_or_default();
                write!(f, "{} {operator} {}", sides.0, sides.1)
            }
            DurationExpr::Paren(inner, _) => write!(f, "({inner})"),
        }
    }
}
