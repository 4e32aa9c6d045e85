use std::path::PathBuf;

use super::*;
use crate::prompt::tests::job;

fn command_of(command: &[&str], prompt_via: PromptVia) -> Vec<OsString> {
    let mut job = job();
    job.agent.command = command.iter().map(|part| (*part).to_owned()).collect();
    job.agent.prompt_via = prompt_via;
    job.folder = PathBuf::from("/");
    super::command(&job, "do it", None)
}

#[test]
fn a_prompt_takes_its_place_or_the_last_one() {
    let argument = PromptVia::Argument;
    assert_eq!(command_of(&["agent", "-p"], argument), ["agent", "-p", "do it"]);
    assert_eq!(command_of(&["agent", "-p={prompt}", "-x"], argument), ["agent", "-p=do it", "-x"]);
    assert_eq!(command_of(&["agent", "{prompt}"], PromptVia::Stdin), ["agent", "{prompt}"]);
    assert!(command_of(&[], argument).is_empty());
}
