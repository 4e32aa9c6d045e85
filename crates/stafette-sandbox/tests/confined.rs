//! Real processes in a real sandbox. What the system at hand does not offer must be reported.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use stafette_sandbox::{
    Enforced, Mode, Network, Offer, Places, Policy, Prepared, Report, find_bubblewrap, prepare,
};
use stafette_testkit::tools;
use tempfile::TempDir;

#[path = "machine/parts.rs"]
mod parts;

use parts::{all_hold, holds, offers, skipped};

/// What an agent must not change in its folder.
const PINNED: [&str; 6] =
    [".claude", ".codex", ".stafette", "stafette.toml", "scripts/deep/run.sh", ".github/workflows"];

/// A home with keys, a repository with hooks, and a worktree beside it.
struct World {
    folder: TempDir,
    home: PathBuf,
    tree: PathBuf,
    common: PathBuf,
    policy: Policy,
    bubblewrap: Option<PathBuf>,
}

impl World {
    /// One without bubblewrap, and one with it where the system lets it make namespaces.
    fn both() -> Vec<World> {
        tools::debian("bwrap", "bubblewrap").expect("bubblewrap");
        let bubblewrap = find_bubblewrap();
        if bubblewrap.is_none() {
            assert!(!offers("mounts"), "bubblewrap works where namespaces do");
            skipped("bubblewrap does not work on this system and is left out");
        }
        let with = bubblewrap.map(|program| World::new(Some(program)));
        std::iter::once(World::new(None)).chain(with).collect()
    }

    fn new(bubblewrap: Option<PathBuf>) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        for path in [
            "home/.ssh",
            "home/.cargo/bin",
            "home/.agent",
            "repo/.git/hooks",
            "repo/.git/objects",
            "repo/.git/worktrees/x",
            "repo/.git/refs/heads/stafette/1",
            "tree/.claude",
            "tree/src",
            "scratch",
        ] {
            fs::create_dir_all(at(path)).expect("folders");
        }
        for path in [
            "home/.ssh/id_ed25519",
            "home/.cargo/credentials.toml",
            "home/.cargo/config.toml",
            "home/diary.txt",
            "repo/.git/config",
            "repo/.git/hooks/pre-commit",
            "repo/stafette.toml",
            "tree/.claude/settings.json",
            "tree/stafette.toml",
        ] {
            fs::write(at(path), "old").expect("written");
        }
        fs::write(at("tree/.git"), format!("gitdir: {}", at("repo/.git/worktrees/x").display()))
            .expect("written");
        let policy = Policy::for_agent(&Places {
            home: at("home"),
            worktree: at("tree"),
            git_own: Some(at("repo/.git/worktrees/x")),
            git_common: Some(at("repo/.git")),
            branch: Some("stafette/1/builder".into()),
            temp: at("temp"),
            state: vec![at("home/.agent")],
            pinned: PINNED.map(|name| at("tree").join(name)).to_vec(),
            ..Places::default()
        });
        let (home, tree, common) = (at("home"), at("tree"), at("repo/.git"));
        World { home, tree, common, policy, folder, bubblewrap }
    }

    fn prepare(&self, mode: Mode) -> Prepared {
        let launcher = [OsString::from(env!("CARGO_BIN_EXE_stafette-sandboxed"))];
        let scratch = self.folder.path().join("scratch");
        prepare(mode, &self.policy, &launcher, &scratch, &self.tree, self.bubblewrap.as_deref())
            .expect("prepared")
            .expect("not off")
    }

    /// Runs a shell script in the sandbox, and gives what came of it and what was enforced.
    fn run(&self, mode: Mode, script: &str) -> (Output, Report) {
        let prepared = self.prepare(mode);
        let (program, arguments) = prepared.prefix.split_first().expect("a launcher");
        let mut command = Command::new(program);
        command.args(arguments).args(["sh", "-c", script]).current_dir(&self.tree);
        command.env("HOME", &self.home).env("COMMON", &self.common);
        command.envs(prepared.variables.iter().map(|(name, value)| (name, value)));
        let output = command.output().expect("the launcher");
        let report = prepared.report().unwrap_or_else(|| panic!("no report: {output:?}"));
        (output, report)
    }

    /// Whether a script succeeds.
    fn can(&self, script: &str) -> bool {
        let (output, _) = self.run(Mode::Auto, script);
        output.status.success()
    }
}

