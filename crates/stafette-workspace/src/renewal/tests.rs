use std::path::Path;

use serde_json::json;
use stafette_core::change::{ChangeStatus, Proposal};

use super::*;

/// A project whose program is a script, which its build copies.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Home { folder: tempfile::tempdir().expect("a folder") };
        home.write("source.sh", "echo one\n");
        home.write("bin/program", "echo one\n");
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    fn changes(&self) -> Changes {
        Changes::open(self.path(), &self.path().join(".stafette")).expect("changes")
    }

    fn renewals(&self) -> Renewals {
        Renewals::open(self.path(), &self.path().join(".stafette"))
    }

    async fn proposes(&self, text: &str) -> ChangeId {
        let proposal: Proposal = serde_json::from_value(json!({
            "reason": "better",
            "changes": [{ "file": "source.sh", "action": "modify", "content": text }],
        }))
        .expect("a proposal");
        self.changes().propose(proposal, &rules()).await.expect("taken").id
    }

    async fn renew(&self, text: &str, replaced: Result<(), String>) -> Renewal {
        let id = self.proposes(text).await;
        let (own, rules) = (own(), rules());
        let renewals = self.renewals();
        let changes = self.changes();
        let renewed = renewals.renew(&changes, id, (&own, &rules), async || replaced);
        renewed.await.expect("done or back")
    }

    /// Checks that nothing of the new code is left.
    fn is_as_before(&self, change: ChangeId) {
        assert_eq!((self.read("source.sh"), self.read("bin/program")), both("echo one\n"));
        assert_eq!(self.changes().get(change).map(|c| c.status).ok(), Some(ChangeStatus::Undone));
        assert!(!self.path().join(".stafette/self/renewal.json").exists());
    }
}

fn both(text: &str) -> (String, String) {
    (text.to_owned(), text.to_owned())
}

fn rules() -> ChangeRules {
    ChangeRules { commit: false, ..ChangeRules::default() }
}

fn own() -> Own {
    settings(json!({
        "build": ["sh", "-c", "grep -q syntax source.sh && exit 1; cp source.sh bin/program"],
        "program": "bin/program",
        "prove": ["sh", "-c", "! grep -q unreadable bin/program"],
    }))
}

fn settings(value: serde_json::Value) -> Own {
    serde_json::from_value(value).expect("settings")
}

#[tokio::test]
async fn s4_09_new_code_is_applied_built_proved_and_started() {
    let home = Home::new();
    let renewal = home.renew("echo two\n", Ok(())).await;
    assert_eq!(renewal.stage, Stage::Done);
    assert_eq!((home.read("source.sh"), home.read("bin/program")), both("echo two\n"));
    assert!(!home.path().join(".stafette/self/renewal.json").exists());
}

#[tokio::test]
async fn s4_09_whatever_fails_on_the_way_the_old_program_is_back() {
    for (text, replaced, stage) in [
        ("syntax error\n", Ok(()), Stage::Build),
        ("unreadable\n", Ok(()), Stage::Prove),
        ("echo two\n", Err("it ended at once".to_owned()), Stage::Replace),
    ] {
        let home = Home::new();
        let renewal = home.renew(text, replaced).await;
        assert_eq!(renewal.stage, stage);
        assert!(!renewal.why.is_empty());
        home.is_as_before(renewal.change);
    }
}

#[tokio::test]
async fn s4_09_a_daemon_that_dies_in_the_middle_finds_the_old_program_again() {
    let home = Home::new();
    let id = home.proposes("echo two\n").await;
    let (own, rules) = (own(), rules());
    let (renewals, changes) = (home.renewals(), home.changes());
    let (reached, replacing) = tokio::sync::oneshot::channel();
    let never = async || {
        reached.send(()).expect("heard");
        std::future::pending::<Result<(), String>>().await
    };
    tokio::select! {
        _ = renewals.renew(&changes, id, (&own, &rules), never) => panic!("it never ends"),
        heard = replacing => heard.expect("it is about to replace the old one"),
    }
    assert_eq!(home.read("bin/program"), "echo two\n");
    drop(changes);
    let found = home.renewals().recover(&home.changes(), &rules).await.expect("a way back");
    assert_eq!(found, Some(id));
    home.is_as_before(id);
    assert_eq!(home.renewals().recover(&home.changes(), &rules).await.expect("nothing"), None);
}

#[tokio::test]
async fn s4_09_a_program_outside_of_the_project_is_not_ours() {
    let home = Home::new();
    let id = home.proposes("echo two\n").await;
    for program in ["../x", "/bin/sh", ""] {
        let own = Own { program: program.into(), ..own() };
        let (renewals, changes) = (home.renewals(), home.changes());
        let renewed = renewals.renew(&changes, id, (&own, &rules()), async || Ok(())).await;
        assert!(matches!(renewed, Err(RenewalError::Outside { .. })), "{program}");
    }
    assert_eq!(home.read("source.sh"), "echo one\n");
}
