//! Landlock: what is not granted is denied, for this process and all its descendants.

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};

use crate::{Enforced, Network, Offer, Policy};

/// The newest Landlock version that this code supports.
const NEWEST: ABI = ABI::V9;

/// Returns what this kernel supports.
pub(crate) fn offer() -> Offer {
    let required = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    Offer {
        files: required().handle_access(AccessFs::from_all(ABI::V3)).is_ok(),
        network: required().handle_access(AccessNet::from_all(ABI::V4)).is_ok(),
        scope: required().scope(Scope::from_all(ABI::V6)).is_ok(),
        sockets: required().handle_access(AccessFs::ResolveUnix).is_ok(),
        ..Offer::default()
    }
}

/// The restrictions that took effect.
#[derive(Debug)]
pub(crate) struct Fence {
    pub(crate) files: Enforced,
    pub(crate) network: Enforced,
    pub(crate) scope: Enforced,
    /// True if sockets in folders are restricted as well.
    pub(crate) has_sockets: bool,
}

/// Restricts this thread and all its descendants. They may also use `devices`.
pub(crate) fn put_up(policy: &Policy, devices: &[PathBuf]) -> Result<Fence, RulesetError> {
    let wants_network = policy.network != Network::Open;
    let all = AccessFs::from_all(NEWEST);
    let mut rules = Ruleset::default().handle_access(all)?.scope(Scope::from_all(NEWEST))?;
    if let Network::Ports(_) = policy.network {
        rules = rules.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut rules = rules.create()?;
    if let Network::Ports(ports) = &policy.network {
        for port in ports {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    let grants = [
        (policy.split(&policy.read), AccessFs::from_read(NEWEST)),
        (policy.split(&policy.write), all),
        (devices.to_vec(), all),
        (policy.sockets.clone(), BitFlags::from(AccessFs::ResolveUnix)),
    ];
    for (paths, access) in grants {
        for path in paths {
            // A path that does not exist needs no grant.
            let Ok(handle) = PathFd::new(&path) else { continue };
            let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
            rules = rules.add_rule(PathBeneath::new(handle, access))?;
        }
    }
    let status = rules.restrict_self()?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
        LandlockStatus::NotEnabled => return Ok(none("Landlock is switched off", wants_network)),
        LandlockStatus::NotImplemented => {
            return Ok(none("the kernel has no Landlock", wants_network));
        }
    };
    let since = |needed: ABI, missing: &str| {
        if abi >= needed { Enforced::Fully } else { Enforced::Not(missing.to_owned()) }
    };
    Ok(Fence {
        files: if abi >= ABI::V3 {
            Enforced::Fully
        } else {
            Enforced::Partly("files can be cut short where they cannot be written".to_owned())
        },
        network: if wants_network {
            since(ABI::V4, "the kernel's Landlock knows no TCP")
        } else {
            Enforced::Unasked
        },
        scope: since(ABI::V6, "the kernel's Landlock knows no signals"),
        has_sockets: abi >= ABI::V9,
    })
}

fn none(why: &str, wants_network: bool) -> Fence {
    let not = || Enforced::Not(why.to_owned());
    Fence {
        files: not(),
        network: if wants_network { not() } else { Enforced::Unasked },
        scope: not(),
        has_sockets: false,
    }
}
