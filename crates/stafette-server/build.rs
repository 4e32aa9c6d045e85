//! Builds the page in `web/` with npm and lists its files for `src/page.rs` to embed.
//!
//! `STAFETTE_PAGE` says what to do: nothing means to build it when npm is there and to go on without
//! it otherwise, `on` fails instead, `off` leaves it out, and a folder is a page that was built
//! before. Everything happens in cargo's own output folder; `web/` is only read.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the page is made of; tests and pictures are not.
const SOURCES: [&str; 7] = [
    "src",
    "public",
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
];

/// npm is given so long.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() {
    let web = PathBuf::from("../../web");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=STAFETTE_PAGE");
    let wanted = std::env::var("STAFETTE_PAGE").unwrap_or_default();
    let page = match wanted.as_str() {
        "off" => None,
        "" | "on" => {
            for name in SOURCES.iter().map(|name| web.join(name)).filter(|path| path.exists()) {
                println!("cargo::rerun-if-changed={}", name.display());
            }
            match build(&web, &out) {
                Ok(folder) => Some(folder),
                Err(why) if wanted == "on" => panic!("the page cannot be built: {why}"),
                Err(why) => {
                    println!(
                        "cargo::warning=the page is left out: {why}; `STAFETTE_PAGE=on` insists"
                    );
                    None
                }
            }
        }
        folder => {
            println!("cargo::rerun-if-changed={folder}");
            Some(PathBuf::from(folder))
        }
    };
    let list = list(page.as_deref()).expect("the page's files can be read");
    let target = out.join("page.rs");
    // A list that stays the same does not make the crate be compiled again.
    if fs::read_to_string(&target).ok().as_ref() != Some(&list) {
        fs::write(target, list).expect("cargo's output folder can be written");
    }
}

/// The folder with the built page.
fn build(web: &Path, out: &Path) -> Result<PathBuf, String> {
    if !web.join("package-lock.json").exists() {
        return Err("there is no web/ here".into());
    }
    let said = |error: io::Error| error.to_string();
    let place = out.join("web");
    let page = place.join("dist");
    let stamp = out.join("page.stamp");
    let state = digest(web, &SOURCES).map_err(said)?;
    if page.join("index.html").exists() && fs::read_to_string(&stamp).is_ok_and(|old| old == state)
    {
        return Ok(page);
    }
    run(Command::new("npm").arg("--version"), out)
        .map_err(|_| "npm is not installed".to_owned())?;
    let locked = fs::read(web.join("package-lock.json")).map_err(said)?;
    let installed = fs::read(place.join("package-lock.json")).is_ok_and(|old| old == locked)
        && place.join("node_modules").exists();
    for name in SOURCES {
        let copy = place.join(name);
        if copy.is_dir() {
            fs::remove_dir_all(&copy).map_err(said)?;
        }
        copy_all(&web.join(name), &copy).map_err(said)?;
    }
    if !installed {
        let mut install = Command::new("npm");
        install.args(["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]);
        run(install.args(["--fetch-retries=1", "--prefer-offline"]), &place).inspect_err(|_| {
            // A half-done installation must not pass for a whole one.
            drop(fs::remove_dir_all(place.join("node_modules")));
        })?;
    }
    run(Command::new("npm").args(["run", "build"]), &place)?;
    fs::write(stamp, state).map_err(said)?;
    Ok(page)
}

/// Runs a command to its end, within limits.
fn run(command: &mut Command, place: &Path) -> Result<(), String> {
    let log = place.join("build.log");
    let name = format!("{:?}", command.get_program());
    let said = |error: io::Error| format!("{name}: {error}");
    fs::create_dir_all(place).map_err(said)?;
    let output = fs::File::create(&log).map_err(said)?;
    let errors = output.try_clone().map_err(said)?;
    let mut child = command
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(said)?;
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(said)? {
            break status;
        }
        if since.elapsed() > PATIENCE {
            drop(child.kill());
            drop(child.wait());
            return Err(format!("{name} took more than {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(&log).unwrap_or_default();
    let last: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Err(last[last.len().saturating_sub(3)..].join(" / "))
}

/// What `page.rs` includes: each file with its address, type, mark and smaller form.
fn list(page: Option<&Path>) -> io::Result<String> {
    let mut text = String::from("/// The page's files.\npub(super) const FILES: &[File] = &[\n");
    let mut files = Vec::new();
    if let Some(page) = page {
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

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_all(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if from.exists() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        fs::copy(from, to)?;
    }
    Ok(())
}

/// What all the sources together look like.
fn digest(web: &Path, names: &[&str]) -> io::Result<String> {
    let mut files = Vec::new();
    for path in names.iter().map(|name| web.join(name)).filter(|path| path.exists()) {
        if path.is_dir() { walk(&path, &mut files)? } else { files.push(path) }
    }
    files.sort();
    let mut text = String::new();
    for file in files {
        let _ = writeln!(text, "{:016x} {}", hash(&fs::read(&file)?), file.display());
    }
    Ok(text)
}

/// FNV-1a: nobody attacks it here, and it is the same everywhere.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
