use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn world() -> (tempfile::TempDir, Folder) {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("work/src")).unwrap();
    fs::write(home.path().join("work/src/a.txt"), "one\ntwo\nthree\n").unwrap();
    fs::write(home.path().join("secret"), "key").unwrap();
    let folder = Folder::at(&home.path().join("work")).unwrap();
    (home, folder)
}

#[test]
fn b_08_a_file_is_read_whole_or_by_lines() {
    let (_home, folder) = world();
    let path = folder.path().join("src/a.txt");
    assert_eq!(folder.read(&path, None, None).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(folder.read(&path, Some(2), Some(1)).unwrap(), "two\n");
    assert_eq!(folder.read(Path::new("./src/a.txt"), Some(3), None).unwrap(), "three\n");
    assert_eq!(folder.read(&path, Some(9), None).unwrap(), "");
}

#[test]
fn b_08_nothing_outside_of_the_folder_is_read_or_written() {
    let (home, folder) = world();
    let outside = home.path().join("secret");
    symlink(&outside, folder.path().join("link")).unwrap();
    symlink(home.path(), folder.path().join("way")).unwrap();
    symlink("src", folder.path().join("near")).unwrap();
    let sibling = home.path().join("work-too");
    for path in [
        outside.as_path(),
        Path::new("/etc/passwd"),
        Path::new("../secret"),
        Path::new("src/../../secret"),
        Path::new("link"),
        Path::new("way/secret"),
        // Inside, but a link is not followed to find out.
        Path::new("near/a.txt"),
        &folder.path().join("../secret"),
        &sibling,
        Path::new(""),
        Path::new("src"),
    ] {
        assert!(folder.read(path, None, None).is_err(), "{}", path.display());
        assert!(folder.write(path, "x").is_err(), "{}", path.display());
    }
    assert!(folder.read(Path::new("link"), None, None).unwrap_err().contains("is a link"));
    assert_eq!(fs::read_to_string(outside).unwrap(), "key");
    assert!(folder.subfolder(Path::new("way")).is_err());
    assert!(folder.subfolder(Path::new("src")).unwrap().ends_with("work/src"));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
}

#[test]
fn b_08_what_steers_agents_and_git_is_protected() {
    let (_home, folder) = world();
    fs::create_dir_all(folder.path().join(".git/hooks")).unwrap();
    fs::write(folder.path().join(".git/HEAD"), "ref").unwrap();
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git",
        "sub/.git/hooks/post-checkout",
        ".stafette/store",
        ".claude/settings.json",
        ".CLAUDE/settings.json",
        ".Git/hooks/x",
    ] {
        let refused = folder.write(Path::new(path), "#!/bin/sh\n").unwrap_err();
        assert!(refused.ends_with("is protected"), "{refused}");
    }
    assert_eq!(folder.read(Path::new(".git/HEAD"), None, None).unwrap(), "ref");
    assert!(folder.read(Path::new(".git/hooks/x"), None, None).unwrap_err().contains("protected"));
    assert!(folder.read(Path::new(".stafette/x"), None, None).unwrap_err().contains("protected"));
}

#[test]
fn b_08_a_file_is_written_whole_and_keeps_its_mode() {
    let (_home, folder) = world();
    folder.write(Path::new("deep/er/new.txt"), "new").unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("deep/er/new.txt")).unwrap(), "new");
    let script = folder.path().join("src/a.txt");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    folder.write(&script, "changed").unwrap();
    assert_eq!(fs::read_to_string(&script).unwrap(), "changed");
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(fs::read_dir(folder.path().join("src")).unwrap().count(), 1);
}

#[test]
fn b_08_files_have_limits_and_are_text() {
    let (_home, folder) = world();
    fs::write(folder.path().join("big"), vec![b'x'; FILE as usize + 1]).unwrap();
    fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.path().join("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let refused = |path: &str| folder.read(Path::new(path), None, None).unwrap_err();
    assert!(refused("big").ends_with("is larger than 2 MiB"));
    assert!(refused("binary").ends_with("is not text"));
    assert!(refused("pipe").ends_with("is not a file"));
    assert!(refused("gone").contains("cannot be read"));
    assert!(refused(&"a/".repeat(80)).ends_with("is too deep"));
    let long = "x".repeat(FILE as usize + 1);
    assert!(folder.write(Path::new("big"), &long).is_err());
}

#[test]
fn b_08_nothing_is_written_for_an_agent_that_its_sandbox_pins() {
    let (_home, folder) = world();
    let pinned = ["scripts/run.sh", ".vscode", "src/a.txt"].map(|name| folder.path().join(name));
    let folder = folder.pinning(&pinned);
    for path in ["scripts/run.sh", ".vscode/tasks.json", "src/a.txt", "./src/a.txt"] {
        let said = folder.write(Path::new(path), "evil").unwrap_err();
        assert!(said.contains("is protected"), "{said}");
    }
    assert_eq!(folder.read(Path::new("src/a.txt"), Some(1), Some(1)).unwrap(), "one\n");
    folder.write(Path::new("src/b.txt"), "fine").unwrap();
    folder.write(Path::new("scripts/other.sh"), "fine").unwrap();
}
