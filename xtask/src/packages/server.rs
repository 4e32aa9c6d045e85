//! A folder by HTTP, on loopback: a registry and a download page for one trial.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The longest line of a request.
const LINE: u64 = 8 << 10;

/// Serves a folder until this program ends, and returns its address.
pub(super) fn serve(folder: PathBuf) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            thread::spawn(move || answer(&stream, &folder));
        }
    });
    Ok(address)
}

fn answer(stream: &TcpStream, folder: &Path) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader)?;
    while !line(&mut reader)?.trim().is_empty() {}
    let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    // npm asks for `@stafette%2fname`. What is elsewhere is not served.
    let path = path.replace("%2f", "/").replace("%2F", "/").replace("..", "");
    let found = [folder.join(&path), folder.join(&path).join("index.json")];
    let body = found.iter().find(|path| path.is_file()).map(fs::read).transpose()?;
    let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
    let body = body.unwrap_or_default();
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n", body.len())?;
    stream.write_all(b"Content-Type: application/json\r\n\r\n")?;
    stream.write_all(&body)
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    io::Read::take(reader, LINE).read_line(&mut line)?;
    Ok(line)
}
