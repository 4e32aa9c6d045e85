//! A program in a terminal that stays: each turn is typed into it, and read from its screen.
//!
//! A turn ends with a handoff or a result that is followed by quiet, immediately when that frame is
//! signed, and with the program's exit: one that exits with status 0 has done its work, as with a
//! command for each turn. It also ends, without an answer, when the program is back at its prompt and
//! stays there. A program that prints nothing for too long is interrupted, and
//! its turn fails if it stays silent.
//!
//! Nothing is typed before the screen shows that the program waits for a prompt, as far as its
//! profile can tell. What it asks on the way is answered by the profile, or by a person.

mod glance;
mod menu;
mod progress;
mod question;
mod turn;

use stafette_core::Usage;
use stafette_core::wire::frame::Word;
use stafette_core::workflow::{PromptVia, ResultFormat};
use tokio::sync::{OwnedMutexGuard, mpsc};

use crate::process::Launch;
use crate::terminal::{State, Terminals};
use crate::{Job, Link, Reply, Signal, Voice, exec, profile, prompt};
use turn::Turn;

/// Carries out a turn in a terminal: in one of `terminals`, or in one that ends with the turn.
pub(crate) async fn run(job: Job, mut link: Link, terminals: Option<Terminals>) {
    let passing = terminals.is_none();
    let terminals = terminals.unwrap_or_default();
    let voice = link.voice.clone();
    let mut held = None;
    let mut answers = std::mem::replace(&mut link.answers, mpsc::channel(1).1);
    let end = tokio::select! {
        end = carry_out(&job, &terminals, &voice, &mut answers, &mut held) => Some(end),
        () = unwanted(&mut link) => None,
    };
    drop(voice);
    match end {
        Some(signal) => {
            // If the terminal ends with the turn, its processes end before the outcome is reported.
            if passing {
                terminals.end_all().await;
            }
            drop(held);
            link.tell(signal).await;
        }
        // Its work is not wanted, so it must not continue.
        None if held.is_some() => terminals.end(job.order.key.run, &job.order.agent).await,
        None => {}
    }
    if passing {
        terminals.end_all().await;
    }
}

/// Returns when the owner wants the end.
async fn unwanted(link: &mut Link) {
    while link.wish().await.is_some() {}
}

async fn carry_out(
    job: &Job,
    terminals: &Terminals,
    link: &Voice,
    answers: &mut mpsc::Receiver<Reply>,
    held: &mut Option<OwnedMutexGuard<()>>,
) -> Signal {
    let none = Usage::default();
    let word = match job.frame_word.parse::<Word>() {
        Ok(word) => word,
        Err(error) => return Signal::fatal(error.to_string(), none),
    };
    if let Some(message) = profile::unusable(job) {
        return Signal::fatal(message, none);
    }
    if job.agent.result == ResultFormat::Json {
        let message = format!(
            "a terminal shows no JSON document: set result = \"frames\" for {}",
            job.order.agent
        );
        return Signal::fatal(message, none);
    }
    let text = prompt::text(job);
    // A program that reads lines has its order with the last line break, which is our Enter.
    let text = text.trim_end();
    let words = profile::words_in_terminal(job);
    let launch = Launch::of_terminal(job, &exec::with_prompt(job, &words, text));
    let place = (job.order.key.run, &job.order.agent);
    // A prompt that is an argument needs a program of its own.
    let passed = exec::prompt_via(job) == PromptVia::Argument;
    let before = terminals.get(place.0, place.1).filter(|_| passed && job.order.deliveries == 1);
    let _before = match &before {
        Some(terminal) => Some(terminal.take().await),
        None => None,
    };
    let afresh = passed || job.order.deliveries > 1;
    let order = passed.then_some(text);
    let opened = terminals.open(place, launch.clone(), word, afresh, order, |setup| setup.of(job));
    let terminal = match opened.await {
        Ok(terminal) => terminal,
        Err(failure) => return Signal::Failed { failure, usage: none },
    };
    *held = Some(terminal.take().await);
    // A terminal that was given up is requested again by a caller that knows that its program died.
    // A program that has its order with its command may have done it by now, and must not do it
    // twice.
    if !passed
        && matches!(terminal.status().state, State::Ended | State::Crashed)
        && let Err(failure) = terminal.restart(Some(launch)).await
    {
        return Signal::Failed { failure, usage: none };
    }
    let mut turn = Turn::new(job, &terminal, link, answers);
    let begun = match passed {
        true => turn.passed().await,
        false => turn.hand_in(text).await,
    };
    let end = match begun {
        Ok(()) => turn.watch().await,
        Err(Some(signal)) => *signal,
        Err(None) => turn.end().await,
    };
    let spoiled = turn.spoiled;
    drop(turn);
    terminal.turn_ends();
    if spoiled {
        terminals.end(place.0, place.1).await;
    }
    end
}
