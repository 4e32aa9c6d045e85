//! `cargo xtask dist`: packages of the program, the same bytes for the same program.

mod archive;
mod build;
mod contents;
mod deb;
mod elf;
mod formula;
mod npm;
mod release;
mod sbom;
mod server;
mod target;
mod trial;
mod wheel;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use contents::{Contents, DOCUMENTS};
use target::Target;

use crate::shell;

/// What was asked for.
#[derive(Default, PartialEq, Eq, Debug)]
struct Options {
    /// The system; otherwise this machine's.
    target: Option<String>,
    /// A program that is built already.
    binary: Option<PathBuf>,
    /// Where to; otherwise `target/packages`.
    out: Option<PathBuf>,
    /// True if they are to be installed and tried.
    try_them: bool,
    /// A folder of archives from several machines, to make a release of.
    join: Option<PathBuf>,
}

impl Options {
    fn read(words: &[&str]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("`{word}` wants a value"));
            match *word {
                "--target" => options.target = Some((*value()?).to_owned()),
                "--binary" => options.binary = Some(value()?.into()),
                "--out" => options.out = Some(value()?.into()),
                "--join" => options.join = Some(value()?.into()),
                "--try" => options.try_them = true,
                _ => return Err(format!("`{word}` is unknown; `cargo xtask` lists what there is")),
            }
        }
        Ok(options)
    }
}

/// Makes packages; returns true if all went well.
pub(crate) fn run(root: &Path, words: &[&str]) -> bool {
    let done = Options::read(words).and_then(|options| perform(root, &options));
    if let Err(error) = &done {
        eprintln!("{error}");
    }
    done.is_ok()
}

/// Makes packages of the program that the tests ran, installs them and tries them.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = folder.path().join("stafette");
    let tested = output_folder(root).join("debug/stafette");
    fs::copy(&tested, &program).map_err(|error| format!("{}: {error}", tested.display()))?;
    // What only debuggers read is most of it. Without `strip` the packages are larger.
    shell::probe(std::process::Command::new("strip").arg(&program));
    let options = Options {
        binary: Some(program),
        out: Some(folder.path().join("packages")),
        try_them: true,
        ..Options::default()
    };
    perform(root, &options)
}

fn perform(root: &Path, options: &Options) -> Result<(), String> {
    let version = contents::version(root)?;
    if let Some(folder) = &options.join {
        release::make(root, folder, &version)?;
        return tell(folder);
    }
    let host = host(root)?;
    let target = Target::find(options.target.as_ref().unwrap_or(&host))?;
    let folder = match &options.out {
        Some(folder) => folder.clone(),
        None => {
            let folder = output_folder(root).join("packages");
            // Ours: what is there was made by an earlier call.
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
            }
            folder
        }
    };
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    if fs::read_dir(&folder).map_err(|error| error.to_string())?.next().is_some() {
        return Err(format!("{} has something in it: name another folder", folder.display()));
    }
    let program = match &options.binary {
        Some(program) => program.clone(),
        None => build::build(root, target)?,
    };
    let contents = Contents::gather(root, target, &program)?;
    make(&folder, &contents)?;
    release::make(root, &folder, &version)?;
    if let Some((major, minor)) = contents.needs.glibc {
        eprintln!("The program needs glibc {major}.{minor} or newer.");
    }
    tell(&folder)?;
    if options.try_them { trial::run(target, &folder, &version) } else { Ok(()) }
}

