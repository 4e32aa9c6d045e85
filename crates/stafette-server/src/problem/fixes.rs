//! What a caller can do about each problem, where the place that reports it knows nothing better.

/// The usual next step for each code, sorted by code.
const FIXES: &[(&str, &str)] = &[
    ("GRAPH_BATCH_MALFORMED", "correct the records that it names and send the batch again"),
    ("GRAPH_FAILED", "try again; if it stays so, see `stafette doctor`"),
    ("GRAPH_KEY_REUSED", "use a new key, or send exactly what the key was first used for"),
    ("GRAPH_NODE_MISSING", "create the node that it names first"),
    ("MCP_CONNECTION_FAILED", "try again later; `stafette doctor` names the server that is away"),
    ("agent_admin", "choose `observe`, `assist` or `act` for an agent's token"),
    ("already_answered", "see `stafette inbox` for the questions that are still open"),
    ("ambiguous", "give more digits, or the whole id"),
    ("bad_body", "compare the body with the operation's schema in /openapi.json"),
    ("bad_change", "correct the edits that it names and propose the whole set again"),
    ("bad_comment", "say why in 1 to 16,384 bytes; put longer text into a file and name it"),
    ("bad_cursor", "send the id of the last event that you have received, or leave it out"),
    ("bad_file", "correct the file that it names"),
    ("bad_json", "send a single JSON value, in UTF-8"),
    ("bad_key", "send a key of the length that it names, in printable ASCII"),
    ("bad_length", "shorten the text to the length that it names"),
    ("bad_name", "choose a name of 1 to 64 letters, digits, `-`, `_` or `.`"),
    ("bad_options", "give every option the values that it names"),
    ("bad_path", "compare the address with /openapi.json"),
    ("bad_pattern", "write a path within the project, with `*`, `?` or `**` if need be"),
    ("bad_payload", "send the fields that the trigger's request names"),
    ("bad_query", "compare the parameters with the operation in /openapi.json"),
    ("bad_signature", "sign the body with the secret that the trigger names"),
    ("bad_time", "write a time like 2026-03-02T09:00:00Z, and an end after its beginning"),
    ("bad_token", "create one with `stafette token create`"),
    ("bad_trigger", "correct the trigger in stafette.toml; `stafette check` shows where"),
    ("bad_week", "ask for a shorter period, or correct the working hours that it names"),
    ("being_revised", "wait for the revision, or have it applied `as_it_is`"),
    ("block_order", "choose a time in the order that it names, or move the other block first"),
    ("block_state", "read the proposal again: its blocks have changed"),
    ("block_taken", "read the proposal again and accept the new time, or choose another one"),
    ("blocked", "do what the hook says, or change the hook in stafette.toml"),
    ("calendar_conflict", "read the event again and repeat the change"),
    ("calendar_failed", "try again; if it stays so, see `stafette doctor`"),
    ("calendar_gone", "read the calendar again: the event was deleted"),
    ("calendar_refuses", "check the address and the password in `[calendar]` of stafette.toml"),
    ("calendar_unusable", "correct the event that it names"),
    ("change_status", "see `stafette changes` for what each set allows now"),
    ("changed_since", "try again; if it stays so, compare the file with `stafette diff`"),
    ("changes_busy", "wait until the work on the other set has ended, and try again"),
    ("content_type", "send `content-type: application/json` and a body that is not compressed"),
    ("damaged", "restore the store from a backup; `stafette doctor` names what is damaged"),
    ("deadlock", "release what you hold, and take the locks again in another order"),
    ("does_not_start", "see `stafette doctor`"),
    ("empty_answer", "send `text`, `values`, or both"),
    ("empty_note", "say in `text` what the next generation should know"),
    ("empty_request", "say in `request` what is to be done"),
    ("empty_text", "send the text to type"),
    ("files", "check the folder's permissions and its free space, and try again"),
    ("goes_on", "wait until that run has ended, or cancel it"),
    ("header_twice", "send the header once"),
    ("history_failed", "try again; if it stays so, see `stafette doctor`"),
    (
        "host",
        "use the address that `stafette open --print` shows, or add the name to `[server] hosts`",
    ),
    ("key_reused", "use a new key, or send exactly what the key was first used for"),
    ("large_headers", "send fewer or shorter headers"),
    ("late", "stop working on it; `GET /v1/turns` has the turns that are offered now"),
    ("later_changes", "roll back the later sets first, or all of them together"),
    ("launch_key", "open the page with `stafette open`"),
    ("lock_limit", "keep to the limit that it names: shorten the text, or lock less at a time"),
    ("lock_lost", "take the lock again, and read the file again before you write it"),
    ("lock_not_yours", "leave the lock to its holder; a person may release it"),
    ("locked", "work on something else and try again; `stafette locks` names the holder"),
    ("long_url", "send what is long in the body"),
    ("many_changes", "go on with other work: a person applies or rejects some of them first"),
    ("method", "use one of the methods in the `allow` header"),
    ("mistaken", "correct what it names and send it again"),
    ("needs_person", "ask a person to do it with `stafette`, or on the page"),
    ("no_agent", "name an agent of the run's workflow"),
    ("no_block", "read the proposal again: there is no such block in it"),
    ("no_calendar", "name a calendar in `[calendar]` of stafette.toml"),
    ("no_chance", "try again; the system is short of random numbers"),
    ("no_change", "see `stafette changes` for the sets that there are"),
    ("no_council", "ask for a run whose workflow has a `[council]`"),
    ("no_door", "free the port, or choose another with `stafette up --listen`"),
    ("no_event", "ask for a number within that range"),
    ("no_handoff", "see `stafette handoffs RUN` for those that there are"),
    ("no_index", "switch telemetry on in `[telemetry]` of stafette.toml, and restart the daemon"),
    ("no_knowledge", "switch knowledge on in `[knowledge]` of stafette.toml"),
    ("no_message", "see `stafette log` for the messages of the run"),
    ("no_node", "search for it first: there is no node of that key"),
    ("no_program", "say in `[self]` of stafette.toml how it is built, tried and started"),
    ("no_question", "see `stafette inbox` for the open questions"),
    ("no_reason", "say in `reason` why the lock is taken over"),
    ("no_recording", "give the agent `runner = \"pty\"`; it is recorded from its next turn on"),
    ("no_run", "see `stafette status` for the runs that there are"),
    ("no_schema", "list the schemas with `GET /v1/schemas`"),
    ("no_secret", "set the variable that the trigger names, and restart the daemon"),
    ("no_terminal", "see `stafette status` for the agents that are at work"),
    ("no_thread", "list the threads first: there is none of that id"),
    ("no_token", "see `stafette token list` for the names"),
    ("no_trigger", "see `stafette triggers` for the names"),
    ("no_turn", "wait for a turn with `GET /v1/turns?within=60`"),
    ("no_turn_token", "send the header `stafette-token` with the value of STAFETTE_TOKEN"),
    ("no_version", "see `stafette params` for the versions"),
    ("nobody_hears", "start a run that makes the change again, and reject this one"),
    ("not_a_change", "name a set as `stafette changes` lists it, such as `c3` or `c3@2`"),
    ("not_a_context", "compare it with the schema `orchestrator-context` of `/v1/schemas`"),
    ("not_a_document", "compare it with the schemas in `/v1/schemas`"),
    ("not_a_file", "name plain files within the project, no links and no folders"),
    ("not_a_handoff", "name a handoff as it is listed, such as `h3`"),
    ("not_a_lock", "name a lock as `stafette locks` shows it"),
    ("not_a_node", "name a node by its kind and its key"),
    ("not_a_place", "send `next` of the last page unchanged, or leave `after` out"),
    ("not_a_program", "name in `[self]` a program within the project"),
    ("not_a_request", "send an answer to the `complete` of its turn"),
    ("not_a_turn", "send the turn's key as `accept` returned it"),
    ("not_a_websocket", "open it as a WebSocket"),
    ("not_accepted", "correct what it names, or keep the version in use"),
    ("not_an_answer", "send a handoff response or a phase response; `/v1/schemas` has both"),
    ("not_collected", "try again: it is collected in the background"),
    ("not_for_agents", "leave it to a person: hand it to `human`"),
    ("not_found", "compare the address with /openapi.json"),
    ("not_granted", "leave it to an agent whose role has the right, or ask a person"),
    ("not_kept", "try again; if it stays so, see `stafette doctor`"),
    (
        "not_observed",
        "switch telemetry on in `[telemetry]` of stafette.toml, and restart the daemon",
    ),
    ("not_readable", "try again; if it stays so, see `stafette doctor` and the daemon's log"),
    (
        "not_sent",
        "send it to an agent of that run, and again once what the reason names is different",
    ),
    ("not_stored", "nothing was recorded: check the disk with `stafette doctor`, and try again"),
    ("not_taken", "accept the turn first: `POST …/handoffs/{handoff}/accept`"),
    ("not_taken_back", "see `stafette doctor`; the files are as the set left them"),
    ("not_written", "free some space or correct the permissions, and try again"),
    ("not_yours", "act as yourself: leave the turn, the run or the set to its own agent"),
    ("objected", "correct what it says and try again"),
    ("origin", "ask from the page of this daemon, or from a program with a token"),
    ("preflight", "ask from the page of this daemon, or from a program with a token"),
    ("proposals_failed", "try again; if it stays so, see `stafette doctor`"),
    ("protected", "ask a person: the workflow protects these files"),
    ("refused", "correct what the rule names and propose it again, or hand it to `human`"),
    ("repeated_header", "send the header once"),
    ("replayed", "nothing: the delivery has begun its run"),
    ("revised", "look at the new revision, and decide about that"),
    ("run_over", "start a new run, or fork this one from an earlier event"),
    ("scope", "use a token with the scope that it names: `stafette token create --scope`"),
    ("site", "ask from the page of this daemon, or from a program with a token"),
    ("slow_body", "send the body in one go"),
    ("started_here", "take the turns of agents with `runner = \"external\"`"),
    ("stopping", "try again when the daemon is back: `stafette up`"),
    ("taken", "leave it to its holder, and take another one"),
    ("text_too_long", "write it to a file that the agent can read, and send its name"),
    ("token_taken", "choose another name, or revoke the old token first"),
    ("too_fast", "wait as long as `retry-after` says, and send less at a time"),
    ("too_large", "put what is large into files of the project, and name them in the request"),
    ("too_many_streams", "end a stream that is not needed, or use `/mcp` without one"),
    ("too_many_tokens", "revoke tokens that are not needed: `stafette token list`"),
    ("two_moments", "send `until` or `at`, not both"),
    ("unauthorized", "send `authorization: Bearer TOKEN`, with a token of `stafette token create`"),
    ("unavailable", "start the daemon with a stafette.toml that has triggers or `[notify]`"),
    ("unfit_answer", "answer with one of the options, or with the values that were asked for"),
    ("upgrade_required", "ask for `Upgrade: mcp` at the Unix socket, or use /mcp"),
    ("usage_notify", "name a channel in `[notify]` of stafette.toml"),
    ("usage_workflow", "correct stafette.toml and trust it: `stafette check`, `stafette trust`"),
    ("versions_failed", "try again; if it stays so, see `stafette doctor`"),
    ("which_run", "name the run with `?run=`"),
];

