//! A digest that identifies bytes even against an attacker: SHA-256.
//!
//! The checksum of an image finds damage, but anyone who changes an image can recompute it. A
//! digest that is stored where they cannot write proves that an image that returns from elsewhere
//! is the original.

use sha2::{Digest as _, Sha256};

/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 32;

/// The digest of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Digest(pub [u8; DIGEST_BYTES]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_digest_that_others_compute() {
        // The example of FIPS 180-2.
        let expected = [
            0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae,
            0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61,
            0xf2, 0x00, 0x15, 0xad,
        ];
        assert_eq!(Digest::of(b"abc"), Digest(expected));
    }
}
