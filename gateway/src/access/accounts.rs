//! The users and tokens of a file, and the credentials that were checked before.
//!
//! bcrypt takes a tenth of a second, so its results are kept: under a keyed hash of the header, with
//! a key that no other process has. Whoever reads the table learns no password from it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::user::User;

/// The number of headers that are kept, of right and of wrong ones each. Beyond it all are dropped.
const KNOWN_MAX: usize = 1024;

/// A hash of no known password, compared with where a user does not exist: the answer takes as long.
const DECOY: &str = "$2b$10$abcdefghijklmnopqrstuu4T826PRnz0Hu6YlprUuxkZxOOj5Fw5S";

/// A header under a secret key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// The `Authorization` headers that were checked before, with the result of the check.
#[derive(Default)]
struct Known {
    right: HashMap<Fingerprint, Arc<User>>,
    wrong: HashSet<Fingerprint>,
}

/// The users and tokens of one version of the file.
pub struct Accounts {
    passwords: HashMap<String, (Arc<User>, String)>,
    tokens: Vec<(Arc<User>, [u8; 32])>,
    decoy: String,
    key: [u8; 32],
    known: Mutex<Known>,
}

impl Accounts {
    /// Returns the accounts; `None` if there are none, so that no credentials are wanted.
    pub fn new(
        passwords: Vec<(Arc<User>, String)>,
        tokens: Vec<(Arc<User>, [u8; 32])>,
    ) -> Option<Self> {
        if passwords.is_empty() && tokens.is_empty() {
            return None;
        }
        // The costs may differ. The greatest one tells the least: no user takes longer than nobody.
        let costliest = passwords
            .iter()
            .map(|(_, hash)| hash)
            .max_by_key(|hash| cost(hash));
        let decoy = costliest.map_or(DECOY.to_owned(), |hash| of_cost(hash));
        let passwords = passwords
            .into_iter()
            .map(|(user, hash)| (user.name.clone(), (user, hash)));
        Some(Self {
            passwords: passwords.collect(),
            tokens,
            decoy,
            key: key(),
            known: Mutex::default(),
        })
    }

    /// Returns the fingerprint of a header.
    pub fn fingerprint(&self, header: &[u8]) -> Fingerprint {
        let mut hash = Sha256::new_with_prefix(self.key);
        hash.update(header);
        Fingerprint(hash.finalize().into())
    }

    /// Returns what was learnt about a header: its user, or that it is wrong.
    pub fn known(&self, fingerprint: Fingerprint) -> Option<Option<Arc<User>>> {
        let known = self.known.lock();
        match known.right.get(&fingerprint) {
            Some(user) => Some(Some(Arc::clone(user))),
            None => known.wrong.contains(&fingerprint).then_some(None),
        }
    }

    /// Keeps what was learnt about a header.
    pub fn learn(&self, fingerprint: Fingerprint, user: Option<&Arc<User>>) {
        let mut known = self.known.lock();
        match user {
            Some(user) => {
                if known.right.len() >= KNOWN_MAX {
                    known.right.clear();
                }
                known.right.insert(fingerprint, Arc::clone(user));
            }
            None => {
                if known.wrong.len() >= KNOWN_MAX {
                    known.wrong.clear();
                }
                known.wrong.insert(fingerprint);
            }
        }
    }

    /// Returns the user of a token. All tokens are compared, each in constant time.
    pub fn of_token(&self, token: &[u8]) -> Option<Arc<User>> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        for (user, known) in &self.tokens {
            if bool::from(digest.ct_eq(known)) {
                found = Some(user);
            }
        }
        found.map(Arc::clone)
    }

    /// All users.
    pub fn users(&self) -> impl Iterator<Item = &Arc<User>> {
        let of_passwords = self.passwords.values().map(|(user, _)| user);
        of_passwords.chain(self.tokens.iter().map(|(user, _)| user))
    }

    /// Returns the user with this name and its hash. Without such a user, the hash is one that no
    /// password fits.
    pub fn of_name(&self, name: &str) -> (Option<Arc<User>>, String) {
        match self.passwords.get(name) {
            Some((user, hash)) => (Some(Arc::clone(user)), hash.clone()),
            None => (None, self.decoy.clone()),
        }
    }
}

