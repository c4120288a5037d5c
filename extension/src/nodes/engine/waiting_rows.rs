//! Rows whose groups do not fit into memory, in temporary files until there is room for them.
//!
//! ```text
//! 1  groups := none; used := 0 bits of the hashes
//! 2  for each row of the table:
//! 3      its group is known, or there is memory for one more ──► add the row to its group
//! 4      else ──► write it to the partition that the next bits of its hash name
//! 5  return the groups; forget them
//! 6  take a partition, if one is left: used := used + its bits; go to 2 with its rows
//! ```
//! PostgreSQL's hash aggregation works in this way (`nodeAgg.c`). All rows of a group are in one partition, in their
//! order. Once the memory is full, it stays so until the groups are returned.

use lanes_columnar::aggregate::Aggregation;
use lanes_columnar::kind::LaneKind;
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::rows_aside::{Aside, RowsBack, RowsOut};
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;

use crate::error;
use crate::pg::exec::memory::Memory;
use crate::pg::ports;
use crate::pg::temporary_file::TemporaryFile;

/// Groups that are kept, whatever the limit: each pass over the rows takes in so many at least.
const GROUPS_MIN: usize = 256;
/// Rows of the table are written to so many partitions at least and at most, as bits of a hash.
const PARTITION_BITS_MIN: u32 = 2;
const PARTITION_BITS_MAX: u32 = 6;
/// The groups of a partition may take so many times the bytes of its rows.
const GROUPS_TO_ROWS: usize = 4;
/// Bytes of the memory limit for each partition.
const LIMIT_A_PARTITION: usize = 128 << 10;
/// The share of the memory limit that rows take on their way to files.
const OUT_SHARE: usize = 4;
/// Bits of a hash.
const HASH_BITS: u32 = u64::BITS;

/// The rows.
pub struct WaitingRows {
    attributes: Vec<Aside>,
    /// The scalars of the query's expressions.
    scalars: Vec<Option<Scalar>>,
    memory: Memory,
    limit: usize,
    /// How many bits of a hash name a partition.
    bits: u32,
    /// How many bits all rows of this pass have in common.
    used: u32,
    /// The partitions that rows are written to: none while there is memory for new groups.
    partitions: Vec<Partition>,
    /// The partitions to be aggregated, the next one last, with the bits that their rows have in common.
    waiting: Vec<(u32, TemporaryFile)>,
    hashes: Box<[u64; VECTOR_ROWS]>,
    image: Vec<u8>,
    /// Parts in which the groups were aggregated, and bytes of all files.
    pub batches: u64,
    pub written_bytes: u64,
    /// Groups, and the most bytes that they took at a time.
    pub groups: usize,
    pub bytes: usize,
}

/// The rows of one partition.
struct Partition {
    out: RowsOut,
    file: Option<TemporaryFile>,
}

impl WaitingRows {
    /// No row yet. Groups and rows take `limit` bytes of memory.
    pub fn new(
        attributes: Vec<Aside>,
        scalars: Vec<Option<Scalar>>,
        memory: Memory,
        limit: usize,
    ) -> WaitingRows {
        let partitions = (limit / LIMIT_A_PARTITION).max(1).ilog2();
        WaitingRows {
            attributes,
            scalars,
            memory,
            limit,
            bits: partitions.clamp(PARTITION_BITS_MIN, PARTITION_BITS_MAX),
            used: 0,
            partitions: Vec::new(),
            waiting: Vec::new(),
            hashes: Box::new([0; VECTOR_ROWS]),
            image: Vec::new(),
            batches: 1,
            written_bytes: 0,
            groups: 0,
            bytes: 0,
        }
    }

    /// Whether rows of new groups are written to files.
    pub fn is_writing(&self) -> bool {
        !self.partitions.is_empty()
    }

    /// Whether rows were written to files.
    pub fn has_written(&self) -> bool {
        self.is_writing() || self.batches > 1 || !self.waiting.is_empty()
    }

