#!/bin/sh
# Install the Debian packages that `make test-system` needs. Status 77, and a loud word, where that cannot be done.
set -eu
missing=
for pair in promtool:prometheus; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
[ -n "$missing" ] || exit 0
refuse() {
    echo "NOT RUN: make test-system needs the Debian packages$missing: $1" >&2
    exit 77
}
command -v apt-get >/dev/null 2>&1 || refuse "this is no Debian"
[ "$(id -u)" -eq 0 ] || refuse "only root may install them"
# Nothing is started: what a package would run as a service is none of the tests'.
if [ ! -e /usr/sbin/policy-rc.d ]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
fi
apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 ||
    refuse "apt-get could not install them"
