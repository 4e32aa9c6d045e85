//! TLS to a server whose certificate this system trusts.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use stafette_http::{HttpError, Wire, secure};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use crate::Reply;

/// Creates TLS connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tls;

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Secured;
    type TlsConnect = To;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<To, Infallible> {
        Ok(To(host.to_owned()))
    }
}

/// Host name that the certificate must match.
pub(super) struct To(String);

impl TlsConnect<Socket> for To {
    type Stream = Secured;
    type Error = HttpError;
    type Future = Reply<'static, Result<Secured, HttpError>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move { secure(&self.0, stream).await.map(Secured) })
    }
}

/// A TLS connection.
pub(super) struct Secured(Box<dyn Wire>);

impl TlsStream for Secured {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