#[test]
fn b_08_a_program_that_is_a_link_in_a_granted_folder_is_there() {
    for mut world in World::both() {
        let at = |path: &str| world.folder.path().join(path);
        // Links point where nothing is granted yet: `z` comes after `bin`.
        fs::create_dir_all(at("bin")).expect("a folder");
        fs::create_dir_all(at("z/package")).expect("a folder");
        fs::write(at("z/package/agent"), "hello").expect("written");
        std::os::unix::fs::symlink(at("z/package/agent"), at("bin/agent")).expect("a link");
        let (link, real) = (at("bin/agent"), at("z/package/agent"));
        world.policy.read.extend([at("bin"), link.clone(), at("z/package"), real]);
        assert!(world.can(&format!("grep -q hello {}", link.display())), "{:?}", world.bubblewrap);
    }
}

#[test]
fn b_08_a_sandboxed_agent_does_its_work() {
    for world in World::both() {
        for script in [
            "echo new > src/new.txt && cat src/new.txt && mkdir -p target/x && rm -r target",
            "echo top > top.txt && mv top.txt src/moved.txt && ln -s src/moved.txt link",
            "echo x > $TMPDIR/file && cat $TMPDIR/file > /dev/null",
            "cat $HOME/.cargo/config.toml && ls $HOME/.cargo/bin",
            "echo x > $HOME/.agent/session",
            "echo x > $COMMON/refs/heads/stafette/1/builder.lock && echo x > $COMMON/objects/x",
            "cat $COMMON/config && cat stafette.toml .claude/settings.json",
            "ls / > /dev/null; cat /etc/passwd /proc/self/status > /dev/null",
        ] {
            let (output, report) = world.run(Mode::Auto, script);
            assert!(output.status.success(), "{script}: {output:?}\n{report}");
        }
    }
}

