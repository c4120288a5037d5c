//! Which small rows some left row has found. RIGHT and FULL joins return the others, with NULLs for the lanes table's
//! columns. Right semi joins return the marked rows alone, right anti joins the others alone.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::selection::Selection;

/// The rows of a batch of the small side, and which of them have a match.
#[derive(Default)]
pub struct MarkedRows {
    /// Whether each row has a match.
    has_match: Vec<bool>,
    /// Whether the rows with a match are returned; otherwise those without one.
    wants_matched: bool,
    /// The rows before this one have been returned already.
    next: usize,
}

impl MarkedRows {
    /// Starts a batch of `rows` rows without a match.
    pub fn begin(&mut self, rows: usize, wants_matched: bool) {
        self.has_match.clear();
        self.has_match.resize(rows, false);
        self.wants_matched = wants_matched;
        self.next = 0;
    }

    /// Marks the small rows that the selected rows of a vector have found.
    pub fn mark_found(&mut self, found: &[u32; VECTOR_ROWS], selection: &Selection) {
        selection.for_each(|row| self.has_match[found[row] as usize] = true);
    }

    /// Whether each row has a match.
    pub fn marks(&mut self) -> &mut Vec<bool> {
        &mut self.has_match
    }

    /// Whether no row has been returned yet.
    pub fn is_at_start(&self) -> bool {
        self.next == 0
    }

    /// Returns the next rows, `most` at most; empty at the end.
    pub fn next(&mut self, most: usize) -> Vec<u32> {
        let mut rows = Vec::new();
        while rows.len() < most && self.next < self.has_match.len() {
            if self.has_match[self.next] == self.wants_matched {
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
    fn rows_are_handed_out_once_if_they_have_a_match_or_none() {
        let mut marked = MarkedRows::default();
        let mut found = [0; VECTOR_ROWS];
        (found[0], found[1], found[2]) = (3, 1, 4);
        for (wants_matched, first, second) in [(false, [0, 2], 4), (true, [1, 3], 9)] {
            marked.begin(5, wants_matched);
            marked.mark_found(&found, &Selection::first(2));
            assert_eq!(marked.next(2), first);
            assert_eq!(marked.next(2).first().copied().unwrap_or(9), second);
            assert!(marked.next(2).is_empty());
        }
        marked.begin(1, false);
        assert_eq!(marked.next(2), [0]);
    }
}
