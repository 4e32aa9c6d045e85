//! Blocks of code, with as much colour as helps to read them: comments, strings, tables, and what
//! is typed.

use super::document::escaped;

/// Returns a block; its info is a language, and perhaps the name of the file that it is.
pub(super) fn block(info: &str, text: &str) -> String {
    let (language, file) = info.split_once(' ').unwrap_or((info, ""));
    let comment = match language {
        "sh" | "toml" | "python" | "yaml" | "ini" => Some("#"),
        "ts" | "js" | "typescript" | "rust" => Some("//"),
        _ => None,
    };
    let lines: Vec<String> = text
        .lines()
        .map(|line| match language {
            "console" => typed(line),
            "toml" if line.starts_with('[') => table(line),
            "json" => quoted(line, None),
            _ if comment.is_some() => quoted(line, comment),
            _ => escaped(line),
        })
        .collect();
    let caption = if file.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>", escaped(file))
    };
    let class = if language.is_empty() { "plain" } else { language };
    let lines = lines.join("\n");
    format!(
        "<figure class=\"code {class}\">{caption}<pre tabindex=\"0\"><code>{lines}\n</code></pre></figure>\n"
    )
}

/// What a person types stands out from what a program prints.
fn typed(line: &str) -> String {
    match line.strip_prefix("$ ") {
        Some(command) => format!("<i>$ </i><b>{}</b>", escaped(command)),
        None => escaped(line),
    }
}

fn table(line: &str) -> String {
    let end = line.rfind(']').map_or(line.len(), |at| at + 1);
    format!("<b>{}</b>{}", escaped(&line[..end]), quoted(&line[end..], Some("#")))
}

/// Marks strings, and a comment up to the end of the line.
fn quoted(line: &str, comment: Option<&str>) -> String {
    let mut html = String::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(letter) = rest.chars().next() {
        // `$#` and `x#y` are no comments.
        if comment.is_some_and(|mark| rest.starts_with(mark) && before == ' ') {
            html.push_str(&format!("<i>{}</i>", escaped(rest)));
            return html;
        }
        let length = match letter {
            '"' | '\'' if !before.is_alphanumeric() => string(rest, letter),
            _ => 0,
        };
        if length > 0 {
            html.push_str(&format!("<q>{}</q>", escaped(&rest[..length])));
            before = letter;
            rest = &rest[length..];
        } else {
            html.push_str(&escaped(letter.encode_utf8(&mut [0; 4])));
            before = letter;
            rest = &rest[letter.len_utf8()..];
        }
    }
    html
}

/// Returns the length of the string at the beginning, or 0 if it does not end in this line.
fn string(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if letter == quote && !is_escaped {
            return at + letter.len_utf8();
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_stays_as_it_is() {
        assert_eq!(typed("$ a <b>"), "<i>$ </i><b>a &lt;b&gt;</b>");
        assert_eq!(
            quoted("x = \"a # \\\" b\"  # it's", Some("#")),
            "x = <q>&quot;a # \\&quot; b&quot;</q>  <i># it's</i>"
        );
        assert_eq!(quoted("don't $# '", Some("#")), "don't $# '");
        assert_eq!(table("[a]  # b"), "<b>[a]</b>  <i># b</i>");
        assert!(block("sh a.sh", "x\n").contains("<figcaption>a.sh</figcaption>"));
    }
}
