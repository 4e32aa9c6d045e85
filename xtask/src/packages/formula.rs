//! The Homebrew formula, for the archives that there are.

use super::target::Target;

/// Makes the formula of archives with their checksums.
pub(super) fn make(version: &str, archives: &[(&Target, String)]) -> String {
    let mut systems = String::new();
    for system in ["macos", "linux"] {
        let mut blocks = String::new();
        for (target, checksum) in archives {
            let Some((_, cpu)) = target.brew.filter(|(name, _)| *name == system) else { continue };
            let archive = target.archive(version);
            blocks.push_str(&format!(
                "    on_{cpu} do\n      \
                 url \"https://github.com/stafette/stafette/releases/download/v{version}/{archive}.tar.gz\"\n      \
                 sha256 \"{checksum}\"\n    \
                 end\n"
            ));
        }
        if !blocks.is_empty() {
            systems.push_str(&format!("  on_{system} do\n{blocks}  end\n\n"));
        }
    }
    format!(
        "class Stafette < Formula\n  \
           desc \"Lets AI agents pass work to each other and to people without losing it\"\n  \
           homepage \"https://github.com/stafette/stafette\"\n  \
           version \"{version}\"\n  \
           license \"Apache-2.0\"\n\n\
         {systems}  \
           def install\n    \
             bin.install \"bin/stafette\"\n    \
             man1.install Dir[\"share/man/man1/*.1\"]\n    \
             bash_completion.install \"share/bash-completion/completions/stafette\"\n    \
             fish_completion.install \"share/fish/vendor_completions.d/stafette.fish\"\n    \
             zsh_completion.install \"share/zsh/site-functions/_stafette\"\n    \
             doc.install Dir[\"share/doc/stafette/*\"]\n  \
           end\n\n  \
           test do\n    \
             assert_match version.to_s, shell_output(\"#{{bin}}/stafette --version\")\n    \
             assert_match \"0 lost, 0 repeated\", shell_output(\"#{{bin}}/stafette demo --headless\")\n  \
           end\n\
         end\n"
    )
}
