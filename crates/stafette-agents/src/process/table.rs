//! The system's table of processes, where it can be read.

use rustix::process::Pid;

/// The number of times that a line of processes is looked at which changes meanwhile.
#[cfg(target_os = "linux")]
const TRIES: usize = 100;

/// The longest line of processes that is looked at.
#[cfg(target_os = "linux")]
const DEEPEST: usize = 100_000;

/// A line of the process table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg(target_os = "linux")]
struct Entry {
    id: i32,
    /// True for a daemon, of whatever project.
    is_daemon: bool,
    state: u8,
    parent: i32,
    group: i32,
    session: i32,
    /// The ticks that it has worked, with its children that have ended.
    worked: u64,
    started: u64,
}

#[cfg(target_os = "linux")]
impl Entry {
    /// Looks up one process.
    fn of(id: i32) -> Option<Self> {
        // A process may give itself a name that is no text.
        let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
        Entry::read(id, &String::from_utf8_lossy(&stat))
    }

    /// Reads a line of `/proc/ID/stat`.
    fn read(id: i32, stat: &str) -> Option<Self> {
        // The name, in brackets, may itself hold brackets and spaces.
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Entry {
            id,
            is_daemon: name == super::DAEMON,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            worked: fields.get(11..15)?.iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum(),
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// All processes that run.
    fn all() -> impl Iterator<Item = Self> {
        std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(Entry::of)
            .filter(|entry| !matches!(entry.state, b'Z' | b'X'))
    }

    /// True if the process was started with this variable.
    fn carries(id: i32, variable: &str) -> bool {
        std::fs::read(format!("/proc/{id}/environ")).is_ok_and(|environment| {
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        })
    }
}

/// The start time of a process, as a text that no other process shares: the boot and the ticks
/// since.
#[cfg(target_os = "linux")]
pub(super) fn started(id: Pid) -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let entry = Entry::of(id.as_raw_pid())?;
    Some(format!("{} {}", boot.trim(), entry.started))
}

/// True if a process of the group runs: zombies do not count.
#[cfg(target_os = "linux")]
pub(super) fn runs(group: Pid) -> bool {
    Entry::all().any(|entry| entry.group == group.as_raw_pid())
}

/// The ticks that the processes of a group have worked, each with its children that have ended: those
/// in the group or session of its leader, and those that have left both but carry its variable.
#[cfg(target_os = "linux")]
pub(super) fn worked(leader: Pid, counts_leader: bool) -> u64 {
    let leader = leader.as_raw_pid();
    let carried = given(leader, super::GROUP).map(|group| format!("{}={group}", super::GROUP));
    let carries = |id| carried.as_deref().is_some_and(|variable| Entry::carries(id, variable));
    let members = Entry::all().filter(|entry| {
        let is_near = entry.group == leader || entry.session == leader;
        (counts_leader || entry.id != leader) && (is_near || carries(entry.id))
    });
    members.map(|entry| entry.worked).sum()
}

/// Always none: not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn worked(_: Pid, _: bool) -> u64 {
    0
}

/// The groups of a session that have a running process.
#[cfg(target_os = "linux")]
pub(super) fn groups_in_session(leader: Pid) -> Vec<Pid> {
    let session = leader.as_raw_pid();
    let mut groups: Vec<i32> =
        Entry::all().filter(|entry| entry.session == session).map(|entry| entry.group).collect();
    groups.sort_unstable();
    groups.dedup();
    groups.into_iter().filter_map(Pid::from_raw).collect()
}

/// A process and those that started it or took it over, the nearest first. `None` if it has ended,
/// or if those that started it end faster than they can be looked at.
#[cfg(target_os = "linux")]
fn lineage(id: i32) -> Option<Vec<Entry>> {
    (0..TRIES).find_map(|_| climb(id))
}

#[cfg(target_os = "linux")]
fn climb(id: i32) -> Option<Vec<Entry>> {
    let mut line = vec![Entry::of(id)?];
    while let Some(last) = line.last().filter(|last| last.parent > 0) {
        match Entry::of(last.parent) {
            // Another process that has taken the id is younger.
            Some(parent) if parent.started <= last.started && line.len() < DEEPEST => {
                line.push(parent);
            }
            // Some systems show no processes of other users.
            None if is_anothers(last.parent) => break,
            _ => return None,
        }
    }
    Some(line)
}

/// True if a process of another user has this id.
#[cfg(target_os = "linux")]
fn is_anothers(id: i32) -> bool {
    use rustix::process::test_kill_process;
    Pid::from_raw(id).is_some_and(|id| test_kill_process(id) == Err(rustix::io::Errno::PERM))
}

/// True if a process is in the leader's group or session, or descends from it.
#[cfg(target_os = "linux")]
pub(super) fn is_kin(caller: i32, leader: i32) -> bool {
    let is = |entry: &Entry| [entry.id, entry.group, entry.session].contains(&leader);
    lineage(caller).is_some_and(|line| line.iter().any(is))
}

