//! Giving a program an MCP server.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use stafette_core::fields::shell_word;
use stafette_core::workflow::Runner;

use super::Mcp;
use crate::Job;

/// An MCP server that is started by a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpServer {
    /// The program to start.
    pub command: String,
    pub arguments: Vec<String>,
}

/// The steps that make an MCP server known to a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct McpSetup {
    /// The arguments to add to its command.
    pub arguments: Vec<String>,
    /// The environment variables to set.
    pub env: Vec<(String, String)>,
    /// A file to write, with its content.
    pub file: Option<(PathBuf, String)>,
}

/// Stafette's own server, for an agent that is to have it.
pub(crate) fn server(job: &Job) -> Option<McpServer> {
    // Without a token it could act for no agent.
    let wanted = job.agent.mcp && job.token().is_some();
    let command = job.program.to_string_lossy().into_owned();
    wanted.then(|| McpServer { command, arguments: vec!["mcp".to_owned()] })
}

/// The steps that make Stafette's own server known to the agent of a job; `None` where the profile
/// has none, or the runner passes the server itself.
pub(crate) fn setup(job: &Job) -> Option<McpSetup> {
    if !matches!(job.agent.runner, Runner::Exec | Runner::Pty) {
        return None;
    }
    let profile = job.profile.as_ref()?;
    // It names no turn and no token, so all agents of a profile share it.
    let place = job.scratch.join(format!("mcp-{}.json", profile.name));
    Some(profile.mcp.as_ref()?.setup(&server(job)?, &place))
}

/// The file that the agent of a job reads its servers from, if it reads one.
pub fn config_file(job: &Job) -> Option<PathBuf> {
    setup(job)?.file.map(|(path, _)| path)
}

/// True if the agent of a job has Stafette's tools.
pub(crate) fn knows_tools(job: &Job) -> bool {
    match job.agent.runner {
        Runner::Acp => server(job).is_some(),
        _ => setup(job).is_some(),
    }
}

/// Writes the file that the agent of a job reads its servers from, if it reads one.
pub(crate) fn lay(job: &Job) -> io::Result<()> {
    let Some((path, text)) = setup(job).and_then(|setup| setup.file) else { return Ok(()) };
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    // Another agent may be reading it.
    let fresh = path.with_extension(format!("{}.new", job.order.agent));
    stafette_disk::write(&fresh, text)?;
    std::fs::rename(fresh, path)
}

impl Mcp {
    /// The steps for one server. `config_file` is the path for a file.
    pub fn setup(&self, server: &McpServer, config_file: &Path) -> McpSetup {
        let fill = |text: &String| fill(text, server, config_file);
        McpSetup {
            arguments: self.arguments.iter().map(fill).collect(),
            env: self.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
            file: self.file.as_ref().map(|text| (config_file.to_owned(), fill(text))),
        }
    }
}

/// Replaces each placeholder once: the inserted text is never searched again.
fn fill(text: &str, server: &McpServer, config_file: &Path) -> String {
    let line = || {
        let words = std::iter::once(&server.command).chain(&server.arguments);
        words.map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    };
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find('}').map_or(rest.len(), |end| end + 1);
        let value = match &rest[..end] {
            "{mcp_command}" => json!(server.command).to_string(),
            "{mcp_arguments}" => json!(server.arguments).to_string(),
            "{mcp_words}" => {
                let words = std::iter::once(&server.command).chain(&server.arguments);
                json!(words.collect::<Vec<_>>()).to_string()
            }
            "{mcp_line}" => line(),
            "{config_file}" => config_file.to_string_lossy().into_owned(),
            _ => {
                filled.push('{');
                rest = &rest[1..];
                continue;
            }
        };
        filled.push_str(&value);
        rest = &rest[end..];
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_takes_the_place_of_its_placeholders() {
        let mcp = Mcp {
            arguments: vec!["--with".into(), "{mcp_line}".into(), "-c={config_file}".into()],
            env: [("SETTINGS".to_owned(), "{config_file}".to_owned())].into(),
            file: Some(r#"{"a":{"command":{mcp_command},"args":{mcp_arguments}}}"#.into()),
        };
        let server = McpServer {
            command: "/opt/my tools/stafette".into(),
            arguments: vec!["mcp".into(), "{config_file}".into()],
        };
        let setup = mcp.setup(&server, Path::new("/run/x.json"));
        assert_eq!(setup.arguments[1], "'/opt/my tools/stafette' mcp '{config_file}'");
        assert_eq!(setup.arguments[2], "-c=/run/x.json");
        assert_eq!(setup.env, [("SETTINGS".to_owned(), "/run/x.json".to_owned())]);
        let (_, text) = setup.file.unwrap();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["a"]["args"][1], "{config_file}", "what is put in is left alone");
    }
}