#[test]
fn b_08_a_sandboxed_agent_commits_to_its_branch_and_to_no_other() {
    for mut world in World::both() {
        let repo = world.folder.path().join("project");
        let tree = world.folder.path().join("worktree");
        let git = |arguments: &[&str]| git(&repo, arguments);
        fs::create_dir(&repo).expect("a folder");
        git(&["init", "-q", "-b", "main"]);
        git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        let path = tree.to_str().expect("text");
        git(&["worktree", "add", "-q", "-b", "stafette/1/builder", path]);
        fs::write(
            world.home.join(".gitconfig"),
            "[user]\nname = Agent\nemail = agent@example.org\n",
        )
        .expect("written");
        world.policy = Policy::for_agent(&Places {
            home: world.home.clone(),
            worktree: tree.clone(),
            git_own: Some(repo.join(".git/worktrees/worktree")),
            git_common: Some(repo.join(".git")),
            branch: Some("stafette/1/builder".into()),
            temp: world.folder.path().join("temp"),
            ..Places::default()
        });
        world.tree = tree;
        let script = "echo x > x && git add . && git commit -q -m work && git status --short";
        let (output, report) = world.run(Mode::Auto, script);
        assert!(output.status.success(), "{output:?}\n{report}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "all is committed");
        assert_eq!(git(&["log", "--format=%s %an", "-1", "stafette/1/builder"]), "work Agent\n");
        let main = git(&["rev-parse", "main"]);
        if holds(&report, "files") {
            assert!(!world.can("git branch -f main HEAD"));
            assert!(!world.can("git config core.fsmonitor evil"));
        }
        if holds(&report, "mounts") {
            for file in ["commondir", "gitdir", "config.worktree"] {
                let own = repo.join(".git/worktrees/worktree");
                assert!(!world.can(&format!("echo /evil > {}/{file}", own.display())), "{file}");
                assert!(!world.can(&format!("rm {}/{file}", own.display())), "{file}");
            }
        }
        assert_eq!(git(&["rev-parse", "main"]), main);
    }
}

#[test]
fn b_08_a_sandboxed_agent_with_objects_of_its_own_does_not_reach_the_shared_ones() {
    for mut world in World::both() {
        let repo = world.folder.path().join("project");
        let tree = world.folder.path().join("worktree");
        fs::create_dir(&repo).expect("a folder");
        fs::write(repo.join("a.txt"), "one\n").expect("written");
        git(&repo, &["init", "-q", "-b", "main"]);
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "first"]);
        let path = tree.to_str().expect("text");
        git(&repo, &["worktree", "add", "-q", "-b", "stafette/1/builder", path]);
        let own = repo.join(".git/worktrees/worktree");
        let lent = own.join("lent");
        for folder in ["objects/info", "shared", "heads", "logs"] {
            fs::create_dir_all(lent.join(folder)).expect("folders");
        }
        fs::write(
            lent.join("objects/info/alternates"),
            format!("{}\n", lent.join("shared").display()),
        )
        .expect("written");
        let before = git(&repo, &["rev-parse", "main"]);
        fs::write(lent.join("heads/builder"), &before).expect("written");
        world.policy = Policy::for_agent(&Places {
            home: world.home.clone(),
            worktree: tree.clone(),
            git_own: Some(own),
            git_common: Some(repo.join(".git")),
            branch: Some("stafette/1/builder".into()),
            lent: Some(lent.clone()),
            temp: world.folder.path().join("temp"),
            ..Places::default()
        });
        (world.tree, world.common) = (tree, repo.join(".git"));
        let (_, report) = world.run(Mode::Auto, "true");
        if !holds(&report, "mounts") {
            assert!(report.to_string().contains("mounts: not enforced"), "{report}");
            continue;
        }
        let count = |repo: &std::path::Path| git(repo, &["count-objects"]);
        let objects = count(&repo);
        let script = "echo x > x && git add . && \
                      git -c user.name=a -c user.email=a@b commit -q -m work && \
                      git status --short && git log --format=%s && git show main:a.txt";
        let (output, report) = world.run(Mode::Auto, script);
        assert!(output.status.success(), "{output:?}\n{report}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "work\nfirst\none\n");
        world.can("rm -rf $COMMON/objects/* $COMMON/worktrees/worktree/lent/shared/*");
        assert_eq!(count(&repo), objects, "nothing is there that was not, and nothing is gone");
        assert_eq!(git(&repo, &["rev-parse", "stafette/1/builder"]), before);
        assert_eq!(git(&repo, &["log", "--all", "--format=%s"]), "first\n");
        git(&repo, &["fsck", "--strict", "--no-reflogs"]);
    }
}

#[test]
fn b_08_keys_hooks_and_settings_are_out_of_reach_for_the_agent_and_its_children() {
    for world in World::both() {
        let (_, report) = world.run(Mode::Auto, "true");
        let denied_by_files = [
            "cat $HOME/.ssh/id_ed25519",
            "ls $HOME/.ssh",
            "grep old $HOME/.cargo/credentials.toml",
            "cat $HOME/diary.txt",
            "ls $HOME",
            "echo evil > $COMMON/hooks/pre-commit",
            "echo evil > $COMMON/hooks/post-commit",
            "echo evil >> $COMMON/config",
            "rm $COMMON/hooks/pre-commit",
            "mv $COMMON/hooks $COMMON/other",
            "echo evil > $COMMON/../stafette.toml",
            "echo evil > $COMMON/refs/heads/main",
            "ln -s $HOME/.ssh link && cat link/id_ed25519",
            "ln $HOME/.ssh/id_ed25519 hard",
            "grep . /etc/shadow",
        ];
        let denied_by_mounts = [
            "echo evil > .claude/settings.json",
            "echo evil > .claude/new.json",
            "rm -r .claude || mv .claude other",
            "mkdir -p .stafette/x",
            "echo evil > stafette.toml",
            "echo gitdir: /elsewhere > .git",
        ];
        for (part, scripts) in [("files", &denied_by_files[..]), ("mounts", &denied_by_mounts[..])]
        {
            if !holds(&report, part) {
                // Then it must be said; the report is what is shown to the user.
                assert!(report.to_string().contains(&format!("{part}: not enforced")), "{report}");
                continue;
            }
            for script in scripts {
                assert!(!world.can(script), "{script}");
                let grandchild = format!("sh -c 'sh -c \"{script}\"'");
                assert!(!world.can(&grandchild), "{grandchild}");
            }
        }
        assert_eq!(
            fs::read_to_string(world.common.join("hooks/pre-commit")).expect("there"),
            "old"
        );
        assert_eq!(fs::read_to_string(world.common.join("config")).expect("there"), "old");
    }
}

