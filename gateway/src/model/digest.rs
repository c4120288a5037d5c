//! The digest by which a request is recognised when its sender repeats it.

/// The first 16 bytes of the SHA-256 over a route and a body as sent.
///
/// Senders repeat a failed request byte for byte, so equal digests mean the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The digest of `body` posted to `route`.
    pub fn of(route: &str, body: &[u8]) -> Self {
        use sha2::{Digest as _, Sha256};
        let mut hasher = Sha256::new();
        hasher.update((route.len() as u64).to_le_bytes());
        hasher.update(route.as_bytes());
        hasher.update(body);
        let hash = hasher.finalize();
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash[..16]);
        Self(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn digests_distinguish_routes_and_bodies() {
        let digests = [
            Digest::of("a", b"bc"),
            Digest::of("ab", b"c"),
            Digest::of("a", b"bd"),
            Digest::of("", b"abc"),
        ];
        for (index, digest) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(digest));
        }
        assert_eq!(Digest::of("a", b"bc"), digests[0]);
    }
}
