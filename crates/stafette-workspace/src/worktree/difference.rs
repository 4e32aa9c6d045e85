//! The difference between a worktree and its starting point, as edits of a change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use stafette_core::change::{Action, LARGEST_FILE};

use super::{Base, Worktree, WorktreeError, Worktrees, plain};
use crate::changes::{Draft, LeftOut};
use crate::git::GitError;

/// The refs that keep the starting points of worktrees.
const BASES: &str = "refs/stafette/bases";

/// One line of git's comparison of two trees.
#[derive(Debug)]
pub(super) struct Line {
    action: Action,
    pub(super) file: PathBuf,
    from: Option<PathBuf>,
    old: String,
    pub(super) new: String,
    pub(super) modes: (String, String),
}

impl Worktrees {
    fn base_name(worktree: &Worktree) -> String {
        format!("{BASES}/{}/{}", worktree.run, plain(&worktree.agent))
    }

    /// Stores the starting point of a new worktree: the state of the project, for all who work on
    /// it in turn.
    pub(super) async fn keep_base(
        &self,
        worktree: &Worktree,
        base: &Base,
        head: &str,
        tree: Option<&str>,
    ) -> Result<(), WorktreeError> {
        let began = match (base, tree) {
            (Base::Of(giver), _) => match self.base(giver).await? {
                Some(began) => began,
                None => return Ok(()),
            },
            (_, Some(tree)) => {
                let words = ["commit-tree", tree, "-p", head, "-m", "What the work began with"];
                self.shared.git(words).in_our_name().text().await?
            }
            (_, None) => head.to_owned(),
        };
        self.set_base(worktree, &began).await
    }

    pub(super) async fn set_base(
        &self,
        worktree: &Worktree,
        commit: &str,
    ) -> Result<(), WorktreeError> {
        let words = ["update-ref", &Self::base_name(worktree), commit];
        Ok(self.shared.git(words).run().await?)
    }

    /// Copies the starting point to the taker, who continues the giver's work.
    pub(super) async fn pass_base(
        &self,
        from: &Worktree,
        to: &Worktree,
    ) -> Result<(), WorktreeError> {
        match self.base(from).await? {
            Some(base) => self.set_base(to, &base).await,
            None => Ok(()),
        }
    }

    pub(super) async fn forget_base(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        Ok(self.shared.git(["update-ref", "-d", &Self::base_name(worktree)]).run().await?)
    }

    pub(super) async fn base(&self, worktree: &Worktree) -> Result<Option<String>, GitError> {
        let name = format!("{}^{{commit}}", Self::base_name(worktree));
        self.shared.git(["rev-parse", "--quiet", "--verify", &name]).answer().await
    }

    /// True if a worktree differs from its starting point. Its agent must be idle.
    pub async fn is_edited(&self, worktree: &Worktree) -> Result<bool, WorktreeError> {
        let _turn = self.turn.lock().await;
        self.regain(worktree).await?;
        let Some(base) = self.base(worktree).await? else { return Ok(false) };
        let base = self.shared.git(["rev-parse", "--verify", &format!("{base}^{{tree}}")]);
        Ok(base.text().await? != self.content(&worktree.place).await?.tree)
    }

    /// Returns the difference between a worktree and its starting point, committed or not: as edits,
    /// and what cannot be an edit. Its agent must be idle.
    pub async fn difference(
        &self,
        worktree: &Worktree,
    ) -> Result<(Vec<Draft>, Vec<LeftOut>), WorktreeError> {
        let _turn = self.turn.lock().await;
        self.regain(worktree).await?;
        let base = match self.base(worktree).await? {
            Some(base) => base,
            // It is older than the ref for its starting point.
            None => {
                let ours = self.head(&self.project).await?.unwrap_or_default();
                let theirs = self.head(&worktree.place).await?.unwrap_or_default();
                self.shared.git(["merge-base", &ours, &theirs]).text().await?
            }
        };
        let tree = self.content(&worktree.place).await?.tree;
        self.drafts(&base, &tree).await
    }