/// Runs git for the person whose project it is.
fn git(folder: &std::path::Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Mia", "-c", "user.email=mia@example.org"]);
    let output = command.args(arguments).current_dir(folder).output().expect("git");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn b_08_what_is_pinned_cannot_be_moved_away_with_the_folders_around_it() {
    for mut world in World::both() {
        let project = world.folder.path().join("project");
        for file in ["scripts/deep/run.sh", ".github/workflows/ci.yml", ".github/other", "a.txt"] {
            let file = project.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            fs::write(file, "old").expect("written");
        }
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &["add", "."]);
        git(&project, &["commit", "-q", "-m", "first"]);
        let config = fs::read_to_string(project.join(".git/config")).expect("settings");
        world.policy = Policy::for_agent(&Places {
            home: world.home.clone(),
            worktree: project.clone(),
            temp: world.folder.path().join("temp"),
            pinned: PINNED.map(|name| project.join(name)).to_vec(),
            ..Places::default()
        });
        world.tree = project.clone();
        let (_, report) = world.run(Mode::Auto, "true");
        if !holds(&report, "mounts") {
            assert!(report.to_string().contains("mounts: not enforced"), "{report}");
            continue;
        }
        // What is around it can be worked on.
        let name = "git -c user.name=a -c user.email=a@b";
        let work = format!(
            "echo x > scripts/deep/new && mv scripts/deep/new scripts/other && rm .github/other && \
             echo y > a.txt && git add . && {name} commit -q -m work"
        );
        let (output, report) = world.run(Mode::Auto, &work);
        assert!(output.status.success(), "{output:?}\n{report}");
        assert_eq!(git(&project, &["log", "--format=%s"]), "work\nfirst\n");

        for script in [
            "mv .git g2",
            "cp -r .git g2 && rm -rf .git && mv g2 .git",
            "perl -e 'rename(q(.git), q(g3)) or exit 1'",
            "echo evil >> .git/config",
            "mv .git/config .git/old",
            "echo evil > .git/new && mv .git/new .git/config",
            "echo evil > .git/config.worktree",
            "echo '* filter=x' > .git/info/attributes",
            "mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
            "mv scripts s2",
            "mv scripts/deep scripts/d2",
            "rm -rf scripts && test ! -e scripts",
            "echo evil > scripts/deep/run.sh",
            "ln -sfn /tmp scripts/deep/run.sh",
            "mv .github g4",
            "echo evil > .github/workflows/new.yml",
            "mkdir .claude/x",
        ] {
            assert!(!world.can(script), "{script}");
        }
        for (file, text) in [
            (".git/config", config.as_str()),
            ("scripts/deep/run.sh", "old"),
            (".github/workflows/ci.yml", "old"),
        ] {
            assert_eq!(fs::read_to_string(project.join(file)).expect(file), text);
        }
        // Where there is no repository, none with settings of its own is made.
        fs::remove_dir_all(project.join(".git")).expect("removed");
        world.policy.pinned = vec![project.join(".git")];
        assert!(!world.can("git init -q"));
        assert!(!world.can("mkdir -p .git/x"));
        // What a link leads to can be replaced with the link, and that is said.
        fs::rename(project.join("scripts"), project.join("real")).expect("renamed");
        std::os::unix::fs::symlink("real", project.join("scripts")).expect("a link");
        world.policy.pinned = vec![project.join("scripts/deep/run.sh")];
        let (_, report) = world.run(Mode::Auto, "true");
        assert!(report.mounts.to_string().contains("scripts/deep/run.sh"), "{report}");
    }
}

