//! Secrets: made by chance, kept as hashes, compared without telling how far they fit.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A fresh secret of 256 bits, in hexadecimal digits.
pub(crate) fn fresh() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(hex(&bytes))
}

/// What is kept of a secret. A slow hash would add nothing: nobody guesses 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    pub(crate) fn of(secret: &str) -> Self {
        Hash(Sha256::digest(secret.as_bytes()).into())
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0_u8; 32];
        for (byte, place) in bytes.iter_mut().zip((0..).step_by(2)) {
            let pair = text.get(place..place + 2)?;
            // A sign would be read as part of a number.
            let digits = pair.bytes().all(|byte| byte.is_ascii_hexdigit());
            *byte = u8::from_str_radix(digits.then_some(pair)?, 16).ok()?;
        }
        Some(Hash(bytes))
    }

    pub(crate) fn text(self) -> String {
        hex(&self.0)
    }

    /// Takes equally long whatever it is compared with.
    pub(crate) fn fits(self, other: Hash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
