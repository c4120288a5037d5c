//! The capacity of the lists of a right side, so that they and the memory beside them stay within a
//! limit.

/// The initial capacity in rows, if the limit allows it.
const ROWS_AT_FIRST: usize = 1_024;

/// The memory of a right side.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Its rows.
    pub rows: usize,
    /// Rows for which its lists have room.
    pub room: usize,
    /// The bytes of a row in all lists, also while they are sorted.
    pub row_bytes: usize,
    /// Bytes that a row takes in the longest list: while a list grows, the old one lives on.
    pub list_bytes: usize,
    /// Bytes beside the lists.
    pub beside: usize,
}

impl Taken {
    /// The capacity for so many rows; the present capacity if it is enough. Returns `None` if the
    /// memory would exceed the limit.
    pub fn room_for(&self, rows: usize, limit: usize) -> Option<usize> {
        let is_growing = rows > self.room;
        let old = if is_growing {
            self.room * self.list_bytes
        } else {
            0
        };
        let most = limit.saturating_sub(self.beside + old) / self.row_bytes;
        if rows.max(self.room) > most {
            return None;
        }
        if !is_growing {
            return Some(self.room);
        }
        // Keys and texts, which are beside the lists, usually grow with them.
        let each = self.row_bytes + self.beside.checked_div(self.rows).unwrap_or(0);
        let fair = limit.saturating_sub(old) / each;
        let doubled = (2 * self.room).max(ROWS_AT_FIRST).min(fair);
        // Growing by less at a time would copy the lists too often.
        Some(doubled.max(rows + rows / 16).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_the_limit_is_used_and_never_more() {
        for (limit, beside_each) in [(100_000, 0), (1 << 20, 0), (1 << 20, 50), (1 << 20, 500)] {
            let mut taken = Taken {
                rows: 0,
                room: 0,
                row_bytes: 50,
                list_bytes: 8,
                beside: 0,
            };
            let mut copied = 0;
            while let Some(room) = taken.room_for(taken.rows + 10, limit) {
                if room != taken.room {
                    copied += taken.rows;
                }
                taken.room = room;
                taken.rows += 10;
                taken.beside += 10 * beside_each;
                let bytes = taken.room * taken.row_bytes + taken.beside;
                // The last ten rows may exceed the limit beside the lists: a caller that knows
                // their size reserves it before.
                assert!(bytes <= limit + 10 * beside_each, "{bytes} of {limit}");
            }
            let used = taken.rows * (taken.row_bytes + beside_each);
            assert!(used * 4 > limit * 3, "{used} of {limit}");
            assert!(copied < taken.rows * 20, "{copied} for {}", taken.rows);
        }
    }
}
