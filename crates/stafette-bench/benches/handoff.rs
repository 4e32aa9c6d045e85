//! `cargo bench -p stafette-bench`: the same report as `stafette bench`, with more handoffs.
//!
//! Takes the same four numbers, handoffs, runs, idle and busy terminals:
//! `cargo bench -p stafette-bench -- 20000 64 200 20`.

use std::env;
use std::error::Error;

#[expect(clippy::print_stdout, reason = "the report is what it is for")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    // Without this the program is only tried out, as a test.
    let measured = arguments.iter().any(|argument| argument == "--bench");
    let mut numbers = arguments.iter().filter_map(|argument| argument.parse().ok());
    let handoffs = numbers.next().unwrap_or(if measured { 10_000 } else { 20 });
    let runs = numbers.next().unwrap_or(if measured { 64 } else { 2 });
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let idle = numbers.next().unwrap_or(if measured { 200 } else { 2 });
    let busy = numbers.next().unwrap_or(if measured { 20 } else { 1 });
    let mut report = stafette_bench::handoffs(folder.path(), handoffs, runs).await?;
    report.terminals = Some(stafette_bench::terminals(folder.path(), idle, busy).await?);
    println!("{report}");
    Ok(())
}
