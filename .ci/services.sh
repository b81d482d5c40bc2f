# shellcheck shell=bash
# Sourced by ./tests/run: the services that toolgate works with, the real ones. Those that are missing are installed, and what is installed here
# does not run by itself, neither now nor after the next boot. PostgreSQL is started once for all tests, with a data folder that goes with it;
# Redis and Prometheus are started by the tests that need one. Whoever has them elsewhere names them in the variables that are exported here.

# The first of these commands that is there.
first_command() {
    local name
    for name in "$@"; do
        command -v "$name" && return 0
    done
    return 1
}

# Debian keeps PostgreSQL's server programs off the PATH, in a folder for each version.
postgres_folder() {
    local folder
    folder=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    if [ -x "$folder/initdb" ]; then
        echo "$folder"
    elif command -v initdb >/dev/null; then
        dirname "$(readlink -f "$(command -v initdb)")"
    else
        return 1
    fi
}

# without_daemons CMD…: while it runs, no package starts what it brings.
without_daemons() (
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'as_root rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 755 "$policy"
    fi
    "$@"
)

need_services() {
    local missing=() units=()
    [ -n "${TOOLGATE_TEST_REDIS_SERVER:-}" ] || first_command redis-server valkey-server >/dev/null || missing+=(redis-server)
    [ -n "${TOOLGATE_TEST_POSTGRES:-}" ] || postgres_folder >/dev/null || missing+=(postgresql)
    [ -n "${TOOLGATE_TEST_PROMETHEUS:-}" ] || { command -v prometheus && command -v promtool; } >/dev/null || missing+=(prometheus)
    if [ ${#missing[@]} -gt 0 ]; then
        without_daemons need_packages "${missing[@]}" || exit 1
        units=("${missing[@]/%/.service}")
        [ ! -d /run/systemd/system ] || as_root systemctl --quiet disable "${units[@]}"
    fi
    export TOOLGATE_TEST_REDIS_SERVER=${TOOLGATE_TEST_REDIS_SERVER:-$(first_command redis-server valkey-server)}
    export TOOLGATE_TEST_PROMETHEUS=${TOOLGATE_TEST_PROMETHEUS:-$(command -v prometheus)}
    export TOOLGATE_TEST_PROMTOOL=${TOOLGATE_TEST_PROMTOOL:-$(command -v promtool)}
}

# PostgreSQL refuses to be root. It ends when this shell does, however that ends.
as_postgres() {
    local who=()
    [ "$(id -u)" -ne 0 ] || who=(--reuid postgres --regid postgres --clear-groups)
    exec setpriv "${who[@]}" --pdeathsig INT "$@"
}

# start_postgres FOLDER: a server of our own, its data in the folder. Nothing in it outlives the tests, so nothing waits for the disk.
start_postgres() {
    [ -z "${TOOLGATE_TEST_POSTGRES:-}" ] || return 0
    local folder=$1 programs password port
    programs=$(postgres_folder)
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    printf '%s\n' "$password" >"$folder/password"
    [ "$(id -u)" -ne 0 ] || chown -R postgres: "$folder"
    (cd "$folder" && as_postgres "$programs/initdb" --pgdata="$folder/data" --username=toolgate --pwfile="$folder/password" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync) >"$folder/log" 2>&1 || die "$(cat "$folder/log")"
    for port in $(shuf -i 5500-9900 -n 10); do
        (cd "$folder" && as_postgres "$programs/postgres" -D "$folder/data" -h 127.0.0.1 -p "$port" -k "$folder" -c max_connections=300 \
            -c fsync=off -c full_page_writes=off) >"$folder/log" 2>&1 &
        postgres=$!
        if postgres_is_ready "$programs" "$folder" "$port"; then
            export TOOLGATE_TEST_POSTGRES=postgres://toolgate:$password@127.0.0.1:$port/postgres
            return 0
        fi
    done
    die "PostgreSQL does not start: $(cat "$folder/log")"
}

# It is asked through its socket, which is ours: on the port there may be somebody else.
postgres_is_ready() {
    local programs=$1 folder=$2 port=$3 try
    for try in {1..300}; do
        kill -0 "$postgres" 2>/dev/null || return 1
        ! "$programs/pg_isready" --quiet --host="$folder" --port="$port" || return 0
        sleep 0.1
    done
    die "PostgreSQL is not ready after $((try / 10)) seconds: $(cat "$folder/log")"
}

stop_postgres() {
    [ -n "${postgres:-}" ] || return 0
    kill -INT "$postgres" 2>/dev/null || return 0
    wait "$postgres" || true
}
