//! The command in a terminal: the text on the screen.

use crate::harness::{FORREST, Place};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longest wait for something to appear.
const PATIENCE: Duration = Duration::from_secs(60);

/// A variable of the environment that is not there.
const UNSET: &str = "(unset)";

/// A terminal in which the command runs.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// Everything that was written, with all sequences.
    pub(crate) raw: Vec<u8>,
}

impl Terminal {
    /// Starts the command in a terminal with this many columns, high enough that nothing leaves the screen.
    pub(crate) fn start(place: &Place, columns: u16, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        const ROWS: u16 = 300;
        let size = PtySize { rows: ROWS, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal can be had");
        let mut command = CommandBuilder::new(FORREST);
        command.args(arguments);
        command.cwd(place.path());
        for name in ["FORREST_URL", "NO_COLOR", "LC_CTYPE", "LANG"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm-256color");
        // Keep no history of the tests.
        command.env("FORREST_HISTORY", "");
        for (name, value) in env {
            if *value == UNSET { command.env_remove(name) } else { command.env(name, value) }
        }
        let child = pair.slave.spawn_command(command).expect("the command starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keyboard = pair.master.take_writer().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buf = [0; 4096];
            // The end of the command is an error on some systems and an end of file on others.
            while let Ok(len @ 1..) = reader.read(&mut buf) {
                if sender.send(buf[..len].to_vec()).is_err() {
                    break;
                }
            }
        });
        let screen = vt100::Parser::new(ROWS, columns, 0);
        Terminal { child, master: pair.master, keyboard, output, screen, raw: Vec::new() }
    }

    /// Types text, of which `\r` is the enter key and `\x03` Ctrl-C.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Waits until the screen's text, without trailing space, is as `wanted`.
    #[track_caller]
    fn wait_until(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self.text().trim_end()) {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(e) => panic!("{e} before {what} was seen:\n{}", self.text()),
            }
        }
    }

    /// Waits until the screen shows `text`.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Types a line at a prompt, waits until it is shown, types the key that ends it, and returns the output up to and
    /// including the next prompt. Ctrl-C in particular must meet a prompt: at another time the system also discards
    /// what was typed before it.
    #[track_caller]
    fn answer(&mut self, line: &str, key: &str) -> String {
        self.type_in(line);
        self.wait_until(line, |screen| screen.ends_with(line));
        let before = self.text().trim_end().len();
        self.type_in(key);
        self.wait_until("a prompt", |screen| screen.len() > before && screen.ends_with(['>', '+']));
        self.text().trim_end()[before..].to_owned()
    }

    /// Waits for the end of the command and returns its exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap().exit_code(),
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.text()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        self.screen.process(bytes);
        // A program that asks for the position of the cursor waits for the reply.
        if bytes.windows(4).any(|window| window == b"\x1b[6n") {
            let (row, column) = self.screen.screen().cursor_position();
            self.type_in(&format!("\x1b[{};{}R", row + 1, column + 1));
        }
    }

    /// What the screen shows.
    pub(crate) fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Asserts that no line was too long for the screen, and that the cursor is seen.
    #[track_caller]
    pub(crate) fn assert_tidy(&self) {
        let screen = self.screen.screen();
        let wrapped = (0..screen.size().0).find(|row| screen.row_wrapped(*row));
        assert_eq!(wrapped, None, "a line was wrapped:\n{}", self.text());
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.alternate_screen());
        assert_eq!((screen.fgcolor(), screen.bold()), (vt100::Color::Default, false), "a colour was left on");
    }

    /// Everything that was written, as text.
    pub(crate) fn raw_text(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.master.get_size();
    }
}

