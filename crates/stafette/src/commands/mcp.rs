//! `mcp`: the Model Context Protocol on standard input and output. The tools are the daemon's: only
//! bytes pass here.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::{Context, daemon};
use crate::client::{self, Client};
use crate::exit::{Exit, Failure};
use crate::window;

/// The number of bytes in one piece.
const CHUNK: usize = 64 * 1024;

/// The number of pieces that may wait for the other side.
const PIECES: usize = 8;

/// The time that the daemon has for its last answers after the last request.
const LAST_ANSWERS: Duration = Duration::from_secs(15);

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let token = variable("STAFETTE_TOKEN");
    let client = match variable("STAFETTE_SOCKET") {
        // Inside a session its daemon runs already, and starting another one would not help.
        Some(socket) => {
            let client = Client::new(Path::new(&socket));
            token.into_iter().fold(client, Client::of_turn)
        }
        None => daemon(context).await?,
    };
    let no_signals = |error| window::no_signals(&error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let stream = client.stream("/v1/mcp", "mcp").await?;
    let (mut from_daemon, mut to_daemon) = tokio::io::split(stream);
    let (mut input, (output, written)) = (standard_input(), standard_output());

    let asking = async {
        while let Some(piece) = input.recv().await {
            if to_daemon.write_all(&piece).await.is_err() || to_daemon.flush().await.is_err() {
                // The other side notices that the daemon is gone.
                return std::future::pending().await;
            }
        }
        let _ = to_daemon.shutdown().await;
    };
    let answering = async {
        let mut piece = vec![0; CHUNK];
        while let Ok(count @ 1..) = from_daemon.read(&mut piece).await {
            if output.send(piece[..count].to_vec()).await.is_err() {
                // The client no longer reads.
                return true;
            }
        }
        false
    };
    let ended = {
        let mut answering = std::pin::pin!(answering);
        tokio::select! {
            () = asking => {
                let _ = timeout(LAST_ANSWERS, &mut answering).await;
                true
            }
            unheard = &mut answering => unheard,
            failure = client.silence() => return Err(failure),
            _ = interrupt.recv() => true,
            _ = terminate.recv() => true,
        }
    };
    drop(output);
    let _ = timeout(LAST_ANSWERS, written).await;
    if ended { Ok(Exit::Ok) } else { Err(client::gone()) }
}

/// The input, piece by piece. It has a thread of its own: one that waits for input must not keep
/// this process from exiting.
fn standard_input() -> mpsc::Receiver<Vec<u8>> {
    let (pieces, input) = mpsc::channel(PIECES);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut piece = vec![0; CHUNK];
        loop {
            match stdin.read(&mut piece) {
                Ok(count @ 1..) if pieces.blocking_send(piece[..count].to_vec()).is_ok() => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    input
}

/// The channel for answers, and a signal when the last of them is written.
fn standard_output() -> (mpsc::Sender<Vec<u8>>, oneshot::Receiver<()>) {
    let (output, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES);
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        let mut stdout = std::io::stdout().lock();
        while let Some(piece) = pieces.blocking_recv() {
            if stdout.write_all(&piece).and_then(|()| stdout.flush()).is_err() {
                break;
            }
        }
        let _ = done.send(());
    });
    (output, written)
}
