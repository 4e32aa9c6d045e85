//! A project with files of all kinds, and what it looks like.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use stafette_core::change::{Action, Author, Change, ChangeRules, FileEdit, Proposal};
use stafette_workspace::changes::Report;
use stafette_workspace::{ChangeError, Changes};
use tempfile::TempDir;

/// A project in memory where there is room for that: a thousand syncs of a disk take long.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) project: PathBuf,
}

/// All files and folders of a project that are not ours: their mode and content.
pub(crate) type Tree = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

impl World {
    pub(crate) fn new() -> World {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        World::at(&place)
    }

    /// A project in a folder of some file system.
    pub(crate) fn at(place: &Path) -> World {
        let folder = tempfile::tempdir_in(place).expect("a folder");
        let project = folder.path().join("my prøject");
        fs::create_dir_all(project.join(".stafette")).expect("a folder");
        let world = World { folder, project };
        world.write("a.txt", "one\ntwo\nthree\n");
        world.write("bin/run.sh", "#!/bin/sh\necho one\n");
        let executable = fs::Permissions::from_mode(0o750);
        fs::set_permissions(world.path("bin/run.sh"), executable).expect("set");
        world.write("old.txt", "goes\n");
        world.write("was/here.txt", "moves\n");
        world.write("keep.txt", "stays\n");
        world.write("linked.txt", "shared\n");
        fs::hard_link(world.path("linked.txt"), world.path("other-name.txt")).expect("linked");
        world
    }

    /// The same with a repository in which everything is committed.
    pub(crate) fn with_git() -> World {
        let world = World::new();
        world.write(".gitignore", ".stafette\nbuild\n");
        world.git(&["init", "-q", "-b", "main"]);
        world.git(&["config", "user.name", "Mia"]);
        world.git(&["config", "user.email", "mia@example.org"]);
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", "first"]);
        world
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git").args(arguments).current_dir(&self.project).output();
        let output = output.expect("git");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.project.join(file)
    }

    pub(crate) fn write(&self, file: &str, content: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect(file)
    }

    pub(crate) fn changes(&self) -> Changes {
        Changes::open(&self.project, &self.project.join(".stafette")).expect("opened")
    }

    /// Everything that is not ours or git's.
    pub(crate) fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        look(&self.project, &self.project, &mut tree);
        tree
    }

    /// Which files they are and since when they are as they are: a file that was put back is the
    /// very one.
    pub(crate) fn identities(&self) -> BTreeMap<PathBuf, (u64, i64, i64)> {
        let about = |path: PathBuf| {
            let data = fs::symlink_metadata(self.project.join(&path)).expect("there");
            (path, (data.ino(), data.mtime(), data.mtime_nsec()))
        };
        let files = self.tree().into_iter().filter(|(_, (_, content))| content.is_some());
        files.map(|(path, _)| about(path)).collect()
    }

    /// Nothing of ours lies about.
    pub(crate) fn assert_tidy(&self) {
        let home = self.path(".stafette/changes");
        assert!(!home.join("journal.json").exists(), "no journal is left");
        let staged = fs::read_dir(home.join("stage")).expect("read").count();
        assert_eq!(staged, 0, "nothing is left in the stage");
    }

    /// Applies all sets that wait for no person, in the order of their proposal.
    pub(crate) async fn land_all(&self, rules: &ChangeRules) -> Result<Report, ChangeError> {
        let open: Vec<_> = self.changes().open_sets()?.iter().map(|change| change.id).collect();
        self.changes().land(&open, rules).await
    }

    pub(crate) async fn propose(&self, edits: Vec<FileEdit>) -> Result<Change, ChangeError> {
        self.propose_under(edits, &rules()).await
    }

    pub(crate) async fn propose_under(
        &self,
        edits: Vec<FileEdit>,
        rules: &ChangeRules,
    ) -> Result<Change, ChangeError> {
        let author = Author { person: "mia".to_owned(), ..Author::default() };
        let reason = "a reason".to_owned();
        let proposal = Proposal { changes: edits, author, reason, ..Proposal::default() };
        self.changes().propose(proposal, rules).await
    }

    /// A set that does everything a set can, with a person's yes.
    pub(crate) async fn propose_everything(&self) -> Change {
        let edits = vec![
            edit(Action::Modify, "a.txt", Some("one\n2\nthree\n")),
            edit(Action::Modify, "bin/run.sh", Some("#!/bin/sh\necho two\n")),
            edit(Action::Modify, "linked.txt", Some("alone\n")),
            edit(Action::Delete, "old.txt", None),
            edit(Action::Create, "new/folder/file.txt", Some("new\n")),
            FileEdit {
                from: Some("was/here.txt".to_owned()),
                ..edit(Action::Rename, "now/deep/there.txt", None)
            },
        ];
        let change = self.propose(edits).await.expect("proposed");
        self.changes().approve(change.id, "mia").await.expect("approved")
    }
}

fn look(root: &Path, folder: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(folder).expect("read") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("within").to_owned();
        if name == Path::new(".stafette") || name == Path::new(".git") {
            continue;
        }
        let data = fs::symlink_metadata(&path).expect("there");
        let content = data.is_file().then(|| fs::read(&path).expect("read"));
        tree.insert(name, (data.mode(), content));
        if data.is_dir() {
            look(root, &path, tree);
        }
    }
}

pub(crate) fn edit(action: Action, file: &str, content: Option<&str>) -> FileEdit {
    FileEdit {
        file: file.to_owned(),
        action,
        from: None,
        base: None,
        content: content.map(str::to_owned),
        executable: None,
    }
}

/// Rules that ask for nothing.
pub(crate) fn rules() -> ChangeRules {
    ChangeRules { commit: false, ..ChangeRules::default() }
}

/// Rules with a command that is run by a shell.
pub(crate) fn validated(script: &str) -> ChangeRules {
    let command = ["sh", "-c", script].map(str::to_owned);
    ChangeRules { validate: command.to_vec(), ..rules() }
}