#[test]
fn the_shell_prompts_and_answers() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, 80, &["shell"], &[]);
    terminal.wait_until("a prompt", |screen| screen.ends_with("forrest>"));
    for (line, key, answer) in [
        ("set apple 3", "\r", ""),
        ("get apple", "\r", "3\n"),
        ("get nothing", "\r", "not found: nothing\n"),
        // An error does not end the shell, and Ctrl-C discards the typed text.
        ("frobnicate", "\r", "unrecognized subcommand"),
        ("set a", "\r", "<VALUE>"),
        ("delete apple", "\x03", ""),
        ("get apple", "\r", "3\n"),
        ("use people", "\r", "forrest:people>"),
        ("begin", "\r", "forrest:people+"),
        ("set ada x", "\r", "forrest:people+"),
        ("commit", "\r", "1 change made\n"),
        ("help", "\r", "delete-range "),
    ] {
        let said = terminal.answer(line, key);
        assert!(said.contains(answer), "{line}: {said}");
    }
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), 0);
    terminal.assert_tidy();
}

#[test]
fn the_shell_takes_what_is_typed_ahead() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, 80, &["shell"], &[]);
    terminal.wait_until("a prompt", |screen| screen.ends_with("forrest>"));
    terminal.type_in("set a 1\rset b 2\radd n 40\radd n 2\rcount\rquit\r");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.text().contains("\n42\n") && terminal.text().contains("\n3\n"), "{}", terminal.text());
}

#[test]
fn tab_completes_commands_options_keyspaces_and_keys() {
    let place = Place::new();
    place.write("in.txt", "apple\t3\napricot\t4\ntwo words\t5\n#keyspace people\nada\t1\n");
    let mut terminal = Terminal::start(&place, 80, &["--load", "in.txt", "shell"], &[]);
    terminal.wait_until("a prompt", |screen| screen.ends_with("forrest>"));
    for (typed, seen, answer) in [
        ("cou\t", "forrest> count", "3"),
        ("get tw\t", "forrest> get \"two words\"", "5"),
        // As far as all have it in common, and then one more letter.
        ("get a\tr\t", "forrest> get apricot", "4"),
        ("get app\t", "forrest> get apple", "3"),
        ("@peo\tget a\t", "forrest> @people get ada", "1"),
        ("scan --val\t--li\t1", "forrest> scan --values --limit 1", "3"),
        ("load in.t\t", "forrest> load in.txt", "4 pairs loaded"),
    ] {
        terminal.type_in(typed);
        terminal.wait_until(seen, |screen| screen.ends_with(seen));
        let before = terminal.text().trim_end().len();
        terminal.type_in("\r");
        terminal.wait_until("a prompt", |screen| screen.len() > before && screen.ends_with('>'));
        assert!(terminal.text()[before..].contains(answer), "{typed}: {}", terminal.text());
    }
    // Several candidates are listed.
    terminal.type_in("get ap\t\t");
    terminal.wait_until("both keys", |screen| screen.contains("apple") && screen.contains("apricot"));
    terminal.answer("", "\x03");
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn what_was_typed_comes_back_in_the_next_shell() {
    let place = Place::new();
    let file = place.path().join("state/of/history");
    let env = [("FORREST_HISTORY", file.to_str().unwrap())];
    let mut terminal = Terminal::start(&place, 80, &["shell"], &env);
    terminal.wait_until("a prompt", |screen| screen.ends_with("forrest>"));
    for line in ["set oak 'Quercus'", " set secret 1", "get oak"] {
        terminal.answer(line, "\r");
    }
    // It is there at once: a shell that is killed has kept it.
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("set oak 'Quercus'\nget oak\n") && !kept.contains("secret"), "{kept}");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);
    drop(terminal);
    let mut terminal = Terminal::start(&place, 80, &["shell"], &env);
    terminal.wait_until("a prompt", |screen| screen.ends_with("forrest>"));
    terminal.type_in("\x1b[A\x1b[A");
    terminal.wait_until("the line before the last", |screen| screen.ends_with("forrest> set oak 'Quercus'"));
    terminal.answer("", "\x03");
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), 0);
    // Where it cannot be kept the shell says so, once, and goes on.
    let env = [("FORREST_HISTORY", "/proc/none/history")];
    let mut terminal = Terminal::start(&place, 80, &["shell"], &env);
    terminal.wait_until("a prompt", |screen| screen.ends_with("forrest>"));
    assert!(terminal.answer("set a 1", "\r").contains("is not kept"), "{}", terminal.text());
    assert!(!terminal.answer("set a 2", "\r").contains("is not kept"), "{}", terminal.text());
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn the_history_lies_where_the_system_has_such_files() {
    let place = Place::new();
    let home = place.path().to_str().unwrap();
    let state = place.path().join("state");
    let state = state.to_str().unwrap();
    for (env, file) in [
        ([("HOME", home), ("XDG_STATE_HOME", UNSET)], ".local/state/forrest/history"),
        ([("HOME", "/none"), ("XDG_STATE_HOME", state)], "state/forrest/history"),
    ] {
        let mut terminal =
            Terminal::start(&place, 80, &["shell"], &[&env[..], &[("FORREST_HISTORY", UNSET)]].concat());
        terminal.wait_until("a prompt", |screen| screen.ends_with("forrest>"));
        terminal.answer("set a 1", "\r");
        assert!(place.path().join(file).exists(), "{file}");
    }
}

