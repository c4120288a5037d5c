//! PostgreSQL's aggregates of pairs: correlation, covariance, and linear regression.

use lanes_columnar::aggregate::Argument;
use lanes_columnar::aggregate::regression::{PairCount, PairMoments, Pairs};
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::aggregate_call::{Parts, Shape};
use super::translate::{Translation, Translator};
use crate::pg::tree::Expr;

/// An aggregate of PostgreSQL's over pairs of numbers, such as `corr(y, x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfPairs {
    /// `regr_sxx`
    SquaresX,
    /// `regr_syy`
    SquaresY,
    /// `regr_sxy`
    Products,
    /// `regr_avgx`
    AverageX,
    /// `regr_avgy`
    AverageY,
    /// `regr_r2`
    Determination,
    /// `regr_slope`
    Slope,
    /// `regr_intercept`
    Intercept,
    /// `covar_pop`
    Covariance,
    /// `covar_samp`
    SampleCovariance,
    /// `corr`
    Correlation,
}

impl OfPairs {
    /// What an aggregate computes, by its OID.
    pub fn of(function: u32) -> Option<OfPairs> {
        use pg_sys::*;
        Some(match function {
            F_REGR_SXX => OfPairs::SquaresX,
            F_REGR_SYY => OfPairs::SquaresY,
            F_REGR_SXY => OfPairs::Products,
            F_REGR_AVGX => OfPairs::AverageX,
            F_REGR_AVGY => OfPairs::AverageY,
            F_REGR_R2 => OfPairs::Determination,
            F_REGR_SLOPE => OfPairs::Slope,
            F_REGR_INTERCEPT => OfPairs::Intercept,
            F_COVAR_POP => OfPairs::Covariance,
            F_COVAR_SAMP => OfPairs::SampleCovariance,
            F_CORR => OfPairs::Correlation,
            _ => return None,
        })
    }

    /// The result for at least one pair, as PostgreSQL's final functions compute it; `None` is NULL.
    pub fn result(self, moments: PairMoments) -> Option<f64> {
        let PairMoments {
            count,
            sum_x,
            squares_x,
            sum_y,
            squares_y,
            products,
        } = moments;
        Some(match self {
            OfPairs::SquaresX => squares_x,
            OfPairs::SquaresY => squares_y,
            OfPairs::Products => products,
            OfPairs::AverageX => sum_x / count,
            OfPairs::AverageY => sum_y / count,
            OfPairs::Covariance => products / count,
            OfPairs::SampleCovariance if count < 2.0 => return None,
            OfPairs::SampleCovariance => products / (count - 1.0),
            // All other results need different values of x.
            _ if squares_x == 0.0 => return None,
            OfPairs::Correlation if squares_y == 0.0 => return None,
            OfPairs::Correlation => products / (squares_x * squares_y).sqrt(),
            OfPairs::Determination if squares_y == 0.0 => 1.0,
            OfPairs::Determination => (products * products) / (squares_x * squares_y),
            OfPairs::Slope => products / squares_x,
            OfPairs::Intercept => (sum_y - sum_x * products / squares_x) / count,
        })
    }
}

/// The parts of an aggregate of pairs.
///
/// # Errors
/// Why the engine cannot compute the arguments.
pub fn parts(
    translator: &mut Translator,
    arguments: &[Expr<'_>],
    wanted: OfPairs,
) -> Translation<Parts> {
    let argument = pair(translator, arguments)?;
    Ok((argument, Box::new(Pairs::default()), Shape::OfPairs(wanted)))
}

/// The parts of `regr_count`.
///
/// # Errors
/// Why the engine cannot compute the arguments.
pub fn count(translator: &mut Translator, arguments: &[Expr<'_>]) -> Translation<Parts> {
    let argument = pair(translator, arguments)?;
    Ok((argument, Box::new(PairCount::default()), Shape::BigInt))
}

fn pair(translator: &mut Translator, arguments: &[Expr<'_>]) -> Translation<Argument> {
    let &[y, x] = arguments else {
        return Err("an aggregate of pairs with other arguments".into());
    };
    let (y, x) = (translator.value(y)?, translator.value(x)?);
    if [y.number(), x.number()] != [NumberType::F64; 2] {
        return Err("an argument of another type".into());
    }
    Ok(Argument::Pair(y, x))
}
