//! The queries of a run by kind.

use crate::query::Query;
use crate::sides::Reply;
use std::collections::BTreeMap;
use std::fmt;

/// The numbers of queries of a kind.
#[derive(Default)]
struct Numbers {
    asked: u32,
    refused: u32,
    empty: u32,
}

/// The numbers of queries by kind, and of those that were not compared by reason.
#[derive(Default)]
pub struct Tally {
    kinds: BTreeMap<&'static str, Numbers>,
    skipped: BTreeMap<&'static str, u32>,
}

impl Tally {
    /// Counts a query with its answer.
    pub fn count(&mut self, query: &Query, reply: &Reply) {
        let numbers = self.kinds.entry(query.kind).or_default();
        numbers.asked += 1;
        match reply {
            Reply::Refused { .. } => numbers.refused += 1,
            Reply::Body(body) => {
                let result = body["data"]["result"].as_array();
                numbers.empty += u32::from(result.is_some_and(Vec::is_empty));
            }
        }
    }

    /// Counts a query that is not compared.
    pub fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, numbers) in &self.kinds {
            let Numbers {
                asked,
                refused,
                empty,
            } = numbers;
            writeln!(
                f,
                "{kind}: {asked} queries, {refused} refused, {empty} empty"
            )?;
        }
        for (reason, number) in &self.skipped {
            writeln!(f, "not compared: {number}: {reason}")?;
        }
        Ok(())
    }
}
