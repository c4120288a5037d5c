#!/bin/bash
# Makes the passwords that are not there yet, and gives each program those that it needs and no others.
#
#   LANES_SECRETS_ROOT  a folder with a folder for each program: postgres, gateway, grafana
set -euo pipefail
umask 077

# make <folder> <name> <owner>
make() {
    local file="$LANES_SECRETS_ROOT/$1/$2.password"
    if [[ ! -s "$file" ]]; then
        od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > "$file.new"
        mv "$file.new" "$file"
    fi
    own "$1" "$2" "$3"
}

# give <folder> <name> <owner>: postgres's password of this name, copied
give() {
    cp "$LANES_SECRETS_ROOT/postgres/$2.password" "$LANES_SECRETS_ROOT/$1/$2.password"
    own "$1" "$2" "$3"
}

own() {
    # Volumes begin as root's; where this does not run as root, the folders are the caller's own.
    if [[ $(id -u) == 0 ]]; then
        chown "$3" "$LANES_SECRETS_ROOT/$1" "$LANES_SECRETS_ROOT/$1/$2.password"
    fi
}

for role in lanes lanes_gateway lanes_reader; do
    make postgres "$role" "$POSTGRES_UID"
done
give gateway lanes_gateway "$GATEWAY_UID"
give gateway lanes_reader "$GATEWAY_UID"
give grafana lanes_reader "$GRAFANA_UID"
make grafana admin "$GRAFANA_UID"