    /// Returns the difference between two trees as edits, and what cannot be one.
    pub(super) async fn drafts(
        &self,
        base: &str,
        tree: &str,
    ) -> Result<(Vec<Draft>, Vec<LeftOut>), WorktreeError> {
        let words = ["diff-tree", "-r", "-z", "-M", "--raw", "--no-commit-id", base, tree];
        let lines = read(&self.shared.git(words).bytes().await?);
        let large = self.large(&lines).await?;
        let flaw =
            |line: &Line| match [&line.old, &line.new].into_iter().any(|it| large.contains(it)) {
                true => Some("it is larger than the 16 MiB that a change may hold"),
                false => self.flaw(line),
            };
        let (mut plain, mut left) = (Vec::new(), Vec::new());
        for line in lines {
            match flaw(&line) {
                None => plain.push(line),
                Some(why) => {
                    left.push(LeftOut { file: self.name(&line.file), why: why.to_owned() });
                }
            }
        }
        let objects = plain.iter().flat_map(|line| [&line.old, &line.new]);
        let contents = self.contents(objects.map(String::as_str)).await?;
        let drafts = plain.into_iter().map(|line| Draft {
            file: self.name(&line.file),
            action: line.action,
            from: line.from.as_deref().map(|from| self.name(from)),
            base: None,
            base_content: contents.get(&line.old).cloned(),
            content: contents.get(&line.new).cloned(),
            executable: (line.action != Action::Delete).then(|| line.modes.1 == "100755"),
        });
        Ok((drafts.collect(), left))
    }

    /// Returns the name of a file from the folder of the project.
    fn name(&self, path: &Path) -> String {
        let inner = path.strip_prefix(&self.prefix).map(Path::to_owned);
        let up = || self.prefix.components().map(|_| "..").collect::<PathBuf>().join(path);
        inner.unwrap_or_else(|_| up()).to_string_lossy().into_owned()
    }

    /// Returns the reason why a line is not about files in the project whose names are text.
    fn flaw(&self, line: &Line) -> Option<&'static str> {
        let (old, new) = (line.modes.0.as_str(), line.modes.1.as_str());
        let mut paths = line.from.iter().chain([&line.file]);
        match () {
            () if old == "120000" || new == "120000" => Some("it is a link"),
            () if old == "160000" || new == "160000" => Some("it is a git repository of its own"),
            () if paths.clone().any(|path| path.to_str().is_none()) => Some("its name is no text"),
            () if paths.any(|path| !path.starts_with(&self.prefix)) => {
                Some("it is outside of the project")
            }
            () => None,
        }
    }

    /// Returns the objects that are larger than a change may hold.
    async fn large(&self, lines: &[Line]) -> Result<BTreeSet<String>, WorktreeError> {
        let is_file = |(mode, object): (&String, &String)| {
            mode.starts_with("100").then(|| format!("{object}\n"))
        };
        let objects = lines
            .iter()
            .flat_map(|line| [(&line.modes.0, &line.old), (&line.modes.1, &line.new)])
            .filter_map(is_file);
        let list: String = objects.collect();
        if list.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ask = ["cat-file", "--batch-check=%(objectname) %(objectsize)"];
        let said = self.shared.git(ask).input(list).text().await?;
        let is_large = |size: &str| size.parse::<usize>().is_ok_and(|size| size > LARGEST_FILE);
        let sizes = said.lines().filter_map(|line| line.split_once(' '));
        Ok(sizes.filter(|(_, size)| is_large(size)).map(|(name, _)| name.to_owned()).collect())
    }

    async fn contents(
        &self,
        objects: impl Iterator<Item = &str>,
    ) -> Result<BTreeMap<String, Vec<u8>>, WorktreeError> {
        let wanted: Vec<&str> =
            objects.filter(|object| object.bytes().any(|byte| byte != b'0')).collect();
        let list = wanted.join("\n") + "\n";
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut bytes = &self.shared.git(["cat-file", "--batch"]).input(list).bytes().await?[..];
        let mut contents = BTreeMap::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let mut words = head.split(' ');
            let object = words.next().unwrap_or_default().to_owned();
            let Some(size) = words.nth(1).and_then(|size| size.parse::<usize>().ok()) else {
                bytes = &bytes[end + 1..];
                continue;
            };
            let Some(content) = bytes.get(end + 1..end + 1 + size) else { break };
            contents.insert(object, content.to_vec());
            bytes = bytes.get(end + 2 + size..).unwrap_or_default();
        }
        Ok(contents)
    }
}

/// Parses the output of `git diff-tree --raw -z`.
pub(super) fn read(bytes: &[u8]) -> Vec<Line> {
    use std::os::unix::ffi::OsStringExt;
    let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()));
    let mut parts = bytes.split(|byte| *byte == 0);
    let mut lines = Vec::new();
    while let Some(head) = parts.next().filter(|head| !head.is_empty()) {
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, letter] = words[..] else { break };
        let Some(first) = parts.next().map(path) else { break };
        let (action, from, file) = match letter.chars().next() {
            Some('A') => (Action::Create, None, first),
            Some('D') => (Action::Delete, None, first),
            Some('R') => match parts.next().map(path) {
                Some(file) => (Action::Rename, Some(first), file),
                None => break,
            },
            _ => (Action::Modify, None, first),
        };
        let modes = (old_mode.to_owned(), new_mode.to_owned());
        lines.push(Line { action, file, from, old: old.to_owned(), new: new.to_owned(), modes });
    }
    lines
}
