//! Files: private to their user when they are made, bounded when they are read.
//!
//! The mode of a new file is set by the call that makes it, so that it does not depend on the
//! umask. A file that somebody else named may be a device, a pipe or endless: it is read only if it
//! is a regular file, and never further than its limit. Nor is a link followed where somebody else
//! can put one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

/// Creates a folder, and those above it, for its user alone. One that exists stays as it is.
///
/// # Errors
/// When the system refuses it.
pub fn folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates the folder of a file, for its user alone.
///
/// # Errors
/// When the system refuses it.
pub fn folder_of(file: &Path) -> Result<()> {
    file.parent().map_or(Ok(()), folder)
}

/// The options for a new file that only its user can read. A pipe in its place is an error, and not
/// waited for.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(bits(AT_ONCE));
    options
}

/// Opens a pipe, which may be in the place of a file, without waiting for its other end.
const AT_ONCE: OFlags = OFlags::NONBLOCK;

fn bits(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or_default()
}

/// Writes a file that only its user can read.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let mut file = private().write(true).create(true).truncate(true).open(path)?;
    file.write_all(content.as_ref())
}

/// Replaces a file by one that only its user can read: after a crash, the old or the new one is
/// there.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    self::folder(folder)?;
    // Temporary files are readable by their user only, and stay so when renamed.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content.as_ref())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// Opens a regular file of at most `limit` bytes.
///
/// # Errors
/// When the file cannot be opened, is longer, or is a folder, a device or a pipe.
pub fn open(path: &Path, limit: u64) -> Result<File> {
    let file = regular(path, AT_ONCE)?;
    match file.metadata()?.len() > limit {
        true => Err(too_long(limit)),
        false => Ok(file),
    }
}

/// Opens a regular file of any length, which has to lie at `path` itself.
///
/// # Errors
/// When the file cannot be opened, or is a link, a folder, a device or a pipe.
pub fn open_itself(path: &Path) -> Result<File> {
    regular(path, AT_ONCE | OFlags::NOFOLLOW)
}

fn regular(path: &Path, flags: OFlags) -> Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(bits(flags)).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

fn too_long(limit: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("it has more than {limit} bytes"))
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// When the file cannot be read, is longer, or is a folder, a device or a pipe.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    // Some files say that they are empty and are not.
    open(path, limit)?.take(limit + 1).read_to_end(&mut content)?;
    match content.len() as u64 > limit {
        true => Err(too_long(limit)),
        false => Ok(content),
    }
}

/// Reads a regular file of at most `limit` bytes as text.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Returns the SHA-256 of a regular file of at most `limit` bytes, in memory that does not grow
/// with it, and the number of its bytes.
pub fn hash(path: &Path, limit: u64) -> Result<([u8; 32], u64)> {
    let mut file = open(path, limit)?.take(limit + 1);
    let (mut hasher, mut total) = (Sha256::new(), 0);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finalize().into(), total)),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                total += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if total > limit {
            return Err(too_long(limit));
        }
    }
}

/// True if there is a regular file at `path`, links followed.
pub fn is_regular(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    #[test]
    fn b_20_what_is_made_is_its_users_alone_whatever_the_umask() {
        // The umask belongs to the whole process; no other test of this crate looks at modes.
        let before = rustix::process::umask(rustix::fs::Mode::empty());
        let home = tempfile::tempdir().expect("a folder");
        let (deep, written) = (home.path().join("a/b"), home.path().join("a/b/written"));
        let replaced = home.path().join("c/replaced");
        folder(&deep).expect("made");
        write(&written, "x").expect("written");
        replace(&replaced, "y").expect("replaced");
        rustix::process::umask(before);
        assert_eq!((mode(&deep), mode(deep.parent().expect("a"))), (0o700, 0o700));
        assert_eq!((mode(&written), mode(&replaced)), (0o600, 0o600));
        assert_eq!(mode(replaced.parent().expect("c")), 0o700);
    }

    #[test]
    fn b_20_only_a_regular_file_of_bounded_length_is_read() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("file");
        fs::write(&file, "0123456789").expect("written");
        assert_eq!(read_text(&file, 10).expect("read"), "0123456789");
        assert_eq!(hash(&file, 10).expect("hashed").1, 10);
        let pipe = home.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let link = home.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        for (path, limit) in [
            (file.as_path(), 9),
            (Path::new("/dev/zero"), 100),
            (&link, 100),
            (&pipe, 100),
            (home.path(), 100),
            // Says that it is empty.
            (Path::new("/proc/self/maps"), 10),
        ] {
            assert!(read(path, limit).is_err(), "{}", path.display());
            assert!(hash(path, limit).is_err(), "{}", path.display());
        }
        assert!(write(&pipe, "x").is_err(), "nobody waits for a reader");
        let to_file = home.path().join("to-file");
        std::os::unix::fs::symlink(&file, &to_file).expect("a link");
        assert_eq!(read_text(&to_file, 10).expect("read"), "0123456789");
        for path in [to_file.as_path(), &link, &pipe, home.path()] {
            assert!(open_itself(path).is_err(), "{}", path.display());
        }
        assert!(open_itself(&file).is_ok());
    }
}