/// A process and those that started it or took it over, the nearest first; empty if that cannot be
/// told.
#[cfg(target_os = "linux")]
pub(super) fn ancestors(id: i32) -> Vec<i32> {
    lineage(id).unwrap_or_default().iter().map(|entry| entry.id).collect()
}

/// Only the process itself: the others are not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn ancestors(id: i32) -> Vec<i32> {
    vec![id]
}

/// True if a daemon started the process or took it over, or if that cannot be told.
#[cfg(target_os = "linux")]
pub(super) fn is_daemons(id: i32) -> bool {
    lineage(id).is_none_or(|line| line.iter().skip(1).any(|entry| entry.is_daemon))
}

/// Always false: not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_daemons(_: i32) -> bool {
    false
}

/// The processes that this one has started or taken over, and that run.
#[cfg(target_os = "linux")]
pub(super) fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_pid();
    Entry::all()
        .filter(|entry| entry.parent == own)
        .filter_map(|entry| Pid::from_raw(entry.id))
        .collect()
}

/// The value of a variable that a process was started with.
#[cfg(target_os = "linux")]
pub(super) fn given(id: i32, name: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{id}/environ")).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    value.map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Always `None`: not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn given(_: i32, _: &str) -> Option<String> {
    None
}

/// Always true: process relations are not known on this system, so the token alone has to do.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_kin(_caller: i32, _leader: i32) -> bool {
    true
}

/// True if a process of the group was started with this variable.
#[cfg(target_os = "linux")]
pub(super) fn group_carries(group: Pid, variable: &str) -> bool {
    Entry::all()
        .filter(|entry| entry.group == group.as_raw_pid())
        .any(|entry| Entry::carries(entry.id, variable))
}

/// The groups that were started with this variable: their leaders carry it, and the process that
/// started them does not.
#[cfg(target_os = "linux")]
pub(super) fn groups_carrying(variable: &str) -> Vec<Pid> {
    Entry::all()
        .filter(|entry| entry.id == entry.group)
        .filter(|entry| Entry::carries(entry.id, variable))
        .filter(|entry| !Entry::carries(entry.parent, variable))
        .filter_map(|entry| Pid::from_raw(entry.group))
        .collect()
}

/// All processes that were started with this variable, except this one.
#[cfg(target_os = "linux")]
pub(super) fn carrying(variable: &str) -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_pid();
    Entry::all()
        .filter(|entry| entry.id != own && Entry::carries(entry.id, variable))
        .filter_map(|entry| Pid::from_raw(entry.id))
        .collect()
}

/// Always empty: not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn carrying(_: &str) -> Vec<Pid> {
    Vec::new()
}

/// Always `None`: not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn started(_: Pid) -> Option<String> {
    None
}

/// Always empty: not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn groups_in_session(_: Pid) -> Vec<Pid> {
    Vec::new()
}

/// Not known on this system, so every process that takes signals counts.
#[cfg(not(target_os = "linux"))]
pub(super) fn runs(_: Pid) -> bool {
    true
}

/// Always false: not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn group_carries(_: Pid, _: &str) -> bool {
    false
}

/// Always empty: not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn groups_carrying(_: &str) -> Vec<Pid> {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_confuse_the_table() {
        let stat = "42 (a) b (c) S 7 40 39 0 -1 4194304 102 0 0 0 4 3 2 1 20 0 1 0 123375 31 38";
        let entry = Entry {
            id: 42,
            is_daemon: false,
            state: b'S',
            parent: 7,
            group: 40,
            session: 39,
            worked: 10,
            started: 123_375,
        };
        assert_eq!(Entry::read(42, stat), Some(entry));
        assert_eq!(Entry::read(42, "42 (torn) S 7"), None);
    }

    #[test]
    fn b_02_the_work_of_a_command_in_a_session_of_its_own_counts() {
        let home = tempfile::tempdir().unwrap();
        // It ends with the folder, however the test ends.
        std::fs::write(home.path().join("works"), "").unwrap();
        let script = "setsid sh -c 'while [ -e works ]; do :; done' & cat";
        let mut leader = std::process::Command::new("sh");
        leader.args(["-c", script]).current_dir(home.path()).env(super::super::GROUP, "b_02");
        let mut leader = leader.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let id = Pid::from_raw(leader.id().try_into().unwrap()).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut counted = false;
        while !counted && std::time::Instant::now() < deadline {
            counted = worked(id, false) > 3;
            std::thread::yield_now();
        }
        drop(leader.stdin.take());
        leader.wait().unwrap();
        assert!(counted, "a command under setsid");
    }

    #[test]
    fn b_07_a_process_whose_name_is_no_text_is_in_the_table() {
        use std::os::unix::ffi::OsStrExt;
        let home = tempfile::tempdir().unwrap();
        // A process is called like its program's file.
        let program = home.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("1000").spawn().unwrap();
        let found = Entry::of(child.id().try_into().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.map(|entry| entry.parent), std::process::id().try_into().ok());
    }
}
