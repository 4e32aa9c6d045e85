//! What a Linux program needs of the machine that it runs on, as it says itself.
//!
//! The dynamic linker refuses a program whose needed versions are not there, so they are what counts,
//! whatever the build was told.

use std::collections::BTreeSet;

/// A version of glibc.
pub(super) type Glibc = (u32, u32);

/// What a program needs.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Needs {
    /// The libraries that it wants some version of.
    pub(super) libraries: BTreeSet<String>,
    /// The newest version of glibc that it wants something of.
    pub(super) glibc: Option<Glibc>,
}

/// The type of the section with the needed versions, and the sizes of what is in it.
const VERSIONS_NEEDED: u32 = 0x6fff_fffe;
const SECTION: usize = 64;

/// Reads a 64-bit little-endian ELF program; anything else is `None`.
pub(super) fn needs(program: &[u8]) -> Option<Needs> {
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, count) = (long(program, 40)?, short(program, 60)?);
    let section = |number: u32| program.get(table + number as usize * SECTION..);
    let mut needs = Needs::default();
    for number in 0..u32::from(count) {
        let found = section(number)?;
        if word(found, 4)? != VERSIONS_NEEDED {
            continue;
        }
        let names = program.get(long(section(word(found, 40)?)?, 24)?..)?;
        let mut library = program.get(long(found, 24)?..)?;
        for _ in 0..word(found, 44)? {
            needs.libraries.insert(name(names, word(library, 4)?)?.to_owned());
            let mut version = library.get(word(library, 8)? as usize..)?;
            for _ in 0..short(library, 2)? {
                needs.glibc = needs.glibc.max(glibc(name(names, word(version, 8)?)?));
                version = version.get(word(version, 12)? as usize..)?;
            }
            library = library.get(word(library, 12)? as usize..)?;
        }
    }
    Some(needs)
}

/// Returns the version in `GLIBC_2.17` or `GLIBC_2.2.5`.
fn glibc(name: &str) -> Option<Glibc> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn name(names: &[u8], start: u32) -> Option<&str> {
    let name = names.get(start as usize..)?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(name).ok()
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_numbers() {
        assert_eq!(glibc("GLIBC_2.2.5"), Some((2, 2)));
        assert!(glibc("GLIBC_2.17") > glibc("GLIBC_2.4"));
        assert_eq!((glibc("GLIBC_PRIVATE"), glibc("GCC_3.0")), (None, None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_program_says_what_it_needs() {
        let me = std::fs::read(std::env::current_exe().expect("it runs")).expect("it is there");
        let needs = needs(&me).expect("it is for Linux");
        assert!(needs.glibc >= Some((2, 2)), "{needs:?}");
        assert!(needs.libraries.contains("libc.so.6"), "{needs:?}");
        for length in [0, 5, 100, 4096, me.len() / 2] {
            assert_eq!(super::needs(&me[..length]), None, "cut at {length}");
        }
    }
}
