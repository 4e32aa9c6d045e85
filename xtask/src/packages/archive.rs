//! Archives that are the same, byte for byte, whenever they hold the same.

use std::collections::BTreeSet;
use std::io::{self, Write};

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use tar::{Builder, EntryType, Header};

/// The time of every file: the one that npm gives to its own. Zip knows none before 1980.
const TIME: u64 = 499_162_500;

/// The same time, in local time without a zone, as zip has it: 26 October 1985, 08:15.
const ZIP_TIME: (u16, u16) = (8 << 11 | 15 << 5, (1985 - 1980) << 9 | 10 << 5 | 26);

/// A file in an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    /// Its path, with `/` and without one at the beginning.
    pub(super) path: String,
    pub(super) is_program: bool,
    pub(super) bytes: &'a [u8],
}

impl Entry<'_> {
    fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }
}

/// Makes a `.tar.gz` of files, with their folders in front of them. Every path gets a prefix.
pub(super) fn tar_gz(prefix: &str, entries: &[Entry<'_>]) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let mut made = BTreeSet::new();
    for entry in sorted(entries) {
        let path = format!("{prefix}{}", entry.path);
        let folders = path.match_indices('/').map(|(end, _)| &path[..=end]);
        for folder in folders.filter(|folder| *folder != "./") {
            if made.insert(folder.to_owned()) {
                tar.append(&header(folder, EntryType::Directory, 0o755, 0)?, io::empty())?;
            }
        }
        let size = entry.bytes.len() as u64;
        tar.append(&header(&path, EntryType::Regular, entry.mode(), size)?, entry.bytes)?;
    }
    tar.into_inner()?.finish()
}

fn header(path: &str, kind: EntryType, mode: u32, size: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    // `Header::set_path` would take the `./` away that Debian's packages have.
    let name = &mut header.as_old_mut().name;
    if path.len() > name.len() {
        return Err(io::Error::other(format!("`{path}` is too long for a tar archive")));
    }
    name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
    Ok(header)
}

/// Compresses one file.
pub(super) fn gz(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::best());
    gz.write_all(bytes)?;
    gz.finish()
}

/// Makes a zip archive: a Python wheel is one.
pub(super) fn zip(entries: &[Entry<'_>]) -> io::Result<Vec<u8>> {
    let (mut zip, mut directory, mut count) = (Vec::new(), Vec::new(), 0u16);
    for entry in sorted(entries) {
        let offset = size(zip.len())?;
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
        deflate.write_all(entry.bytes)?;
        let packed = deflate.finish()?;
        let mut crc = Crc::new();
        crc.update(entry.bytes);
        let mut about = Vec::new();
        // Names are UTF-8; the content is deflated.
        for number in [20u16, 1 << 11, 8, ZIP_TIME.0, ZIP_TIME.1] {
            about.extend(number.to_le_bytes());
        }
        for number in [crc.sum(), size(packed.len())?, size(entry.bytes.len())?] {
            about.extend(number.to_le_bytes());
        }
        // The length of the name, and of what may follow it.
        about.extend(size(entry.path.len())?.to_le_bytes());
        zip.extend(b"PK\x03\x04");
        zip.extend(&about);
        zip.extend(entry.path.as_bytes());
        zip.extend(packed);
        directory.extend(b"PK\x01\x02");
        // Made by a Unix: the mode of a file counts.
        directory.extend((3u16 << 8 | 20).to_le_bytes());
        directory.extend(about);
        // No comment, the first disk, no attributes of other systems.
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | entry.mode()) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.path.as_bytes());
        count += 1;
    }
    let start = size(zip.len())?;
    let length = size(directory.len())?;
    zip.extend(directory);
    zip.extend(b"PK\x05\x06\0\0\0\0");
    zip.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    zip.extend([length.to_le_bytes(), start.to_le_bytes()].concat());
    zip.extend([0; 2]);
    Ok(zip)
}

fn size(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::Error::other("more than 4 GiB in a zip archive"))
}

/// Makes an `ar` archive: a Debian package is one.
pub(super) fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut ar = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let size = bytes.len();
        ar.extend(
            format!("{name:<16}{TIME:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 100_644).bytes(),
        );
        ar.extend(*bytes);
        ar.extend(b"\n".iter().take(size % 2));
    }
    ar
}

fn sorted<'a>(entries: &'a [Entry<'a>]) -> Vec<&'a Entry<'a>> {
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    sorted
}
