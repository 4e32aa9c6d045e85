//! Lists the files of the page for `src/page.rs` to embed.
//!
//! They are in `page/`, built from `web/` and held against it by a test, so that Node is needed only by those
//! who change the page. `STAFETTE_PAGE` names another folder with a page, for instance `web/dist`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let page = std::env::var_os("STAFETTE_PAGE").unwrap_or_else(|| "page".into());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=STAFETTE_PAGE");
    println!("cargo::rerun-if-changed={}", page.display());
    let page = Path::new(&page);
    assert!(page.join("index.html").is_file(), "there is no page in {}", page.display());
    let list = list(page).expect("the page's files can be read");
    let target = out.join("page.rs");
    // A list that stays the same does not make the crate be compiled again.
    if fs::read_to_string(&target).ok().as_ref() != Some(&list) {
        fs::write(target, list).expect("cargo's output folder can be written");
    }
}

/// Returns what `page.rs` includes: each file with its address, type, mark and smaller form.
fn list(page: &Path) -> io::Result<String> {
    let mut text = String::from("/// The page's files.\npub(super) const FILES: &[File] = &[\n");
    let mut files = Vec::new();
    walk(page, &mut files)?;
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_none_or(|kind| kind != "gz")) {
        let path = file.strip_prefix(page).expect("it was found there");
        let bytes = fs::read(file)?;
        let packed = PathBuf::from(format!("{}.gz", file.display()));
        let packed = match packed.exists() {
            true => format!("Some(include_bytes!({:?}))", fs::canonicalize(packed)?),
            false => "None".into(),
        };
        let _ = writeln!(
            text,
            "    File {{ path: {:?}, kind: {:?}, mark: \"\\\"{:016x}\\\"\", \
             bytes: include_bytes!({:?}), packed: {packed} }},",
            format!("/{}", path.display()),
            kind(path),
            hash(&bytes),
            fs::canonicalize(file)?,
        );
    }
    text.push_str("];\n");
    Ok(text)
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|kind| kind.to_str()).unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "webmanifest" => "application/json",
        "woff2" => "font/woff2",
        "png" => "image/png",
        _ => "application/octet-stream",
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// FNV-1a: nobody attacks it here, and it is the same everywhere.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
