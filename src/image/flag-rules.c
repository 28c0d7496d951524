/* SPDX-License-Identifier: Apache-2.0 */
#include "image/flag-rules.h"

#include "base/mem.h"

/* .git itself is judged by code (flags.c); these are hook managers. */
static const char *const git_hook[] = {
	".husky/", ".githooks/", ".git-hooks/", "git-hooks/", "githooks/", ".hooks/", ".lefthook/", ".lefthook-local/",
	"lefthook*.yml", "lefthook*.yaml", "lefthook*.toml", "lefthook*.json", ".lefthook*.yml", ".lefthook*.yaml",
	".lefthook*.toml", ".lefthook*.json", ".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml",
	".overcommit.yml", ".git_hooks/", ".lintstagedrc*", "lint-staged.config.*", ".simple-git-hooks.*",
	"simple-git-hooks.*", ".huskyrc*", "husky.config.*", "captainhook.json", "grumphp.yml", ".rusty-hook.toml",
	"prek.toml", NULL,
};

static const char *const git_config[] = {
	".gitconfig", ".gitmodules", ".gitattributes", ".lfsconfig", ".config/git/", ".hg/hgrc*", ".hgrc", ".hgsub",
	".jj/repo/*config*", ".jj/*config*", ".sl/config", ".svn/config", ".bzr/branch/branch.conf", ".bazaar/",
	".fossil-settings/", ".jjconfig.toml", "gitmod~*", "gitatt~*", "gi*~[0-9]*", NULL,
};

static const char *const shell_rc[] = {
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash.bashrc", ".bashrc.d/", ".profile",
	".login", ".logout", ".zshrc", ".zshrc.local", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".zsh/", ".oh-my-zsh/",
	".cshrc", ".tcshrc", ".kshrc", ".mkshrc", ".shrc", ".shinit", ".inputrc", ".envrc", ".envrc.*", ".direnvrc",
	".direnv/", ".env", ".env.local", ".autoenv*", "config.fish", ".config/fish/", ".config/nushell/", ".xprofile",
	".xinitrc", ".xsession", ".xsessionrc", ".xserverrc", ".pam_environment", ".tmux.conf", ".screenrc",
	".config/autostart/", ".config/systemd/", ".config/environment.d/", ".config/tmux/", ".config/direnv/",
	".config/mise/", ".local/bin/", ".local/share/applications/", ".ssh/", ".gdbinit", ".gdbearlyinit", ".lldbinit*",
	".pythonrc*", ".pythonstartup", ".irbrc", ".pryrc", ".rprofile", ".renviron", ".ghci", ".guile", ".sqliterc",
	".psqlrc", ".mailcap", ".mise.toml", "mise.toml", ".mise.*.toml", "mise.*.toml", ".mise/", ".rtx.toml", ".rvmrc",
	".octaverc", ".juliarc.jl", ".ocamlinit", ".node_repl_history.js", "sitecustomize.py", "usercustomize.py", "*.pth",
	".crontab", "crontab", "powershell_profile.ps1", "*profile.ps1", NULL,
};

static const char *const ci[] = {
	".github/workflows/", ".github/actions/", ".github/scripts/", ".gitea/workflows/", ".gitea/actions/",
	".forgejo/workflows/", ".forgejo/actions/", ".gitlab-ci.yml", ".gitlab-ci.yaml", "*.gitlab-ci.yml", ".gitlab/",
	".gitlab-ci/", ".circleci/", "jenkinsfile*", "*.jenkinsfile", ".jenkins/", ".travis.yml", ".travis/",
	"azure-pipelines*.yml", "azure-pipelines*.yaml", ".azure-pipelines/", ".azuredevops/", "bitbucket-pipelines.yml",
	".drone.yml", ".drone.jsonnet", ".drone.star", ".woodpecker.yml", ".woodpecker.yaml", ".woodpecker/", ".buildkite/",
	"appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".cirrus.star", "cloudbuild.yaml", "cloudbuild.yml",
	"cloudbuild.json", "codemagic.yaml", ".teamcity/", "buildspec*.yml", "buildspec*.yaml", "wercker.yml", ".semaphore/",
	".tekton/", ".ci/", ".build.yml", ".builds/", "netlify.toml", "vercel.json", "render.yaml", "action.yml",
	"action.yaml", ".prow.yaml", ".zuul.yaml", ".zuul.d/", "zuul.yaml", "zuul.d/", ".harness/", ".argo-ci/",
	".sourcehut/", "bamboo-specs/", ".copr/", ".packit.yaml", ".packit.yml", ".readthedocs.yml", ".readthedocs.yaml",
	"procfile", NULL,
};

static const char *const editor[] = {
	".vscode/", ".vscode-test*", ".vscode-insiders/", "*.code-workspace", ".idea/", ".run/", ".fleet/", ".zed/", ".vim/",
	".vimrc", "_vimrc", ".gvimrc", "_gvimrc", ".nvimrc", ".nvim.lua", ".nvim/", ".exrc", ".lvimrc", ".config/nvim/",
	".config/helix/", ".emacs", ".emacs.d/", ".config/emacs/", ".dir-locals.el", ".dir-locals-2.el", ".spacemacs",
	".spacemacs.d/", ".doom.d/", "*.sublime-project", "*.sublime-workspace", "*.sublime-build", "*.sublime-settings",
	".vs/", ".settings/", ".project", ".classpath", ".cproject", ".devcontainer/", ".devcontainer.json",
	"devcontainer.json", ".gitpod.yml", ".gitpod.dockerfile", ".helix/", ".kakrc", ".kak/", ".nova/", ".theia/",
	".atom/", ".ycm_extra_conf.py", ".replit", "replit.nix", ".clangd", ".rust-analyzer.toml", "rust-analyzer.toml",
	".netbeans/", "nbproject/", ".ionide/", ".metals/", ".lsp/", ".clj-kondo/", ".vimspector.json", ".neoconf.json",
	".nvimlog.lua", ".micro/", NULL,
};

