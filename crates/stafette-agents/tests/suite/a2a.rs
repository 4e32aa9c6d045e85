//! What only remote agents do.

use std::net::{TcpListener, TcpStream};

use stafette_agents::{Job, Signal, start};
use stafette_core::FailureKind;
use stafette_core::workflow::Runner;

use crate::a2a_server;
use crate::world::{World, failed, finished, hears};

fn job(world: &World, steps: &str) -> Job {
    world.job(Runner::A2a, steps)
}

#[tokio::test]
async fn b_11_an_agent_without_streams_is_looked_at_until_it_is_done() {
    let world = World::new();
    let mut job = job(&world, r#"{ say = "all good" }, { exit = 0 }"#);
    job.agent.url = Some(a2a_server::serve(&job.agent.command, &world.work(), false));
    assert_eq!(finished(job).await.response.summary, "all good");
    assert!(world.is_clean());
}

#[tokio::test]
async fn b_01_a_turn_that_is_delivered_again_goes_on_with_its_task() {
    let world = World::new();
    let steps =
        r#"{ say = "waiting" }, { run = "until test -e gate; do :; done" }, { say = "done" }"#;
    let mut job = job(&world, steps);
    let mut earlier = start(job.clone());
    hears(&mut earlier, "waiting").await;
    job.order.deliveries = 2;
    let again = start(job);
    // The earlier delivery is not stopped: it is what a daemon that died leaves behind.
    std::fs::write(world.work().join("gate"), "").unwrap();
    let mut again = again;
    let mut last = None;
    while let Some(signal) = crate::world::next(&mut again.signals).await {
        last = Some(signal);
    }
    let Some(Signal::Finished(result)) = last else { panic!("{last:?}") };
    assert_eq!(result.response.summary, "waiting\ndone");
    assert_eq!(world.ledger().len(), 2, "it was begun once and ended once");
    while crate::world::next(&mut earlier.signals).await.is_some() {}
    assert!(world.is_clean());
}

#[tokio::test]
async fn s5_07_an_agent_that_cannot_be_reached_is_worth_another_try_and_a_wrong_address_is_not() {
    let world = World::new();
    let mut job = job(&world, "");
    // The near end of a connection: nobody listens there, and nobody else gets the port.
    let far = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(far.local_addr().unwrap()).unwrap();
    let gone = near.local_addr().unwrap();
    for (url, kind, says) in [
        (Some(format!("http://{gone}")), FailureKind::Recoverable, "cannot be reached"),
        (Some(format!("https://{gone}")), FailureKind::Recoverable, "cannot be reached"),
        (Some("ftp://example.org".into()), FailureKind::Fatal, "http:// or https://"),
        (Some("not a url".into()), FailureKind::Fatal, "cannot be used"),
        (None, FailureKind::Fatal, "give it a `url`"),
    ] {
        job.agent.url = url;
        let failure = failed(job.clone()).await;
        assert_eq!(failure.kind, kind, "{failure:?}");
        assert!(failure.message.contains(says), "{failure:?}");
    }
    let mut job = self::job(&world, "");
    job.agent.bearer = Some("STAFETTE_NO_SUCH_VARIABLE".into());
    let failure = failed(job).await;
    assert!(failure.message.contains("STAFETTE_NO_SUCH_VARIABLE"), "{failure:?}");
}