#[test]
fn b_21_git_works_in_the_sandbox_and_shows_no_password_of_its_settings() {
    for mut world in World::both() {
        // A repository that the agent works in, and the one of a worktree.
        let own = world.folder.path().join("own");
        git(world.folder.path(), &["init", "-q", "own"]);
        for folder in [&own, &world.common.with_file_name("")] {
            if !folder.join(".git/HEAD").exists() {
                fs::remove_file(world.common.join("config")).expect("removed");
                git(folder, &["init", "-q"]);
            }
            git(folder, &["remote", "add", "origin", "https://ada:geheim@example.org/x"]);
            git(folder, &["config", "http.extraHeader", "Authorization: basic geheim"]);
        }
        world.policy.write.push(own.clone());
        world.policy.pinned.push(own.join(".git/config"));
        for (number, git) in [own.join(".git"), world.common.clone()].iter().enumerate() {
            let copies = world.folder.path().join(format!("scratch/git-{number}"));
            world.policy.withhold(git, &copies).expect("written");
        }
        let (output, report) = world.run(
            Mode::Auto,
            &format!(
                "cat '{own}/.git/config' \"$COMMON/config\"; \
                 git -C '{own}' config remote.origin.url; \
                 git --git-dir \"$COMMON\" config remote.origin.url; \
                 git -C '{own}' config a.b c || echo refused",
                own = own.display()
            ),
        );
        let said = String::from_utf8_lossy(&output.stdout);
        if !offers("mounts") {
            skipped("without a view of the file system, settings are as they are");
            continue;
        }
        assert!(!said.contains("geheim"), "{said}");
        assert_eq!(said.lines().filter(|it| *it == "https://example.org/x").count(), 2, "{said}");
        assert!(said.contains("refused"), "{said} {output:?}");
        assert!(!format!("{report:?}").contains("these can be changed"), "{report:?}");
        let kept = fs::read_to_string(own.join(".git/config")).expect("there");
        assert!(kept.contains("geheim"), "a person's own are as they were");
    }
}

#[test]
fn b_08_calls_that_lead_out_of_the_sandbox_are_denied() {
    for world in World::both() {
        let (_, report) = world.run(Mode::Auto, "true");
        if !holds(&report, "calls") {
            assert!(matches!(report.calls, Enforced::Not(_)), "{report}");
            continue;
        }
        assert_eq!(report.calls, Enforced::Fully);
        let (output, _) = world.run(Mode::Auto, "unshare -Ur true; mount -t tmpfs none src; true");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("not permitted") || said.contains("denied"), "{said}");
        assert!(!world.can("unshare -Ur true"));
        assert!(!world.can("mount -t tmpfs none src"));
        assert!(!world.can("umount .claude"));
        assert!(world.can("perl -e 'socket(S, 2, 1, 0) or exit 1'"), "a socket of the network");
        assert!(!world.can("perl -e 'socket(S, 40, 1, 0) or exit 1'"), "one of the host machine");
        let ring = "perl -e '$b = qq(\\0) x 120; syscall(425, 1, $b); exit($! == 38 ? 0 : 1)'";
        assert!(world.can(ring), "calls that no filter sees are not there");
        assert!(world.can("cp /bin/true own && chmod 755 own && ./own"), "programs of its own");
        for set_id in [
            "chmod u+s own",
            "chmod g+s own",
            "perl -e 'chmod(04755, q(own)) or exit 1'",
            "perl -e 'chmod(02755, q(own)) or exit 1'",
            "perl -e 'use Fcntl; sysopen(F, q(new), O_CREAT | O_WRONLY, 04755) or exit 1'",
            "perl -e 'use Fcntl; sysopen(F, q(new), O_CREAT | O_WRONLY, 02755) or exit 1'",
            // A file without a name, which is given one later.
            "perl -e 'use Fcntl q(:DEFAULT); sysopen(F, q(.), 020000000 | O_DIRECTORY | O_RDWR, 04755) or exit 1'",
            "perl -e 'use Fcntl q(:DEFAULT); sysopen(F, q(.), 020000000 | O_DIRECTORY | O_RDWR, 02755) or exit 1'",
            "perl -e 'use POSIX; POSIX::mkfifo(q(pipe), 02755) or exit 1'",
            "mkdir shared && chmod g+s shared",
            // The second table of calls that some kernels have, which the filter does not know.
            "perl -e 'exit(syscall(0x40000000 + 90, q(own), 04755) == 0 ? 0 : 1)'",
        ] {
            assert!(!world.can(set_id), "a program that runs as its owner or group: {set_id}");
        }
        let nameless = "perl -e 'use Fcntl q(:DEFAULT); sysopen(F, q(.), 020000000 | O_DIRECTORY | O_RDWR, 0755) or exit 1'";
        assert!(world.can(nameless), "a file without a name");
        if holds(&report, "scope") {
            let outside = format!("kill -0 {}", std::process::id());
            assert!(!world.can(&outside), "processes outside cannot be signalled");
        }
        let environment = format!("cat /proc/{}/environ", std::process::id());
        assert!(!world.can(&environment), "nor looked into");
    }
}

