//! Having a program ask for messages at its steps.

use stafette_core::workflow::{Agent, Runner};

use super::Profile;
use crate::Job;

/// True if the program of an agent asks for messages during its turns.
#[must_use]
pub fn asks_for_messages(profile: &Profile, agent: &Agent) -> bool {
    !arguments_of(profile, agent, &agent.command).is_empty()
}

/// The arguments that have the agent of a job ask; `words` are those that it has already.
pub(super) fn arguments(job: &Job, words: &[String]) -> Vec<String> {
    // Without a token it could ask for no agent.
    let profile = job.profile.as_ref().filter(|_| job.token().is_some());
    profile.map(|profile| arguments_of(profile, &job.agent, words)).unwrap_or_default()
}

fn arguments_of(profile: &Profile, agent: &Agent, words: &[String]) -> Vec<String> {
    let in_terminal_or_not = matches!(agent.runner, Runner::Exec | Runner::Pty);
    let Some(messages) = profile.messages.as_ref().filter(|_| in_terminal_or_not) else {
        return Vec::new();
    };
    // A program that takes an option once would forget the user's own.
    let is_taken = |word: &String| word.starts_with("--") && words.contains(word);
    match messages.arguments.iter().any(is_taken) {
        true => Vec::new(),
        false => messages.arguments.clone(),
    }
}
