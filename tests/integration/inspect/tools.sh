# Part of inspect.test: git over https and npm through the rules made for them, as people use them.
# shellcheck shell=bash
files=$work/servers/files

make_packages() {
  local name
  for name in hello-box bad-box other-box; do
    mkdir -p "$work/make/$name/package" "$files/npm/$name/-"
    echo "{\"name\":\"$name\",\"version\":\"1.2.3\",\"main\":\"index.js\"}" >"$work/make/$name/package/package.json"
    echo "module.exports = 'hello from $name'" >"$work/make/$name/package/index.js"
    tar -C "$work/make/$name" -czf "$files/npm/$name/-/$name-1.2.3.tgz" package
  done
  /usr/bin/python3 - "$files/npm" "$work" <<'PY'
import base64, hashlib, json, sys
locked = {"": {"name": "project", "dependencies": {"hello-box": "1.2.3"}}}
for name in ("hello-box", "bad-box", "other-box"):
    data = open(f"{sys.argv[1]}/{name}/-/{name}-1.2.3.tgz", "rb").read()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    for host in ("tool-npm", "tool-lock"):
        version = {"name": name, "version": "1.2.3", "main": "index.js", "dist": {"integrity": integrity, "tarball": f"https://{host}.wild.test/files/npm/{name}/-/{name}-1.2.3.tgz"}}
        open(f"{sys.argv[1]}/{name}/index.html", "w").write(json.dumps({"name": name, "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": version}}))
    if name != "other-box":
        locked["node_modules/" + name] = {"version": "1.2.3", "resolved": version["dist"]["tarball"], "integrity": integrity}
json.dump({"name": "project", "lockfileVersion": 3, "requires": True, "packages": locked}, open(sys.argv[2] + "/package-lock.json", "w"))
PY
  # Published anew under the same number: the registry's own digest agrees, the lock file's doesn't.
  echo "module.exports = 'something else'" >"$work/make/bad-box/package/index.js"
  tar -C "$work/make/bad-box" -czf "$files/npm/bad-box/-/bad-box-1.2.3.tgz" package
}

make_repositories() {
  local name
  export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.com GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.com
  mkdir -p "$work/servers/git"
  git init -q -b main "$work/source" && (cd "$work/source" && seq 20000 >numbers && echo "hello from git" >greeting && git add . && git commit -qm first)
  for name in hello other; do
    git init -q --bare -b main "$work/servers/git/$name.git"
    git -C "$work/servers/git/$name.git" config http.receivepack true
    git -C "$work/source" push -q "$work/servers/git/$name.git" main
  done
}

cat >"$work/tools.yaml" <<'YAML'
version: 1
name: tools-inspected
owner: tests
network:
  - { host: tool-git.wild.test, git: { repositories: [git/hello], push: false }, ca: ca.pem }
  - { host: tool-push.wild.test, git: { repositories: [git/hello], push: true }, ca: ca.pem }
  - { host: tool-npm.wild.test, registry: { protocol: npm, base: /files/npm, packages: [hello-box] }, ca: ca.pem }
  - { host: tool-lock.wild.test, registry: { protocol: npm, base: /files/npm, lock: package-lock.json }, ca: ca.pem }
YAML

# inside SCRIPT: runs it in a box of the tools' policy; sets $out, $err, $status, $reasons: of the requests that were refused
inside() {
  box --policy "$work/tools.yaml" --resolver "$resolver" --timeout 60s --env GIT_TERMINAL_PROMPT=0 --env npm_config_update_notifier=false --env npm_config_fund=false \
    --env npm_config_audit=false --env npm_config_fetch_retries=0 --env npm_config_progress=false -- sh -c "$1"
  reasons=$("$bulkhead" log "$id" --json --kind request | sed -nE '/"allow":false/s/.*"reason":"([a-z_]+)".*/\1/p' | sort -u | tr '\n' ' ')
}

works() { # works NAME SCRIPT WORDS
  inside "$2"
  contains "$1" "$3" "$out$([ "$status" = 0 ] || tail -5 "$work/err")"
  equal "$1: status" 0 "$status"
  equal "$1: nothing was refused" "" "$reasons"
}

refused() { # refused NAME SCRIPT REASON: the script fails, and SAYS nothing of the server
  inside "$2"
  if [ "$status" != 0 ] && [ "$status" != 124 ]; then ok "$1: fails"; else not_ok "$1: ended with $status"; fi
  equal "$1: the record" "$3 " "$reasons"
}

make_repositories
make_packages
clone='git clone -q https://tool-git.wild.test/git/hello.git && cd hello'
works "git clone and fetch" "$clone && git fetch -q && git ls-remote -q && cat greeting && tail -1 numbers" "20000"
refused "git push where only fetching is allowed" "$clone && git config user.name b && git config user.email b@example.com && echo more >>greeting && git commit -qam more && git push -q" push_not_allowed
equal "git push where only fetching is allowed: nothing arrived" "first" "$(git -C "$work/servers/git/hello.git" log -1 --format=%s main)"
refused "git clone of another repository" "git clone -q https://tool-git.wild.test/git/other.git" repository_not_allowed
works "git push" "git clone -q https://tool-push.wild.test/git/hello.git && cd hello && git config user.name b && git config user.email b@example.com &&
  seq 300000 >big && git add big && git commit -qm pushed && git push -q && echo done" "done"
equal "git push: arrived" "pushed" "$(git -C "$work/servers/git/hello.git" log -1 --format=%s main)"
lacks "no request for the other repository arrived" "/git/other.git" "$(cat "$SERVER_LOG")"

install='echo "{}" >package.json && npm install --registry https://tool-%s.wild.test/files/npm/ %s'
run_it='echo "console.log(require(process.argv[2]))" >index.js && node index.js %s'
# shellcheck disable=SC2059
works "npm install" "$(printf "$install && $run_it" npm hello-box hello-box)" "hello from hello-box"
# shellcheck disable=SC2059
refused "npm install of another package" "$(printf "$install" npm other-box)" package_not_allowed
refused "npm publish" 'printf "//tool-npm.wild.test/files/npm/:_authToken=x\n" >.npmrc; echo "{\"name\":\"hello-box\",\"version\":\"9.9.9\"}" >package.json && npm publish --registry https://tool-npm.wild.test/files/npm/' method_not_allowed
# shellcheck disable=SC2059
works "npm install by a lock file" "$(printf "$install && $run_it" lock hello-box hello-box)" "hello from hello-box"
# shellcheck disable=SC2059
refused "npm install of what isn't in the lock file" "$(printf "$install" lock other-box)" package_not_allowed
# shellcheck disable=SC2059
refused "npm install of a file that was exchanged" "$(printf "$install" lock bad-box)" digest_mismatch
lacks "no request for the other package arrived" "/npm/other-box" "$(cat "$SERVER_LOG")"
lacks "nothing was published" "https PUT" "$(cat "$SERVER_LOG")"
