#!/bin/bash
# Makes the cluster at the first start, brings roles, database and extension up to date at every start, then becomes the server.
#
#   PGDATA         the cluster's folder
#   LANES_SECRETS  a folder with <role>.password for lanes, lanes_gateway and lanes_reader
#   LANES_CONFIG   a folder with postgresql.conf and pg_hba.conf
#   LANES_SQL      a folder with roles.sql and database.sql
#   LANES_SOCKET   a folder for the server's socket
# Arguments go to the server: -c name=value
set -euo pipefail

PATH="/usr/lib/postgresql/${POSTGRES_MAJOR}/bin:$PATH"
export PGHOST="$LANES_SOCKET" PGUSER=postgres PGDATABASE=postgres

server_arguments=(
    -D "$PGDATA"
    -c "config_file=$LANES_CONFIG/postgresql.conf"
    -c "hba_file=$LANES_CONFIG/pg_hba.conf"
    -c "unix_socket_directories=$LANES_SOCKET"
    "$@"
)

if [[ ! -s "$PGDATA/PG_VERSION" ]]; then
    # In another folder first: an initdb that is stopped half way leaves nothing that looks like a cluster.
    rm -rf "$PGDATA.new"
    initdb --pgdata="$PGDATA.new" --username=postgres --encoding=UTF8 --locale=C.UTF-8 --data-checksums \
        --auth-local=peer --auth-host=scram-sha-256 --no-instructions
    mv -T "$PGDATA.new" "$PGDATA"
fi

# Nobody can connect from outside until everything is there.
postgres "${server_arguments[@]}" -c listen_addresses= &
server=$!
trap 'kill -INT "$server" 2>/dev/null || true; wait "$server" || true' EXIT
until pg_isready --quiet; do
    kill -0 "$server" || { echo "the server does not start" >&2; exit 1; }
    sleep 0.2
done

secret() { cat "$LANES_SECRETS/$1.password"; }
lanes=$(secret lanes) gateway=$(secret lanes_gateway) reader=$(secret lanes_reader)
# The passwords go by standard input: arguments can be seen by others.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --output=/dev/null <<SQL
BEGIN;
SET LOCAL log_statement = 'none';
SET LOCAL log_min_error_statement = 'panic';
SET LOCAL provision.lanes = '$lanes';
SET LOCAL provision.lanes_gateway = '$gateway';
SET LOCAL provision.lanes_reader = '$reader';
\i $LANES_SQL/roles.sql
COMMIT;
SELECT 'CREATE DATABASE lanes OWNER lanes' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'lanes') \gexec
\c lanes
\i $LANES_SQL/database.sql
SQL

trap - EXIT
kill -INT "$server"
wait "$server"
exec postgres "${server_arguments[@]}"
