//! The contents of a vector, as far as they can be read without decoding.

use super::block::Form;
use super::blocks::Blocks;
use super::format::{ALL_FALSE, ALL_NULLS, ALL_TRUE, Class, NO_NULLS, ONE_VALUE};
use super::item_bytes::is_compressed;
use super::lane::{EncodedLane, WORDS};

/// The value of all rows of a vector or of a repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constant<'a> {
    /// NULL.
    Null,
    /// A value of at most 8 bytes, in the low bytes: an integer's two's complement, a float's bits,
    /// a bool as 0 or 1.
    Bits(u64),
    /// A value of another fixed width.
    Bytes(&'a [u8]),
    /// A code of the lane's dictionary.
    Code(u32),
}

impl<'a> EncodedLane<'a> {
    /// The value of every row of a vector if the bytes store it as one value. Nothing is decoded.
    pub fn constant(&self, vector: usize) -> Option<Constant<'a>> {
        let mut repeats = self.repeats(vector)?;
        let (constant, rows) = repeats.next()?;
        (rows == self.vector_rows(vector)).then_some(constant)
    }

    /// The repeats of equal values of a vector with their numbers of rows, if the bytes consist of
    /// nothing else. Nothing is decoded. Neighbours may be equal.
    pub fn repeats(&self, vector: usize) -> Option<Repeats<'a>> {
        let rows = self.vector_rows(vector);
        if rows == 0 {
            return None;
        }
        let one = |constant| Repeats(RepeatsIn::One(Some((constant, rows))));
        if self.is_null() {
            return Some(one(Constant::Null));
        }
        let mut reader = self.vector_section(vector).ok()?;
        if self.header.has_nulls {
            match reader.byte().ok()? {
                NO_NULLS => {}
                ALL_NULLS => return Some(one(Constant::Null)),
                _ => return None,
            }
        }
        match self.header.class {
            Class::Bools => match reader.byte().ok()? {
                ALL_FALSE => Some(one(Constant::Bits(0))),
                ALL_TRUE => Some(one(Constant::Bits(1))),
                _ => None,
            },
            Class::Bytes => match reader.byte().ok()? {
                ONE_VALUE => Some(one(Constant::Bytes(
                    reader.bytes(self.header.width.into()).ok()?,
                ))),
                _ => None,
            },
            Class::Integers | Class::Floats | Class::Dictionary => {
                let layout = self.block_layout();
                let blocks = Blocks::new(reader, rows, layout);
                let mut all = blocks;
                let is_repeats = all
                    .all(|block| block.is_ok_and(|block| matches!(block.form, Form::Constant(_))));
                let is_code = self.header.class == Class::Dictionary;
                is_repeats.then_some(Repeats(RepeatsIn::Blocks { blocks, is_code }))
            }
            Class::Null | Class::Items => None,
        }
    }

    /// The names of the encodings in use with the number of vectors of each, most used first, for
    /// people to read.
    pub fn encodings(&self) -> Vec<(&'static str, usize)> {
        let mut found: Vec<(&'static str, usize)> = Vec::new();
        for vector in 0..self.vectors() {
            let mut names = self.vector_encodings(vector);
            names.sort_unstable();
            names.dedup();
            for name in names {
                match found.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, count)) => *count += 1,
                    None => found.push((name, 1)),
                }
            }
        }
        found.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        found
    }

    /// The name of each block's encoding of a vector, in order; of lanes without blocks one.
    pub fn vector_encodings(&self, vector: usize) -> Vec<&'static str> {
        let simple = match (self.is_null(), self.header.class) {
            (true, _) => "constant",
            (_, Class::Bools | Class::Bytes) if self.constant(vector).is_some() => "constant",
            (_, Class::Bools) => "bitmap",
            (_, Class::Bytes) => "plain",
            (_, Class::Items) => match self.vector_body(vector, &mut [0; WORDS]) {
                Ok((_, None)) => "constant",
                Ok((reader, Some(_)))
                    if self.header.is_marked && is_compressed(reader).unwrap_or_default() =>
                {
                    "compressed"
                }
                _ => "plain",
            },
            _ => {
                let Ok((reader, Some(_))) = self.vector_body(vector, &mut [0; WORDS]) else {
                    return vec!["constant"];
                };
                let layout = self.block_layout();
                return Blocks::new(reader, self.vector_rows(vector), layout)
                    .flatten()
                    .map(|block| block.name(layout.float_width))
                    .collect();
            }
        };
        vec![simple]
    }
}

/// Repeats of equal values with their rows, in order.
pub struct Repeats<'a>(RepeatsIn<'a>);

enum RepeatsIn<'a> {
    One(Option<(Constant<'a>, usize)>),
    Blocks { blocks: Blocks<'a>, is_code: bool },
}

impl<'a> Iterator for Repeats<'a> {
    type Item = (Constant<'a>, usize);

    fn next(&mut self) -> Option<(Constant<'a>, usize)> {
        match &mut self.0 {
            RepeatsIn::One(repeat) => repeat.take(),
            RepeatsIn::Blocks { blocks, is_code } => {
                let block = blocks.next()?.ok()?;
                let bits = block.constant(blocks.layout.float_width)?;
                let constant = if *is_code {
                    Constant::Code(bits as u32)
                } else {
                    Constant::Bits(bits)
                };
                Some((constant, block.rows))
            }
        }
    }
}
