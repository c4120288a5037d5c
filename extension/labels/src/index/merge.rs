//! Several runs to one.

use std::collections::VecDeque;

use super::Blocks;
use super::block::each_term;
use super::directory::{Directory, Name, RunWriter};
use super::postings::Postings;

/// A run that is merged: one of its blocks is in memory.
struct Input<'r, B> {
    blocks: &'r mut B,
    name: Option<Name>,
    next_block: usize,
    /// Values of the block and their postings.
    terms: VecDeque<(String, Vec<u8>)>,
}

impl<B: Blocks> Input<'_, B> {
    /// Reads the next value into memory, if there is one.
    fn fill(&mut self) -> Result<(), B::Error> {
        let Some(name) = &self.name else {
            return Ok(());
        };
        let end = name.blocks().end;
        while self.terms.is_empty() && self.next_block < end {
            let terms = &mut self.terms;
            self.blocks.read(&[self.next_block], &mut |block| {
                each_term(block, |term| {
                    terms.push_back((term.value.to_owned(), term.postings.to_vec()));
                    Ok(true)
                })
            })?;
            self.next_block += 1;
        }
        Ok(())
    }
}

/// Merges runs, which are in the order of their ids, into one whose blocks `put` keeps: its
/// directory.
///
/// # Errors
/// If a block cannot be read or kept.
pub fn merge<B: Blocks>(
    runs: &mut [(Directory, B)],
    put: impl FnMut(usize, Vec<u8>) -> Result<(), B::Error>,
) -> Result<Directory, B::Error> {
    let mut names: Vec<String> = runs
        .iter()
        .flat_map(|(directory, _)| directory.all().iter().map(|name| name.name.clone()))
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut writer = RunWriter::new(put);
    for name in names {
        let mut inputs: Vec<Input<B>> = runs
            .iter_mut()
            .map(|(directory, blocks)| {
                let name = directory.name(&name).cloned();
                Input {
                    blocks,
                    next_block: name.as_ref().map_or(0, |name| name.blocks().start),
                    name,
                    terms: VecDeque::new(),
                }
            })
            .collect();
        // A value counts as new in one run only, the first that has it. So the sum counts each new
        // value once.
        let of_name = inputs.iter().filter_map(|input| input.name.as_ref());
        let new_values = of_name.map(|name| name.new_values).sum();
        let mut is_first = true;
        loop {
            for input in &mut inputs {
                input.fill()?;
            }
            let next = inputs.iter().filter_map(|input| input.terms.front());
            let Some(value) = next.map(|(value, _)| value).min().cloned() else {
                break;
            };
            let mut postings = Postings::default();
            for input in &mut inputs {
                if input.terms.front().is_some_and(|(next, _)| *next == value)
                    && let Some((_, bytes)) = input.terms.pop_front()
                {
                    postings.read(&bytes)?;
                }
            }
            // The first value of each name is the empty one.
            match std::mem::replace(&mut is_first, false) {
                true => writer.name(&name, &postings, new_values)?,
                false => writer.value(&value, &postings)?,
            }
        }
    }
    writer.finish()
}
