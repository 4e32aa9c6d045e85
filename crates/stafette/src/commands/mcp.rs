//! `mcp`: the Model Context Protocol on standard input and output. The tools are the daemon's: what
//! passes here is only bytes.

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

/// How much is passed on at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// How many pieces may wait for the other side.
const PIECES: usize = 8;

/// How long the daemon has for its last answers once nobody asks any more.
const LAST_ANSWERS: Duration = Duration::from_secs(15);

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let token = variable("STAFETTE_TOKEN");
    let client = match variable("STAFETTE_SOCKET") {
        // Inside a session its daemon is there, or nothing we could start would be of help.
        Some(socket) => Client::new(Path::new(&socket)),
        None => daemon(context).await?,
    };
    let trouble =
        |error: std::io::Error| Failure::failed("Signals cannot be heard").because(&error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(trouble)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(trouble)?;
    let stream = client.stream("/v1/mcp", "mcp", token.as_deref()).await?;
    let (mut from_daemon, mut to_daemon) = tokio::io::split(stream);
    let (mut input, (output, written)) = (standard_input(), standard_output());

    let asking = async {
        while let Some(piece) = input.recv().await {
            if to_daemon.write_all(&piece).await.is_err() || to_daemon.flush().await.is_err() {
                // That the daemon is gone shows on the other side.
                return std::future::pending().await;
            }
        }
        let _ = to_daemon.shutdown().await;
    };
    let answering = async {
        let mut piece = vec![0; CHUNK];
        while let Ok(count @ 1..) = from_daemon.read(&mut piece).await {
            if output.send(piece[..count].to_vec()).await.is_err() {
                // Whoever asked has closed their ears.
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
            _ = interrupt.recv() => true,
            _ = terminate.recv() => true,
        }
    };
    drop(output);
    let _ = timeout(LAST_ANSWERS, written).await;
    if ended { Ok(Exit::Ok) } else { Err(client::gone()) }
}

/// What comes in, piece by piece. A thread of its own: one that waits for input must not keep us
/// from leaving.
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

/// Where answers go, and word when the last of them is out.
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