#[test]
fn b_08_ports_are_closed_where_the_kernel_can_close_them() {
    for mut world in World::both() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let knock = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        let knock = format!("bash -c '{knock}'");
        assert!(world.can(&knock), "open by default");
        world.policy.network = Network::Ports(vec![1]);
        let (output, report) = world.run(Mode::Auto, &knock);
        if holds(&report, "network") {
            assert_eq!(report.network, Enforced::Fully);
            assert!(!output.status.success());
            world.policy.network = Network::Ports(vec![port]);
            assert!(world.can(&knock));
        } else {
            assert!(matches!(report.network, Enforced::Not(_)), "{report}");
        }
    }
}

#[test]
fn b_08_strict_runs_all_or_nothing() {
    for world in World::both() {
        let (_, auto) = world.run(Mode::Auto, "true");
        let (output, report) = world.run(Mode::Strict, "touch ran");
        assert_eq!(report, auto, "the report does not depend on what it is for");
        all_hold(&report);
        assert_eq!(output.status.success(), report.is_whole(), "{output:?}");
        assert_eq!(world.tree.join("ran").exists(), report.is_whole());
        if !report.is_whole() {
            assert_eq!(output.status.code(), Some(125));
            assert!(String::from_utf8_lossy(&output.stderr).contains("not enforced"), "{output:?}");
        }
    }
}

#[test]
fn b_08_what_cannot_be_enforced_is_said_and_strict_refuses() {
    for world in World::both() {
        fs::create_dir(world.tree.join("real")).expect("a folder");
        fs::remove_dir_all(world.tree.join(".claude")).expect("removed");
        // Somebody has put a link where settings would be: it can be pointed elsewhere.
        std::os::unix::fs::symlink("real", world.tree.join(".claude")).expect("a link");
        let (output, report) = world.run(Mode::Auto, "true");
        assert!(output.status.success(), "{output:?}");
        assert!(!report.mounts.is_whole(), "{report}");
        let (output, report) = world.run(Mode::Strict, "touch ran");
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("mounts: "), "{output:?}");
        assert!(!report.is_whole() && !world.tree.join("ran").exists());
    }
}

#[test]
fn b_08_the_offer_is_what_the_system_itself_says() {
    let offer = Offer::look();
    for (part, found) in [
        ("files", offer.files),
        ("network", offer.network),
        ("scope", offer.scope),
        ("calls", offer.calls),
    ] {
        assert_eq!(found, offers(part), "{part}: {offer:?}");
    }
}

#[test]
fn b_08_a_report_does_not_claim_what_the_system_lacks() {
    for world in World::both() {
        let offer = Offer::look();
        let (_, report) = world.run(Mode::Auto, "true");
        if offer.bubblewrap.is_none() && !offer.files {
            assert!(matches!(report.files, Enforced::Not(_)), "{report}");
        }
        let none = prepare(Mode::Off, &world.policy, &[], world.folder.path(), &world.tree, None);
        assert_eq!(none.expect("nothing to do"), None);
    }
}
