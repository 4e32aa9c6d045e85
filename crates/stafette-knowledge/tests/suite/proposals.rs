//! Blocks of time that were proposed, as they are kept.

use stafette_core::{HandoffId, RunId, Time};
use stafette_knowledge::Base;
use stafette_knowledge::calendar::proposal::{Proposal, ProposalError, Proposals, Stand};
use stafette_knowledge::graph::NodeKey;

fn block(number: u32, start: i64, end: i64) -> Proposal {
    Proposal {
        id: format!("b{number}"),
        state: Stand::Proposed,
        run: "01890000-0000-7000-8000-000000000001".parse::<RunId>().expect("a run"),
        handoff: HandoffId(number),
        task: NodeKey::task("t"),
        title: format!("Block {number}"),
        kind: None,
        start: Time(start),
        end: Time(end),
        planned_end: Time(end),
        after: Vec::new(),
        deadline: None,
        done_at: None,
        entry: format!("b{number}.ics"),
        trouble: None,
    }
}

fn accepted(one: &mut Proposal) {
    one.state = Stand::Accepted;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_14_of_many_who_want_the_same_time_one_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let proposals = Proposals::new(Base::open(&folder.path().join("k.db")).expect("a file"));
    // Each reaches into the next, and they come in any order.
    let all: Vec<Proposal> = (1..=8).map(|n| block(n, i64::from(n), i64::from(n) + 20)).collect();
    proposals.add(all).await.expect("kept");
    let wanted: Vec<_> = (1..=8)
        .map(|number| {
            let proposals = proposals.clone();
            let id = format!("b{number}");
            tokio::spawn(async move { proposals.hold(&id, &[Stand::Proposed], accepted).await })
        })
        .collect();
    let mut held = Vec::new();
    for one in wanted {
        match one.await.expect("it asked") {
            Ok(block) => held.push(block.id),
            Err(ProposalError::Taken { by, .. }) => assert_eq!(by.state, Stand::Accepted),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(held.len(), 1, "{held:?}");
    let kept = proposals.in_state(Stand::Accepted).await.expect("read");
    assert_eq!(kept.iter().map(|one| &one.id).collect::<Vec<_>>(), held.iter().collect::<Vec<_>>());

    // What ends where another begins is in nobody's way.
    proposals.add(vec![block(9, 100, 110), block(10, 110, 120)]).await.expect("kept");
    for id in ["b9", "b10"] {
        proposals.hold(id, &[Stand::Proposed], accepted).await.expect("there is room");
    }
    let onto = |one: &mut Proposal| (one.start, one.end) = (Time(105), Time(115));
    let taken = proposals.hold("b10", &[Stand::Accepted], onto).await;
    assert!(matches!(taken, Err(ProposalError::Taken { .. })), "{taken:?}");
    assert_eq!(proposals.get("b10").await.expect("there").start, Time(110), "it stays");
}
