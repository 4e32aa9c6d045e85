//! Secrets: random, stored as hashes, compared in constant time.

use sha2::{Digest, Sha256};
use stafette_core::hex;
use subtle::ConstantTimeEq;

/// Returns a new secret of 256 bits, in hexadecimal digits.
pub(crate) fn fresh() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(hex::encode(&bytes))
}

/// Hash of a secret. A slow hash would add nothing: 256 random bits cannot be guessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    pub(crate) fn of(secret: &str) -> Self {
        Hash(Sha256::digest(secret.as_bytes()).into())
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        hex::decode(text).map(Hash)
    }

    pub(crate) fn text(self) -> String {
        hex::encode(&self.0)
    }

    /// Compares in constant time.
    pub(crate) fn fits(self, other: Hash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_back_and_fits_only_its_secret() {
        let secret = fresh().expect("chance");
        assert_eq!(secret.len(), 64);
        let hash = Hash::of(&secret);
        assert!(Hash::read(&hash.text()).is_some_and(|read| read.fits(hash)));
        assert!(!Hash::of(&fresh().expect("chance")).fits(hash));
        assert_eq!(Hash::read("é".repeat(32).as_str()), None);
        assert_eq!(Hash::read(&"+1".repeat(32)), None);
    }
}