/// Returns the usual next step for a code; an empty text for one that is missing here.
pub(super) fn usual(code: &str) -> &'static str {
    let found = FIXES.binary_search_by_key(&code, |(code, _)| code);
    found.map_or("", |at| FIXES[at].1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::FIXES;

    /// The codes that a source file names: the text behind a status code.
    fn codes(text: &str) -> impl Iterator<Item = &str> {
        text.match_indices('"').filter_map(|(at, _)| {
            let before = text[..at].trim_end().strip_suffix(',')?;
            let start = before.len().checked_sub(4)?;
            let (open, status) = before.get(start..)?.split_at_checked(1)?;
            let is_status = status.starts_with(['4', '5']) && status.parse::<u16>().is_ok();
            let code = text[at + 1..].split('"').next()?;
            (is_status && (open == "(" || open.trim().is_empty())).then_some(code)
        })
    }

    fn sources(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                found.extend(codes(&text).map(str::to_owned));
            }
        }
    }

    #[test]
    fn b_22_every_problem_says_what_to_do() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut used = BTreeSet::from(["scope".to_owned(), "not_for_agents".to_owned()]);
        for folder in ["src", "../stafette-engine/src/error", "../stafette-stages/src"] {
            sources(&here.join(folder), &mut used);
        }
        assert!(used.len() > 100, "the codes are found: {used:?}");
        let known: BTreeSet<String> = FIXES.iter().map(|(code, _)| (*code).to_owned()).collect();
        let missing: Vec<&String> = used.difference(&known).collect();
        assert!(missing.is_empty(), "give these codes a fix: {missing:?}");
        let needless: Vec<&String> = known.difference(&used).collect();
        assert!(needless.is_empty(), "nothing reports these codes: {needless:?}");
        assert!(FIXES.iter().all(|(_, fix)| !fix.is_empty()));
        assert!(FIXES.is_sorted_by(|one, next| one.0 < next.0), "sorted, each code once");
    }
}
