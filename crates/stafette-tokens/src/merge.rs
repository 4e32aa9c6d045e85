//! The tokens of one piece of a text.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::vocabulary::Ranks;

/// Returns how many tokens `piece` is: 1 if it is in the vocabulary, or what remains of its bytes
/// after each two neighbours that are a token together were merged, those of the lowest rank first
/// and of equal ones the leftmost.
pub(crate) fn count(piece: &[u8], ranks: &Ranks) -> usize {
    if piece.len() <= 1 || ranks.contains_key(piece) {
        return piece.len().min(1);
    }
    let mut parts = Parts::new(piece.len());
    let mut pairs: BinaryHeap<Reverse<Pair>> =
        (0..piece.len()).filter_map(|left| parts.pair(piece, left, ranks)).map(Reverse).collect();
    let mut tokens = piece.len();
    while let Some(Reverse(pair)) = pairs.pop() {
        // What was merged with another neighbour since then is no pair any more.
        if parts.end_of_pair(pair.left) != Some(pair.end) {
            continue;
        }
        parts.merge(pair.left);
        tokens -= 1;
        let changed = [parts.before(pair.left), Some(pair.left)];
        let again = changed.into_iter().flatten();
        pairs.extend(again.filter_map(|left| parts.pair(piece, left, ranks)).map(Reverse));
    }
    tokens
}

/// Two neighbours that are a token together. The order of the fields is the one of merging.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    rank: u32,
    left: usize,
    end: usize,
}

/// The parts that a piece has at the moment, each known by the index of its first byte.
struct Parts {
    /// Where the part that starts here ends, which is where the next one starts. 0 inside of parts.
    ends: Vec<usize>,
    /// Where the part before the one that starts here starts.
    starts: Vec<usize>,
}

impl Parts {
    fn new(length: usize) -> Self {
        Self {
            ends: (1..=length).collect(),
            starts: (0..length).map(|at| at.saturating_sub(1)).collect(),
        }
    }

    fn before(&self, left: usize) -> Option<usize> {
        (left > 0).then(|| self.starts[left])
    }

    fn end_of_pair(&self, left: usize) -> Option<usize> {
        self.ends.get(self.ends[left]).copied().filter(|_| self.ends[left] != 0)
    }

    fn pair(&self, piece: &[u8], left: usize, ranks: &Ranks) -> Option<Pair> {
        let end = self.end_of_pair(left)?;
        let rank = *ranks.get(&piece[left..end])?;
        Some(Pair { rank, left, end })
    }

    /// Makes one part of the one that starts at `left` and its right neighbour.
    fn merge(&mut self, left: usize) {
        let right = self.ends[left];
        let end = self.ends[right];
        self.ends[left] = end;
        self.ends[right] = 0;
        if let Some(start) = self.starts.get_mut(end) {
            *start = left;
        }
    }
}
