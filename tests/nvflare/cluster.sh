# shellcheck shell=bash
# A Slurm cluster of one node: controller, node daemon, accounting with its database, and MUNGE. They are Debian's packages,
# unpacked below build/, not installed, because some of them start servers. slurm.sh sources this file.
# shellcheck disable=SC2034  # slurm.sh prints REASON

PACKAGES=(slurmctld slurmd slurmdbd slurm-client munge mariadb-server-core mariadb-client-core)
UNPACKED=$ROOT/build/slurm

# Slurm finds its plugins by absolute paths. So /usr, with the packages on top, is another one for this script and its children.
enter_slurm() { # SCRIPT: becomes the script with the packages in /usr; sets REASON and returns where that is impossible
    REASON="the packages cannot be unpacked"
    command -v apt-get >/dev/null && unpack_slurm >"$SCRATCH/unpack" 2>&1 || return 0
    REASON="no permission to mount the packages over /usr"
    unshare --mount sh -c "$MOUNT_SLURM" _ "$UNPACKED" true 2>/dev/null || return 0
    rm -rf "$SCRATCH"
    IN_SLURM=yes exec unshare --mount sh -c "$MOUNT_SLURM" _ "$UNPACKED" "$1"
}
# shellcheck disable=SC2016  # sh expands it
MOUNT_SLURM='mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr && exec "$2"'

unpack_slurm() (
    [ ! -e "$UNPACKED/ready" ] || return 0
    set -e
    rm -rf "$UNPACKED"
    mkdir -p "$UNPACKED/packages" && cd "$UNPACKED/packages"
    apt-get -qq update || true
    missing=$(apt-get install --simulate --no-install-recommends "${PACKAGES[@]}" | sed -n 's/^Inst \([^ ]*\).*/\1/p')
    # shellcheck disable=SC2086  # words
    apt-get -qq download $missing
    for package in *.deb; do dpkg -x "$package" ..; done
    # The package's scripts make these links. slurmctld compares its own name.
    for name in slurmctld slurmd slurmdbd slurmstepd; do
        [ ! -e "../usr/sbin/$name-wlm" ] || ln -sf "$name-wlm" "../usr/sbin/$name"
    done
    rm -rf "$UNPACKED/packages"
    : >"$UNPACKED/ready"
)

# Each setting that needs cgroups, a resolver or fixed paths has another value.
configure_slurm() { # FOLDER
    local folder=$1 host user ports
    host=$(uname -n | cut -d . -f 1)
    user=$(id -un)
    read -ra ports < <(free_ports 3)
    mkdir -p "$folder"/{munge,db,state,spool}
    chmod 700 "$folder/munge"
    cat >"$folder/slurmdbd.conf" <<END
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
DbdHost=$host
DbdAddr=127.0.0.1
DbdPort=${ports[2]}
SlurmUser=$user
PidFile=$folder/slurmdbd.pid
LogFile=$folder/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=$user
StorageLoc=slurm
END
    chmod 600 "$folder/slurmdbd.conf"
    cat >"$folder/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=${ports[2]}
AccountingStoragePass=$folder/munge/socket
JobAcctGatherType=jobacct_gather/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=1000
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
END
    export SLURM_CONF=$folder/slurm.conf
}

start_slurm() { # FOLDER
    local folder=$1 database=(--no-defaults --user="$(id -un)" --datadir="$1/db")
    mungekey --create --keyfile "$folder/munge/key"
    munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
        --log-file="$folder/munge/munged.log" --seed-file="$folder/munge/seed"
    mariadb-install-db "${database[@]}" --auth-root-authentication-method=normal --skip-test-db
    mariadbd "${database[@]}" --socket="$folder/db.socket" --pid-file="$folder/db.pid" --skip-networking --tmpdir="$folder" &
    eventually test -S "$folder/db.socket"
    MYSQL_UNIX_PORT=$folder/db.socket slurmdbd
    eventually sacctmgr --immediate --quiet add cluster test
    sacctmgr --immediate --quiet add account test
    sacctmgr --immediate --quiet add user "$(id -un)" account=test || true # root exists
    slurmctld
    slurmd
    eventually node_is_idle
}
node_is_idle() { sinfo --noheader --format=%t | grep -qx idle; }