#[test]
fn a_shell_that_reads_a_pipe_does_not_prompt() {
    let place = Place::new();
    let ran = place.run_with(&["shell"], "set a 1\nget a\n");
    assert_eq!(ran.ok(), "1\n");
    assert!(!ran.stderr.contains("forrest>"));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let place = Place::new();
    place.write("in.txt", "a\t1\n");
    let run = |env: &[(&str, &str)]| {
        let mut terminal = Terminal::start(&place, 80, &["demo", "."], env);
        assert_eq!(terminal.end(), 0);
        terminal.raw_text()
    };
    let has_colour = |raw: &str| {
        raw.split("\x1b[")
            .skip(1)
            .any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'))
    };
    assert!(has_colour(&run(&[])));
    assert!(!has_colour(&run(&[("NO_COLOR", "1")])));
    assert!(!run(&[("TERM", "dumb")]).contains('\x1b'));
    let piped = place.run(&["--load", "in.txt", "stat"]);
    assert!(!piped.ok().contains('\x1b'));
    let demo = place.run(&["demo", "."]);
    assert!(!demo.ok().contains('\x1b') && demo.stderr.is_empty(), "{}", demo.stderr);
}

#[test]
fn ctrl_c_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    for i in 0..5_000 {
        place.write(format!("tree/{}/{i}", i % 50), "");
    }
    let mut terminal = Terminal::start(&place, 80, &["demo", "tree"], &[]);
    terminal.wait_for("0%");
    terminal.type_in("\x03");
    assert_eq!(terminal.end(), 130);
    terminal.wait_for("interrupted");
    terminal.assert_tidy();
    assert!(!terminal.text().contains('%'), "the bar is still there:\n{}", terminal.text());
}

#[test]
fn ctrl_c_takes_the_bar_of_a_load_away() {
    let place = Place::new();
    let lines: String =
        (0..300_000).map(|i| format!("a key that is not short {i:06}\tvalue {i}\n")).collect();
    place.write("large.txt", lines);
    let mut terminal = Terminal::start(&place, 80, &["--load", "large.txt", "count"], &[]);
    terminal.wait_for("loading: ");
    terminal.type_in("\x03");
    assert_eq!(terminal.end(), 130);
    terminal.assert_tidy();
    assert_eq!(terminal.text().replace("^C", "").trim(), "forrest: interrupted");
}

#[test]
fn everything_fits_the_terminal() {
    let place = Place::new();
    place.write("tree/a rather long name of a directory/another one that is long as well/and a file.txt", "");
    place.write("tree/林林林林林林林林林林林林林林林林林林林林林林林林林林林林林林/é.txt", "");
    for columns in [80, 100, 200] {
        for arguments in [&["demo", "tree"][..], &["doctor"], &["stat"], &["--help"]] {
            let mut terminal = Terminal::start(&place, columns, arguments, &[]);
            assert_eq!(terminal.end(), 0);
            terminal.assert_tidy();
        }
    }
}
