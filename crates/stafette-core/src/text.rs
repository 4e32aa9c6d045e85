//! Texts that have to fit somewhere.

/// The beginning of a text, with an ellipsis where something is left out.
pub(crate) fn clip(text: &str, limit: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect(),
    }
}
