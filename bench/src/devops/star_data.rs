//! Star joins: facts with random keys of a dimension, by number and by text.
//!
//! | table | rows | columns |
//! |---|---|---|
//! | facts | any | key, code, value: two decimals |
//! | dimension | 1,000 | key, code: a text for each key; category: 40 distinct ones |

use super::table::{Table, Values};
use crate::sql::random::SplitMix64;

const KEYS: usize = 1000;
const CATEGORIES: usize = 40;
const SEED: u64 = 21;

/// Generates facts of a number of rows, and their dimension.
pub fn generate(rows: usize) -> Vec<Table> {
    let mut random = SplitMix64(SEED);
    let keys: Vec<u16> = (0..rows)
        .map(|_| random.below(KEYS as u64) as u16)
        .collect();
    let codes: Vec<String> = (0..KEYS).map(|key| format!("key-{key:04}")).collect();
    let values = (0..rows).map(|_| (1e6 * random.unit()).floor() / 100.0);
    vec![
        Table {
            name: "facts",
            columns: vec![
                (
                    "key",
                    Values::Integer(keys.iter().map(|key| i32::from(*key)).collect()),
                ),
                ("value", Values::Float(values.collect())),
                (
                    "code",
                    Values::Text {
                        codes: keys,
                        items: codes.clone(),
                    },
                ),
            ],
        },
        Table {
            name: "dimension",
            columns: vec![
                ("key", Values::Integer((0..KEYS as i32).collect())),
                ("code", Values::texts(codes)),
                (
                    "category",
                    Values::Text {
                        codes: (0..KEYS).map(|key| (key % CATEGORIES) as u16).collect(),
                        items: (0..CATEGORIES)
                            .map(|category| format!("category {category:02}"))
                            .collect(),
                    },
                ),
            ],
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_text_of_a_key_match_and_all_keys_occur() {
        let tables = generate(20_000);
        assert_eq!((tables[0].rows(), tables[1].rows()), (20_000, KEYS));
        let [
            (_, Values::Integer(keys)),
            _,
            (_, Values::Text { codes, .. }),
        ] = &tables[0].columns[..]
        else {
            panic!("{:?}", tables[1]);
        };
        assert!(
            keys.iter()
                .zip(codes)
                .all(|(key, code)| *key == i32::from(*code))
        );
        let different: std::collections::BTreeSet<_> = codes.iter().collect();
        assert_eq!(different.len(), KEYS);
    }
}