    /// Adds the selected rows of a vector to their groups, or writes them to files.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn add(
        &mut self,
        aggregation: &mut Aggregation,
        frame: &Frame<'_>,
        selection: &Selection,
        count: usize,
    ) -> Evaluation<()> {
        if !self.is_writing() {
            aggregation.add_counted(frame, selection, count)?;
            self.close_if_full(aggregation);
            return Ok(());
        }
        let unknown = aggregation.add_known(frame, selection)?;
        if unknown.is_empty() {
            return Ok(());
        }
        aggregation.hash_keys(frame, &unknown, &mut self.hashes)?;
        let shift = HASH_BITS - self.used - self.bits;
        let mask = (1_u64 << self.bits) - 1;
        let bytes_max = self.limit / OUT_SHARE / self.partitions.len();
        let mut row = unknown.next(0);
        while let Some(place) = row {
            let partition = (self.hashes[place] >> shift & mask) as usize;
            let out = &mut self.partitions[partition].out;
            out.push(frame, place);
            if out.rows() == VECTOR_ROWS || out.bytes() > bytes_max {
                self.write(partition);
            }
            row = unknown.next(place + 1);
        }
        Ok(())
    }

    /// Takes in no more groups once they take too much memory.
    fn close_if_full(&mut self, aggregation: &mut Aggregation) {
        let is_small = aggregation.bytes() <= self.limit || aggregation.groups() < GROUPS_MIN;
        if is_small || self.used + self.bits > HASH_BITS {
            return;
        }
        aggregation.close();
        let partition = || Partition {
            out: RowsOut::new(&self.attributes),
            file: None,
        };
        self.partitions = (0..1 << self.bits).map(|_| partition()).collect();
    }

    /// Writes the rows of a partition to its file.
    fn write(&mut self, partition: usize) {
        let partition = &mut self.partitions[partition];
        self.image.clear();
        self.image.extend_from_slice(&[0; 4]);
        if let Err(fault) = partition.out.take(&mut self.image) {
            error::too_large(
                &format!("a group's row does not fit into a temporary file: {fault}"),
                "SET lanes.vectorize = off for this query.",
            );
        }
        let length = (self.image.len() - 4) as u32;
        self.image[..4].copy_from_slice(&length.to_ne_bytes());
        let memory = self.memory;
        let file = partition
            .file
            .get_or_insert_with(|| TemporaryFile::create(memory));
        file.write(&self.image);
        self.written_bytes += self.image.len() as u64;
        ports::CHECK_FOR_INTERRUPTS();
    }

    /// There are no more rows of this pass: its groups are complete.
    pub fn finish_pass(&mut self, aggregation: &mut Aggregation) {
        aggregation.finish();
        self.groups += aggregation.groups();
        self.bytes = self.bytes.max(aggregation.bytes());
        for partition in 0..self.partitions.len() {
            if self.partitions[partition].out.rows() > 0 {
                self.write(partition);
            }
        }
        let files = self.partitions.drain(..);
        let files = files.filter_map(|partition| partition.file);
        self.waiting
            .extend(files.map(|file| (self.used + self.bits, file)));
    }

    /// Replaces the groups by those of the next partition; false if there is none.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn next_pass(&mut self, aggregation: &mut Aggregation) -> Evaluation<bool> {
        let Some((used, mut file)) = self.waiting.pop() else {
            return Ok(false);
        };
        self.used = used;
        // If the groups of this partition do not fit into memory, they mostly fit in a few parts.
        let parts = GROUPS_TO_ROWS * file.bytes() / self.limit + 1;
        let bits = usize::BITS - parts.leading_zeros();
        self.bits = bits.clamp(1, PARTITION_BITS_MAX);
        self.batches += 1;
        aggregation.clear();
        let scalars = std::mem::take(&mut self.scalars);
        let (mut back, mut image) = (RowsBack::new(&self.attributes), Vec::new());
        file.rewind();
        let mut length = [0; 4];
        while file.read(&mut length) {
            ports::CHECK_FOR_INTERRUPTS();
            image.resize(u32::from_ne_bytes(length) as usize, 0);
            let is_whole = file.read(&mut image) && back.read(&image).is_ok();
            if !is_whole {
                error::corrupt("a temporary file is damaged");
            }
            let rows = Selection::first(back.rows());
            self.add(aggregation, &back.frame(&scalars), &rows, back.rows())?;
        }
        self.scalars = scalars;
        file.close();
        self.finish_pass(aggregation);
        Ok(true)
    }

    /// Deletes all files.
    pub fn free(self) {
        let partitions = self.partitions.into_iter();
        let files = partitions.filter_map(|partition| partition.file);
        let waiting = self.waiting.into_iter().map(|(_, file)| file);
        files.chain(waiting).for_each(TemporaryFile::close);
    }
}

/// The attributes that are put aside, with their kinds.
pub fn aside(attributes: &[usize], kinds: &[LaneKind]) -> Vec<Aside> {
    let attributes = attributes.iter();
    attributes
        .map(|attribute| (*attribute, kinds[*attribute]))
        .collect()
}
