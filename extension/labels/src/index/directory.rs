//! The directory of a run: its names, and where their values are.

use std::ops::Range;

use super::block::BlockWriter;
use super::cursor::{Cursor, Text, write_after, write_number};
use super::postings::Postings;
use crate::Malformed;

/// The first byte of a directory. Version 1 lacked what counts need.
pub const VERSION: u8 = 2;

/// A name of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The label.
    pub name: String,
    /// Series that have it.
    pub series: u64,
    /// Its distinct values.
    pub values: u64,
    /// The number of its values that no earlier run had when this run was built.
    pub new_values: u64,
    /// The number of series with the commonest value of each of its blocks.
    most: Vec<u64>,
    /// With which value each of its blocks begins.
    firsts: Vec<String>,
    /// Where its blocks begin.
    start: usize,
}

/// The directory of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    /// In the order of the names.
    names: Vec<Name>,
}

impl Directory {
    /// Reads a directory.
    ///
    /// # Errors
    /// If the bytes are not a directory.
    pub fn read(bytes: &[u8]) -> Result<Directory, Malformed> {
        let mut cursor = Cursor(bytes);
        if cursor.bytes(1)? != [VERSION] {
            return Err(Malformed("the label index is of an unknown version"));
        }
        let mut names = Vec::new();
        let (mut name, mut start) = (Text::default(), 0);
        while !cursor.0.is_empty() {
            cursor.text_after(&mut name)?;
            let (series, values) = (cursor.number()?, cursor.number()?);
            let new_values = cursor.number()?;
            let blocks = cursor.count()?;
            let mut first = Text::default();
            let mut firsts = Vec::with_capacity(blocks);
            let mut most = Vec::with_capacity(blocks);
            for _ in 0..blocks {
                cursor.text_after(&mut first)?;
                firsts.push(first.as_str()?.to_owned());
                most.push(cursor.number()?);
            }
            names.push(Name {
                name: name.as_str()?.to_owned(),
                series,
                values,
                new_values,
                most,
                firsts,
                start,
            });
            start += blocks;
        }
        Ok(Directory { names })
    }

    /// The directory as bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        let mut last = "";
        for name in &self.names {
            write_after(last, &name.name, &mut out);
            last = &name.name;
            write_number(name.series, &mut out);
            write_number(name.values, &mut out);
            write_number(name.new_values, &mut out);
            write_number(name.firsts.len() as u64, &mut out);
            let mut before = "";
            for (first, most) in name.firsts.iter().zip(&name.most) {
                write_after(before, first, &mut out);
                write_number(*most, &mut out);
                before = first;
            }
        }
        out
    }

    /// The names of labels.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.iter().filter(|name| !name.name.is_empty())
    }

    /// A name; the empty one stands for all series.
    pub fn name(&self, name: &str) -> Option<&Name> {
        let found = self
            .names
            .binary_search_by(|known| known.name.as_str().cmp(name));
        found.ok().map(|place| &self.names[place])
    }

    /// All names, the empty one too.
    pub(super) fn all(&self) -> &[Name] {
        &self.names
    }

    /// Bytes that this takes in memory, about.
    pub fn bytes(&self) -> usize {
        let of_text = |text: &String| text.len() + size_of::<String>() + size_of::<u64>();
        let of_name =
            |name: &Name| size_of::<Name>() + name.firsts.iter().map(of_text).sum::<usize>();
        self.names.iter().map(of_name).sum()
    }
}

impl Name {
    /// All its blocks.
    pub fn blocks(&self) -> Range<usize> {
        self.start..self.start + self.firsts.len()
    }

    /// The number of series with its commonest value.
    pub fn most(&self) -> u64 {
        self.most.iter().copied().max().unwrap_or(0)
    }

    /// The number of series with the commonest value of each of its blocks.
    pub fn most_by_block(&self) -> &[u64] {
        &self.most
    }

    /// With which value one of its blocks begins.
    pub fn first(&self, block: usize) -> &str {
        self.firsts.get(block).map_or("", String::as_str)
    }

    /// The block of the ids of all series with the label.
    pub fn presence(&self) -> Option<usize> {
        (!self.firsts.is_empty()).then_some(self.start)
    }

    /// The blocks with values from `least` on, up to the first block that begins with a value for
    /// which `is_past` is true.
    pub fn blocks_of(&self, least: &str, is_past: impl Fn(&str) -> bool) -> Range<usize> {
        let before = self.firsts.partition_point(|first| first.as_str() <= least);
        let end = self
            .firsts
            .partition_point(|first| first.as_str() <= least || !is_past(first));
        self.start + before.saturating_sub(1)..self.start + end
    }
}

/// A run as it is written, name after name and value after value.
pub struct RunWriter<F> {
    directory: Directory,
    block: BlockWriter,
    blocks: usize,
    put: F,
}

impl<E, F: FnMut(usize, Vec<u8>) -> Result<(), E>> RunWriter<F> {
    /// A run whose blocks `put` keeps, each under its number.
    pub fn new(put: F) -> RunWriter<F> {
        RunWriter {
            directory: Directory::default(),
            block: BlockWriter::default(),
            blocks: 0,
            put,
        }
    }

    /// Begins a name that follows all others. The postings are the series with the label, of whose
    /// values `new_values` are new.
    ///
    /// # Errors
    /// If a block cannot be stored.
    pub fn name(&mut self, name: &str, postings: &Postings, new_values: u64) -> Result<(), E> {
        self.end_block()?;
        self.directory.names.push(Name {
            name: name.to_owned(),
            series: postings.count(),
            values: 0,
            new_values,
            most: Vec::new(),
            firsts: Vec::new(),
            start: self.blocks,
        });
        self.push("", postings)
    }

    /// Appends a value to the name.
    ///
    /// # Errors
    /// If a block cannot be kept.
    pub fn value(&mut self, value: &str, postings: &Postings) -> Result<(), E> {
        if let Some(name) = self.directory.names.last_mut() {
            name.values += 1;
        }
        self.push(value, postings)
    }

    fn push(&mut self, value: &str, postings: &Postings) -> Result<(), E> {
        if self.block.is_full() {
            self.end_block()?;
        }
        if self.block.is_empty()
            && let Some(name) = self.directory.names.last_mut()
        {
            name.firsts.push(value.to_owned());
        }
        self.block.push(value, postings);
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), E> {
        if self.block.is_empty() {
            return Ok(());
        }
        let (block, most) = self.block.finish();
        if let Some(name) = self.directory.names.last_mut() {
            name.most.push(most);
        }
        (self.put)(self.blocks, block)?;
        self.blocks += 1;
        Ok(())
    }

    /// Ends the run: its directory.
    ///
    /// # Errors
    /// If a block cannot be kept.
    pub fn finish(mut self) -> Result<Directory, E> {
        self.end_block()?;
        Ok(self.directory)
    }
}