/// Makes the packages for one system.
fn make(folder: &Path, contents: &Contents) -> Result<(), String> {
    let name = contents.target.archive(&contents.version);
    let archive = archive::tar_gz(&format!("{name}/"), &contents.entries());
    write(folder, &format!("{name}.tar.gz"), &archive.map_err(|error| error.to_string())?)?;
    let bill = contents.get(&format!("{DOCUMENTS}/{}", sbom::NAME));
    write(folder, &format!("{name}.cdx.json"), bill)?;
    let packages = [deb::make(contents)?, Some(npm::make(contents)?), Some(wheel::make(contents)?)];
    packages.iter().flatten().try_for_each(|(name, bytes)| write(folder, name, bytes))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    let path = folder.join(name);
    fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// Lists what was made, with sizes.
fn tell(folder: &Path) -> Result<(), String> {
    let files = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut files: Vec<_> = files
        .flatten()
        .map(|file| (file.file_name(), file.metadata().map_or(0, |about| about.len())))
        .collect();
    files.sort();
    for (name, size) in files {
        eprintln!("{:>12} {}", size, name.display());
    }
    eprintln!("in {}", folder.display());
    Ok(())
}

fn output_folder(root: &Path) -> PathBuf {
    root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The system that this machine's compiler makes programs for.
fn host(root: &Path) -> Result<String, String> {
    let mut cargo = shell::cargo(root);
    let about = shell::output(cargo.arg("-vV")).map_err(|error| error.to_string())?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "cargo does not say what machine this is".to_owned())
}

#[cfg(test)]
mod tests {
    use super::contents::{COMPLETIONS, PROGRAM};
    use super::elf::Needs;
    use super::*;

    fn contents() -> Contents {
        let mut files = vec![
            (PROGRAM.to_owned(), vec![7; 100_000]),
            (format!("{DOCUMENTS}/{}", sbom::NAME), b"{}".to_vec()),
            (format!("{DOCUMENTS}/LICENSE"), b"licence".to_vec()),
            (format!("{DOCUMENTS}/README.md"), b"# Read me".to_vec()),
            ("share/man/man1/stafette.1".to_owned(), b".TH".to_vec()),
        ];
        files.extend(COMPLETIONS.map(|(shell, path)| (path.to_owned(), shell.into())));
        let target = Target::find("x86_64-unknown-linux-gnu").expect("there is one");
        let libraries = ["libc.so.6", "libgcc_s.so.1"].map(str::to_owned).into();
        let needs = Needs { libraries, glibc: Some((2, 34)) };
        Contents { target, version: "1.2.3".to_owned(), needs, files }
    }

    /// Makes everything; returns the files by name.
    fn made(contents: &Contents) -> Vec<(String, Vec<u8>)> {
        let folder = tempfile::tempdir().expect("a folder");
        make(folder.path(), contents).expect("the packages are made");
        release::make(&crate::root(), folder.path(), "1.2.3").expect("a release is made");
        let files = fs::read_dir(folder.path()).expect("it can be read").flatten();
        let mut files: Vec<_> = files
            .map(|file| {
                let bytes = fs::read(file.path()).expect("it can be read");
                (file.file_name().to_string_lossy().into_owned(), bytes)
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn the_same_program_makes_the_same_bytes() {
        let first = made(&contents());
        let mut other = contents();
        other.files.reverse();
        assert!(made(&other) == first, "the packages differ");
        let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "Containerfile",
                "SHA256SUMS",
                "install.sh",
                "stafette-1.2.3-py3-none-manylinux_2_34_x86_64.whl",
                "stafette-1.2.3-x86_64-unknown-linux-gnu.cdx.json",
                "stafette-1.2.3-x86_64-unknown-linux-gnu.tar.gz",
                "stafette-1.2.3.tgz",
                "stafette-linux-x64-1.2.3.tgz",
                "stafette.rb",
                "stafette_1.2.3_amd64.deb",
            ]
        );
        let text = |name: &str| {
            let found = first.iter().find(|(file, _)| file == name).expect("it was made");
            String::from_utf8_lossy(&found.1).into_owned()
        };
        for name in ["install.sh", "Containerfile", "stafette.rb"] {
            let text = text(name);
            assert!(text.contains("1.2.3") && !text.contains("@VERSION"), "{name}:\n{text}");
        }
        let sums = text("SHA256SUMS");
        let archive = "  stafette-1.2.3-x86_64-unknown-linux-gnu.tar.gz";
        let line = sums.lines().find(|line| line.ends_with(archive)).expect("it is listed");
        assert!(text("install.sh").contains(&format!("archives='\n{line}\n'")), "{line}");
        assert!(text("stafette.rb").contains(&line[..64]), "{}", text("stafette.rb"));
    }

    #[test]
    fn options_are_read() {
        let options = Options::read(&["--binary", "a", "--out", "b", "--try"]);
        let expected = Options {
            binary: Some("a".into()),
            out: Some("b".into()),
            try_them: true,
            ..Options::default()
        };
        assert_eq!(options, Ok(expected));
        assert!(Options::read(&["--out"]).is_err());
        assert!(Options::read(&["--binry", "a"]).is_err());
    }
}
