#!/bin/sh
# Install what the tests of pages in a browser need: Debian's Chromium, its driver playwright (PyPI) and axe-core (npm).
# The first argument is the virtual environment. Where something cannot be installed it says so loudly, and those tests
# are skipped, saying so too.
set -eu
venv=$1
axe=axe-core@4.14.1
refuse() {
    echo "NOT RUN: the pages in a browser: $1" >&2
    exit 0
}
missing=
for pair in chromium:chromium chromium:chromium-sandbox npm:npm; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
    command -v apt-get >/dev/null 2>&1 || refuse "this is no Debian, and$missing are missing"
    [ "$(id -u)" -eq 0 ] || refuse "only root may install$missing"
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 ||
        refuse "apt-get could not install$missing"
fi
"$venv/bin/python" -c 'import playwright' 2>/dev/null ||
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet install -e '.[browser]' || refuse "pip could not install playwright"
if [ ! -f "$venv/axe/package/axe.min.js" ]; then
    mkdir -p "$venv/axe"
    (cd "$venv/axe" && npm pack --silent "$axe" >/dev/null && tar -xzf axe-core-*.tgz package/axe.min.js) ||
        refuse "npm could not fetch $axe"
fi
