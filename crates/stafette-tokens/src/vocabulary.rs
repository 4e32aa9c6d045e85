//! The tokens of `o200k_base` and their ranks.

use std::collections::HashMap;
use std::sync::OnceLock;

/// The rank of each token. Of two that could be merged, the one of the lower rank is first.
pub(crate) type Ranks = HashMap<&'static [u8], u32>;

/// How many tokens there are.
pub(crate) const LENGTH: usize = 199_998;

/// Every token in the order of the ranks, each as its length in one byte and its bytes.
const PACKED: &[u8] = include_bytes!("o200k_base.bin");

/// Returns the vocabulary, which the first call unpacks.
pub(crate) fn ranks() -> &'static Ranks {
    static RANKS: OnceLock<Ranks> = OnceLock::new();
    RANKS.get_or_init(|| {
        let mut ranks = Ranks::with_capacity(LENGTH);
        ranks.extend(tokens().zip(0..));
        ranks
    })
}

/// Returns every token in the order of the ranks.
fn tokens() -> impl Iterator<Item = &'static [u8]> {
    let mut rest = PACKED;
    std::iter::from_fn(move || {
        let (length, tail) = rest.split_first()?;
        let (token, tail) = tail.split_at_checked(usize::from(*length))?;
        rest = tail;
        Some(token)
    })
}