/// The two digits of a hash's cost: each step doubles the time.
fn cost(hash: &str) -> Option<&str> {
    hash.get(4..6)
}

/// Returns the decoy with the cost of another hash.
fn of_cost(hash: &str) -> String {
    match cost(hash) {
        Some(cost) => format!("$2b${cost}{}", DECOY.get(6..).unwrap_or_default()),
        None => DECOY.to_owned(),
    }
}

/// A key from the random source of the operating system.
fn key() -> [u8; 32] {
    let mut key = [0; 32];
    let halves = key.chunks_exact_mut(16);
    for half in halves {
        half.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::limits::OwnLimits;

    fn user(name: &str) -> Arc<User> {
        Arc::new(User {
            name: name.to_owned(),
            role: name.into(),
            limits: OwnLimits::default(),
        })
    }

    fn accounts() -> Accounts {
        let hash = bcrypt::hash("secret", 5).unwrap();
        let digest: [u8; 32] = Sha256::digest(b"token").into();
        Accounts::new(vec![(user("alice"), hash)], vec![(user("feed"), digest)]).unwrap()
    }

    #[test]
    fn nothing_is_wanted_without_accounts() {
        assert!(Accounts::new(Vec::new(), Vec::new()).is_none());
    }

    #[test]
    fn tokens_are_compared_whole() {
        let accounts = accounts();
        let name = |token: &[u8]| accounts.of_token(token).map(|user| user.name.clone());
        assert_eq!(name(b"token").as_deref(), Some("feed"));
        for wrong in ["", "toke", "token ", "Token", "secret"] {
            assert_eq!(name(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn unknown_users_have_a_hash_of_the_same_cost_that_nothing_fits() {
        let accounts = accounts();
        let (alice, hash) = accounts.of_name("alice");
        assert_eq!(alice.unwrap().name, "alice");
        assert!(bcrypt::verify("secret", &hash).unwrap());
        let (nobody, decoy) = accounts.of_name("bob");
        assert!(nobody.is_none());
        assert_eq!(decoy[..7], hash[..7]);
        assert!(!bcrypt::verify("secret", &decoy).unwrap());
    }

    #[test]
    fn unknown_users_take_as_long_as_the_slowest_one() {
        let hashes = [5, 7, 4].map(|cost| bcrypt::hash("secret", cost).unwrap());
        let users = hashes.map(|hash| (user(&hash), hash));
        let accounts = Accounts::new(users.into(), Vec::new()).unwrap();
        let (nobody, decoy) = accounts.of_name("bob");
        assert!(nobody.is_none());
        assert_eq!(&decoy[..7], "$2b$07$");
    }

    #[test]
    fn what_was_learnt_is_bounded_and_of_this_file_only() {
        let accounts = accounts();
        let header = accounts.fingerprint(b"Basic x");
        assert!(accounts.known(header).is_none());
        accounts.learn(header, Some(&user("alice")));
        assert_eq!(accounts.known(header).unwrap().unwrap().name, "alice");
        for number in 0..3 * KNOWN_MAX {
            let wrong = accounts.fingerprint(&number.to_le_bytes());
            accounts.learn(wrong, None);
            assert!(accounts.known(wrong).unwrap().is_none());
        }
        assert!(accounts.known.lock().wrong.len() <= KNOWN_MAX);
        assert!(
            accounts.known(header).is_some(),
            "wrong ones drop no right ones"
        );
        let others = self::accounts();
        assert!(
            others.fingerprint(b"Basic x") != header,
            "each file has its key"
        );
    }
}
