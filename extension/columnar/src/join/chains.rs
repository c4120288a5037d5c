//! The small rows of an equality join by the id of their keys.

use super::found::NO_ROW;

/// The small rows of each id, in order.
#[derive(Default)]
pub(super) struct Chains {
    /// The first and the last row of each id.
    pub(super) ends: Vec<(u32, u32)>,
    /// The next row that has the same keys, by row.
    pub(super) next: Vec<u32>,
    /// Whether some id has several rows.
    pub(super) has_several: bool,
}

impl Chains {
    /// Adds a row of no id; gives its number.
    #[inline]
    pub(super) fn push(&mut self) -> u32 {
        self.next.push(NO_ROW);
        self.next.len() as u32 - 1
    }

    /// Adds a row that is the last one of its id so far; gives its number.
    #[inline]
    pub(super) fn push_of(&mut self, id: u32) -> u32 {
        let number = self.push();
        match self.ends.get_mut(id as usize) {
            Some((_, last)) => {
                self.next[*last as usize] = number;
                *last = number;
                self.has_several = true;
            }
            None => self.ends.push((number, number)),
        }
        number
    }

    /// Whether an id, of which those before are known, has no row yet.
    #[inline]
    pub(super) fn is_new(&self, id: u32) -> bool {
        id as usize == self.ends.len()
    }

    /// The first row from `row` on that is not `done`, among those with its keys; [`NO_ROW`] if there is none. A row
    /// that is done then leads straight there, so that rows that are done are passed once.
    #[inline]
    pub(super) fn first_open(&mut self, row: u32, done: &[bool]) -> u32 {
        let mut open = row;
        while open != NO_ROW && done[open as usize] {
            open = self.next[open as usize];
        }
        let mut passed = row;
        while passed != open {
            passed = std::mem::replace(&mut self.next[passed as usize], open);
        }
        open
    }

    /// Marks all rows of the ids whose first row is marked.
    pub(super) fn spread(&self, marks: &mut [bool]) {
        if !self.has_several {
            return;
        }
        for (first, _) in &self.ends {
            let mut row = *first;
            while marks[*first as usize] && row != NO_ROW {
                marks[row as usize] = true;
                row = self.next[row as usize];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chains(ids: &[u32]) -> Chains {
        let mut chains = Chains::default();
        for id in ids {
            chains.push_of(*id);
        }
        chains
    }

    #[test]
    fn rows_that_are_done_are_passed_over() {
        let mut chains = chains(&[0, 1, 0, 0, 1, 0]);
        let mut done = [false; 6];
        assert_eq!(chains.first_open(0, &done), 0);
        (done[0], done[2], done[4]) = (true, true, true);
        assert_eq!(chains.first_open(0, &done), 3);
        assert_eq!(chains.next[0], 3);
        done[3] = true;
        assert_eq!(chains.first_open(0, &done), 5);
        assert_eq!((chains.next[0], chains.next[3]), (5, 5));
        assert_eq!(chains.first_open(1, &done), 1);
        assert_eq!(chains.first_open(4, &done), NO_ROW);
        assert_eq!(chains.first_open(NO_ROW, &done), NO_ROW);
        done[5] = true;
        assert_eq!(chains.first_open(0, &done), NO_ROW);
    }

    #[test]
    fn the_first_row_of_an_id_stands_for_all() {
        let chains = chains(&[0, 1, 0, 2, 1, 0]);
        let mut marks = [true, false, false, true, true, false];
        chains.spread(&mut marks);
        assert_eq!(marks, [true, false, true, true, true, true]);
    }
}
