//! Versions of what was learned, as they are kept.

use stafette_core::{Party, Time};
use stafette_knowledge::graph::NodeKey;
use stafette_knowledge::mind::Change;
use stafette_knowledge::mind::parameters::{Ledger, LedgerError, Parameters};
use stafette_knowledge::{Base, Versions, VersionsError};

fn start() -> Ledger {
    Ledger::new(Parameters::default(), Time(0), Party::Human)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_10_versions_made_at_the_same_time_follow_each_other_and_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("knowledge.db");
    let versions = Versions::new(Base::open(&path).expect("a file"));
    let mut writers = Vec::new();
    for number in 0..8 {
        let versions = versions.clone();
        writers.push(tokio::spawn(async move {
            let accept = move |ledger: &mut Ledger| {
                let insight = NodeKey::insight(&format!("i{number}"));
                let change = Change::Estimate { kind: "code".into(), factor: 2.0 };
                ledger.accept(insight, change, Time(number), Party::Human).map(|_| ())
            };
            versions.change(start(), accept).await.expect("kept");
        }));
    }
    for writer in writers {
        writer.await.expect("it wrote");
    }
    drop(versions);
    let versions = Versions::new(Base::open(&path).expect("the file"));
    let (_, ledger) = versions.change(start(), |_| Ok(())).await.expect("read");
    assert_eq!(ledger.current().number, 9);
    assert_eq!(ledger.current().parameters.estimates["code"], 256.0, "each counted once");

    let back = |ledger: &mut Ledger| ledger.roll_back(99, Time(9), Party::Human).map(|_| ());
    let refused = versions.change(start(), back).await.expect_err("no such version");
    assert!(matches!(refused, VersionsError::Refused { source: LedgerError::Unknown { .. } }));
    let (_, same) = versions.change(start(), |_| Ok(())).await.expect("read");
    assert_eq!(same, ledger, "a refusal changes nothing");
}
