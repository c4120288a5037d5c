//! Small rows that no left row has found. RIGHT and FULL joins return them with NULLs for the
//! lanes table's columns.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::selection::Selection;

/// The rows of a batch of the small side, and which of them have a match.
#[derive(Default)]
pub struct UnmatchedRows {
    /// Whether each row has a match.
    has_match: Vec<bool>,
    /// The rows before this one have been returned already.
    next: usize,
}

impl UnmatchedRows {
    /// Starts a batch of `rows` rows without a match.
    pub fn begin(&mut self, rows: usize) {
        self.has_match.clear();
        self.has_match.resize(rows, false);
        self.next = 0;
    }

    /// Marks the small rows that the selected rows of a vector have found.
    pub fn remove(&mut self, found: &[u32; VECTOR_ROWS], selection: &Selection) {
        selection.for_each(|row| self.has_match[found[row] as usize] = true);
    }

    /// Returns the next rows without a match, `most` at most; empty at the end.
    pub fn next(&mut self, most: usize) -> Vec<u32> {
        let mut rows = Vec::new();
        while rows.len() < most && self.next < self.has_match.len() {
            if !self.has_match[self.next] {
                rows.push(self.next as u32);
            }
            self.next += 1;
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_handed_out_once_unless_they_have_a_match() {
        let mut unmatched = UnmatchedRows::default();
        unmatched.begin(5);
        let mut found = [0; VECTOR_ROWS];
        (found[0], found[1], found[2]) = (3, 1, 4);
        unmatched.remove(&found, &Selection::first(2));
        assert_eq!(unmatched.next(2), [0, 2]);
        assert_eq!(unmatched.next(2), [4]);
        assert!(unmatched.next(2).is_empty());
        unmatched.begin(1);
        assert_eq!(unmatched.next(2), [0]);
    }
}
