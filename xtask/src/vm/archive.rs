//! The test machine's first and only file system: an archive that the kernel unpacks into memory.
//!
//! The format is the kernel's `newc` of cpio (its documentation: driver-api/early-userspace/buffer-format): a head of
//! 110 characters, numbers in hexadecimal, names and contents padded to four bytes. Everything is root's, at the time
//! 0, so that the same content makes the same archive.

use std::fmt::Write as _;

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// An archive in the making.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a directory that all may enter. The root is one: where it is not, no user can run anything.
    pub(crate) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY | 0o755, &[]);
    }

    /// Adds a file that all may read and run.
    pub(crate) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, FILE | 0o755, content);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, name: &str, to: &str) {
        self.entry(name, LINK | 0o777, to.as_bytes());
    }

    /// The archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let size = u32::try_from(content.len()).expect("files of less than 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("short names");
        // Number, mode, owner, group, links, time, size, four numbers of devices, length of the name, no checksum.
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        let mut head = "070701".to_owned();
        for field in fields {
            write!(head, "{field:08x}").expect("into a string");
        }
        self.bytes.extend(head.bytes().chain(name.bytes()).chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_newc() {
        let mut archive = Archive::default();
        archive.directory(".");
        archive.file("init", b"hello");
        archive.link("sh", "busybox");
        let text = String::from_utf8(archive.finish()).expect("all of it is text");
        assert!(text.len().is_multiple_of(4));
        // Root, a directory of mode 0755, two links, a name of two bytes; 110 + 2 is padded already.
        let zeros = "0".repeat(16);
        let head = format!("07070100000001000041ed{zeros}00000002{zeros}{zeros}{zeros}0000000200000000");
        assert_eq!(&text[..110], head);
        assert_eq!(&text[110..112], ".\0");
        // Name and content, each padded.
        assert!(text.contains(concat!("init\0\0hello\0\0\0", "070701")), "{text:?}");
        assert!(text.contains(concat!("sh\0\0\0\0busybox\0", "070701")), "{text:?}");
        assert!(text.contains("TRAILER!!!\0"));
    }
}
