//! Shortening texts to a limit.

/// Returns the beginning of a text, with an ellipsis if it was shortened.
pub fn clip(text: &str, limit: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect(),
    }
}
