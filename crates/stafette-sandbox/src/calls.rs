//! Denies system calls that no agent needs and that lead out of a sandbox (seccomp), and drops the
//! capabilities of an administrator, which bypass every other restriction.

use std::collections::BTreeMap;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

/// System calls that are denied with any arguments.
const DENIED: [i64; 40] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_open_by_handle_at,
    libc::SYS_vhangup,
];

/// Namespaces in which an agent would be its own administrator.
const NAMESPACES: [i32; 6] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
];

/// Kinds of sockets that reach past this system's files and network: the host of a virtual machine.
const SOCKETS: [i32; 1] = [libc::AF_VSOCK];

/// Calls that set the mode of a file, with the place of the mode among their arguments.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// Calls that set the mode of a file which they create, with the places of their flags and the mode.
const CREATIONS: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// The flags of [`CREATIONS`] with which the mode counts: those for a file with a name, and for one
/// that is given its name later (`O_TMPFILE` without the part that also asks for a folder).
const CREATES: [u32; 2] =
    [libc::O_CREAT.unsigned_abs(), (libc::O_TMPFILE & !libc::O_DIRECTORY).unsigned_abs()];

/// The bits of a mode that make a program run as its owner, and as its group.
const SET_IDS: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Denies the second table of calls that some kernels have (x32), as if it were not there. The other
/// filters know the numbers of the first alone.
#[cfg(target_arch = "x86_64")]
const NO_SECOND_TABLE: [sock_filter; 4] = [
    // Load the number of the call; below the first of that table, allow it.
    sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
    sock_filter { code: 0x35, jt: 0, jf: 1, k: 0x4000_0000 },
    sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x0005_0000 | libc::ENOSYS.unsigned_abs() },
    sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 },
];

/// Calls that are denied as if the kernel did not have them, so that callers use the older ones:
/// their arguments are in memory, where a filter does not see them.
const UNSEEN: [i64; 5] = [
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Requests that type into a terminal which another process reads: TIOCSTI and TIOCLINUX.
const INJECTIONS: [u64; 2] = [0x5412, 0x541c];

/// True if the kernel can filter system calls.
pub(crate) fn are_filtered() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail")
        .is_ok_and(|actions| actions.split_whitespace().any(|action| action == "errno"))
}

/// The capabilities that an administrator keeps: to work with files of any owner, such as a project in
/// a container that belongs to a user outside of it, and to unpack archives. The others allow it to
/// inspect outside processes, change the system, or act as another user or group.
const KEPT: CapabilitySet =
    CapabilitySet::CHOWN.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::FOWNER);

/// Drops all other capabilities, for this thread and all its descendants.
pub(crate) fn step_down() -> std::io::Result<()> {
    // Without this, a setuid program of the administrator would have them again.
    set_no_new_privs(true)?;
    let has = capabilities(None)?;
    let left = CapabilitySets {
        effective: has.effective.intersection(KEPT),
        permitted: has.permitted.intersection(KEPT),
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, left)?)
}

/// Denies the system calls to this thread and all its descendants.
pub(crate) fn deny() -> Result<(), seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let clone = NAMESPACES.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        argument(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)
    });
    rules.insert(libc::SYS_clone, clone.into_iter().collect::<Result<_, _>>()?);
    let inject =
        INJECTIONS.map(|request| argument(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request));
    rules.insert(libc::SYS_ioctl, inject.into_iter().collect::<Result<_, _>>()?);
    let sockets = SOCKETS.map(|kind| {
        argument(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(kind.unsigned_abs()))
    });
    rules.insert(libc::SYS_socket, sockets.into_iter().collect::<Result<_, _>>()?);
    // A program that runs as its owner or group would run outside as the user whose agent wrote it.
    // That a folder hands its group on cannot be told from that, and is denied with it: what is made
    // in one that does already is one too, by the kernel.
    for (call, mode) in MODES {
        let rules = rules.entry(*call).or_default();
        for set_id in SET_IDS {
            rules.push(SeccompRule::new(vec![flag(*mode, set_id)?])?);
        }
    }
    for (call, flags, mode) in CREATIONS {
        let rules = rules.entry(*call).or_default();
        for (creates, set_id) in CREATES.iter().flat_map(|it| SET_IDS.map(|set_id| (*it, set_id))) {
            rules.push(SeccompRule::new(vec![flag(*flags, creates)?, flag(*mode, set_id)?])?);
        }
    }
    install(rules, libc::EPERM, arch)?;
    let unseen = UNSEEN.map(|call| (call, Vec::new()));
    install(BTreeMap::from(unseen), libc::ENOSYS, arch)?;
    #[cfg(target_arch = "x86_64")]
    apply_filter(&NO_SECOND_TABLE)?;
    Ok(())
}

/// The condition that an argument has a flag.
fn flag(index: u8, flag: u32) -> Result<SeccompCondition, seccompiler::BackendError> {
    let flag = u64::from(flag);
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)
}

fn argument(
    index: u8,
    length: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(index, length, operator, value)?])
}

fn install(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: i32,
    arch: TargetArch,
) -> Result<(), seccompiler::Error> {
    let deny = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, deny, arch)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}
