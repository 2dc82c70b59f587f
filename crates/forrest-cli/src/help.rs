//! The examples and explanations behind `--help`. All examples work as they stand, in the order given, in
//! an empty directory; the tests run them.

/// Of `forrest --help`.
pub(crate) const TOP: &str = "\
The store \"memory:\" lives as long as this process, so fill it, use it and dump
it in one: --load FILE before any command, --dump FILE after it, or the shell.

Examples:
  forrest demo                               the tour, on the files in /usr
  forrest shell                              a prompt; \"help\" lists the commands
  printf 'apple\\t3\\nbanana\\t5\\n' > in.txt    a file of pairs: key TAB value
  forrest --load in.txt scan --prefix a      load it, then ask
  forrest load in.txt -- scan --prefix a     the same
  echo 'set cherry 7' | forrest --load in.txt shell --dump out.txt

Keys and values in arguments are escaped text: \\\\ \\t \\n \\r, and \\xNN for any
other byte; with --format hex they are hexadecimal. Put -- before one that
begins with a hyphen.

Exit codes:
  0  done                     3  damaged data
  1  not found, no match      4  any other error: files, limits, unsupported
  2  bad usage              130  interrupted by Ctrl-C
                            141  the reader of standard output has gone";

pub(crate) const GET: &str = "\
Examples:
  forrest --load in.txt get apple            3
  forrest --load in.txt get apple banana     each with its key
  forrest --load in.txt get apple --raw > value.bin

Exit code 1 if a key is not there.";

pub(crate) const SET: &str = "\
Examples:
  forrest --load in.txt set cherry 7 --dump out.txt
  forrest --load in.txt set 'two words' 'line one\\nline two' --dump out.txt
  forrest set picture --from-file value.bin --dump out.txt
  forrest --dump out.txt set -- -key -value";

pub(crate) const ADD: &str = "\
A counter is a value of 8 bytes, a big-endian two's complement integer; a key
that is not there counts as 0. Any other value, and overflow, is an error.

Examples:
  forrest add visits                         1
  forrest add visits -5                      -5
  printf 'add n 40\\nadd n 2\\n' | forrest shell";

pub(crate) const CAS: &str = "\
Compare and swap: the comparison and the change are one step, whatever other
threads do. Exit code 1, and the value found, if it did not match.

Examples:
  forrest --load in.txt cas apple --expect 3 --set 4 --dump out.txt
  forrest --load in.txt cas cherry --absent --set 7 --dump out.txt
  forrest --load in.txt cas apple --expect 3 --delete --dump out.txt";

pub(crate) const DELETE: &str = "\
Examples:
  forrest --load in.txt delete apple --dump out.txt

Exit code 1 if a key was not there.";

pub(crate) const DELETE_RANGE: &str = "\
Examples:
  forrest --load in.txt delete-range --prefix a --dump out.txt
  forrest --load in.txt delete-range --from a --to b --dump out.txt
  forrest --load in.txt delete-range --all --dump out.txt";

pub(crate) const SCAN: &str = "\
Keys sort by their bytes. A prefix and bounds may be given together; what is in
both is printed.

Examples:
  forrest --load in.txt scan
  forrest --load in.txt scan --prefix a
  forrest --load in.txt scan --from b --reverse --limit 10
  forrest --load in.txt --format jsonl scan";

pub(crate) const COUNT: &str = "\
Examples:
  forrest --load in.txt count
  forrest --load in.txt count --from a --to c";

pub(crate) const KEYSPACES: &str = "\
Examples:
  forrest --load in.txt keyspaces";

pub(crate) const LOAD: &str = "\
Formats (--format, unless the file's name ends in .txt, .hex, .jsonl or .ops):
  text   key TAB value, with \\\\ \\t \\n \\r \\xNN for what cannot stand for itself
  hex    key TAB value, in hexadecimal
  jsonl  {\"key\": \"...\", \"value\": \"...\"}, or \"key_hex\" and \"value_hex\"
  ops    an operation a line: set KEY VALUE, delete KEY, add KEY DELTA, ...
Except in jsonl, # begins a comment, and \"#keyspace NAME\" says where the lines
after it belong. A mistake is reported as FILE:LINE:COLUMN, where the column
counts bytes from 1; what came before it has been loaded.

Examples:
  forrest load in.txt -- count
  forrest load in.txt -- scan --prefix b
  forrest load in.txt --dump copy.jsonl
  cat in.txt | forrest load - -- get apple";

pub(crate) const DUMP: &str = "\
Without --keyspace, all keyspaces are written. What dump writes, load reads,
byte for byte. A file is replaced as a whole when it is complete.

Examples:
  forrest --load in.txt dump
  forrest --load in.txt --format hex dump
  forrest --load in.txt dump copy.jsonl";

pub(crate) const STAT: &str = "\
Examples:
  forrest --load in.txt stat
  forrest --load in.txt --format jsonl stat";

pub(crate) const SHELL: &str = "\
A line is a command as on the command line, without \"forrest\"; \"help\" lists
them. Words are split at spaces; \"double quotes\" keep them together, and \\xNN
\\n \\r \\t \\\" \\\\ are escapes. A line that begins with # is a comment.

With a prompt, errors are shown and the shell goes on; in a script the first
error ends it, and it is reported with its line. The exit code is that of the
last command.

Examples:
  forrest shell
  forrest --load in.txt shell --dump out.txt
  printf 'set a 1\\nset b 2\\nscan\\n' > script.txt
  forrest shell script.txt
  forrest shell < script.txt";

/// Of the shell's own `help`.
pub(crate) const LINE: &str = "\
@NAME before a command means the keyspace NAME for this line. Operations as in
.ops files work too: compare-and-swap KEY EXPECTED NEW, delete-range START END,
where - is no value and no end.";

pub(crate) const DEMO: &str = "\
Every file's path is stored with its kind, mode, size and time of change. Then
the store is asked for: a directory listing, the largest subtrees, the files
changed last, counts by extension, the differences between a snapshot and later
states. At the end each operation is timed. Nothing on the disk is changed; the
walk stays on one file system and follows no symbolic links.

Examples:
  forrest demo
  forrest demo . --limit 10000
  forrest demo /etc --shell                  then explore: scan --prefix /etc/";

pub(crate) const DOCTOR: &str = "\
Examples:
  forrest doctor
  forrest --format jsonl doctor";
