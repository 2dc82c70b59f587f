//! A page of HTML that is whole by itself: text, tables, charts; no script, nothing from anywhere else. It is also
//! well-formed XML, so that a test can read it.

use std::fmt::Write;

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 96rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid #8886; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; max-width: 400px; }
figcaption { margin: .5rem 0; font-size: 13px; line-height: 1.35; }
svg { max-width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
.interval { stroke: currentColor; stroke-width: 1.2; fill: none; opacity: .75; }
.grid { stroke: currentColor; stroke-width: .5; opacity: .2; fill: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #8883; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.missed { color: #c0392b; }
.quiet { opacity: .75; }
";

/// Text as the text of an element, or of an attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // No XML has these.
            _ if character.is_control() && !matches!(character, '\n' | '\t') => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// A chart, with what it shows.
pub(crate) struct Shown {
    /// In a word.
    pub(crate) title: String,
    /// In a sentence.
    pub(crate) caption: String,
    /// The SVG.
    pub(crate) chart: String,
}

/// A page that is being written.
pub(crate) struct Page(String);

impl Page {
    /// Begins one.
    pub(crate) fn new(title: &str) -> Self {
        let title = escape(title);
        Page(format!(
            "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
             <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
        ))
    }

    /// A heading of level 2, or of 3.
    pub(crate) fn heading(&mut self, level: u8, text: &str) {
        let _ = writeln!(self.0, "<h{level}>{}</h{level}>", escape(text));
    }

    /// A paragraph.
    pub(crate) fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p>{}</p>", escape(text));
    }

    /// Charts side by side.
    pub(crate) fn charts(&mut self, charts: impl IntoIterator<Item = Shown>) {
        self.0.push_str("<div class=\"charts\">\n");
        for Shown { title, caption, chart } in charts {
            let (title, caption) = (escape(&title), escape(&caption));
            let _ =
                writeln!(self.0, "<figure><figcaption><b>{title}</b> {caption}</figcaption>{chart}</figure>");
        }
        self.0.push_str("</div>\n");
    }

    /// A table. A cell of the head is text with what it means, which is shown when one points at it.
    pub(crate) fn table(&mut self, head: &[(String, String)], rows: &[Vec<String>]) {
        self.0.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
        for (text, meaning) in head {
            let _ = write!(self.0, "<th title=\"{}\">{}</th>", escape(meaning), escape(text));
        }
        self.0.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.0.push_str("<tr>");
            for cell in row {
                let class = if cell == "missed" { " class=\"missed\"" } else { "" };
                let _ = write!(self.0, "<td{class}>{}</td>", escape(cell));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</tbody></table></div>\n");
    }

    /// Something that is folded up until one asks for it.
    pub(crate) fn folded(&mut self, summary: &str, inner: impl FnOnce(&mut Self)) {
        let _ = writeln!(self.0, "<details><summary>{}</summary>", escape(summary));
        inner(self);
        self.0.push_str("</details>\n");
    }

    /// The whole.
    pub(crate) fn end(mut self) -> String {
        self.0.push_str("</body>\n</html>\n");
        self.0
    }
}