static const char *const agent_config[] = {
	".claude/", ".claude.json", ".claude-plugin/", "claude.md", "claude.local.md", "claude.*.md", ".mcp.json",
	"mcp.json", ".mcp/", "mcp_config.json", ".cursor/", ".cursorrules", "agents.md", "agents.override.md",
	"agents.local.md", "agent.md", ".codex/", "codex.md", "gemini.md", ".gemini/", ".github/copilot-instructions.md",
	".github/instructions/", ".github/prompts/", ".github/chatmodes/", ".github/agents/", ".github/skills/",
	".github/hooks/", ".github/copilot*", ".copilot/", ".windsurf/", ".windsurfrules", ".codeium/", ".aider*",
	".continue/", ".continuerc.json", ".continuerules", ".clinerules", ".clinerules/", ".cline/", ".roo/", ".roorules*",
	".roomodes", ".kilocode/", ".kilocodemodes", ".opencode/", "opencode.json", "opencode.jsonc", ".amazonq/", ".kiro/",
	".junie/", ".augment/", ".augment-guidelines", ".augmentignore", ".goosehints", ".goose/", ".qwen/", "qwen.md",
	".trae/", ".agents/", ".agent/", ".rules", ".rules/", ".crush/", "crush.json", ".crush.json", ".crush.md",
	"crush.md", ".zencoder/", ".factory/", "warp.md", ".warp/", ".openhands/", ".openhands_instructions", ".devin/",
	".pi/", ".amp/", "amp.md", ".tabnine/", ".sourcegraph/", ".cody/", ".ruler/", ".vibe/", ".firebender*", ".idx/",
	".bolt/", ".grok/", "skill.md", ".skills/", ".prompts/", "copilot-instructions.md", "*.instructions.md",
	"*.prompt.md", "*.chatmode.md", "bulkhead.yaml", "bulkhead.yml", ".bulkhead/", ".bulkhead.yaml", NULL,
};

static const char *const build[] = {
	"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/", ".pnp.*", ".pnpmfile.*", "bunfig.toml", "deno.json",
	"deno.jsonc", "makefile*", "gnumakefile", "bsdmakefile", "*.mk", "*.mak", "cmakelists.txt", "*.cmake",
	"cmakepresets.json", "cmakeuserpresets.json", "meson.build", "meson_options.txt", "meson.options", "build",
	"build.bazel", "workspace", "workspace.bazel", "module.bazel", ".bazelrc", "*.bzl", "buck", "build.rs", "cargo.toml",
	".cargo/", "rust-toolchain*", "setup.py", "setup.cfg", "pyproject.toml", "conftest.py", "tox.ini", "noxfile.py",
	"pytest.ini", "pip.conf", ".pip/", "pylintrc", ".pylintrc", "*.gradle", "*.gradle.kts", "gradlew*", "gradle/",
	"gradle.properties", "mvnw*", ".mvn/", "pom.xml", "build.xml", "rakefile*", "gemfile*", "*.gemspec", ".bundle/",
	"*.rake", "dockerfile*", "*.dockerfile", "containerfile*", "docker-compose*", "compose.yml", "compose.yaml",
	"vagrantfile", "justfile", ".justfile", "taskfile.yml", "taskfile.yaml", "magefile.go", "sconstruct", "sconscript",
	"wscript", "configure", "configure.ac", "configure.in", "autogen.sh", "bootstrap", "*.am", "*.m4", "*.csproj",
	"*.fsproj", "*.vcxproj*", "*.targets", "*.props", "*.sln", "nuget.config", "composer.json", "mix.exs",
	"rebar.config", "build.zig", "flake.nix", "shell.nix", "default.nix", "gulpfile.*", "gruntfile.*", "webpack.*",
	"vite.config.*", "rollup.config.*", "babel.config.*", ".babelrc*", "jest.config.*", "vitest.config.*",
	"playwright.config.*", "cypress.config.*", "eslint.config.*", ".eslintrc*", "prettier.config.*", ".prettierrc*",
	".stylelintrc*", "stylelint.config.*", "next.config.*", "nuxt.config.*", "astro.config.*", "svelte.config.*",
	"tailwind.config.*", "postcss.config.*", "tsup.config.*", "turbo.json", "nx.json", "lerna.json", "project.json",
	".mocharc*", ".swcrc", "build.sbt", "project.clj", "deps.edn", "package.swift", "podfile", "dune", "dune-project",
	"makefile.pl", "build.pl", "*.tf", "ansible.cfg", "*.nix", "snapcraft.yaml", "debian/", "*.spec", "pkgbuild",
	"*.podspec", "tsconfig*.json", "pixi.toml", "uv.toml", "poetry.toml", "manage.py", "invoke.yaml", "tasks.py",
	"fabfile.py", NULL,
};

const struct flag_rule flag_rules[] = {
	{ CHANGE_FLAG_GIT_HOOK, git_hook },
	{ CHANGE_FLAG_GIT_CONFIG, git_config },
	{ CHANGE_FLAG_SHELL_RC, shell_rc },
	{ CHANGE_FLAG_CI, ci },
	{ CHANGE_FLAG_EDITOR, editor },
	{ CHANGE_FLAG_AGENT_CONFIG, agent_config },
	{ CHANGE_FLAG_BUILD, build },
};
const size_t n_flag_rules = ARRAY_LEN(flag_rules);
