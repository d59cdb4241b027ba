#!/usr/bin/env bash
# run.sh PERF [ROUNDS [WARM [STARTS]]]   The functions of AWS, measured outside AWS, with the harness in PERF; docs/benchmarks.md says what comes out.
#
# PERF is the folder of the harness and of the functions to compare with (its README says how they are set up). Floor, ours and
# the others are taken in turn, over HTTP and over TLS, so that all of them meet the same noise: compare ratios.
# CPUs: two are enough; anything else that runs beside it is in the figures.
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
perf=$(cd "$1" && pwd)
rounds=${2:-5} warm=${3:-500} starts=${4:-10}

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
out=$target/bench-lambda
ours=(publish-event publish-snapshot pull-receive-10 pull-ack-10 token archive-10)
functions=(publish pull token archive)

# shellcheck disable=SC1091
. "$perf/common.sh" # PERF_OUT, SOM
export PERF_OUT SOM

# What is measured is what the Makefile builds for AWS, for this machine.
packages=()
for function in "${functions[@]}"; do packages+=(-p "storybus-fn-$function"); done
(cd "$root" && AWS_LC_SYS_NO_JITTER_ENTROPY=1 cargo build --locked --profile lambda "${packages[@]}")

parts=()
[ -x "$PERF_OUT/target/tools/harness" ] && [ -x "$PERF_OUT/target/release/floor" ] || parts+=(rust)
[ -r "$PERF_OUT/node/dist/pt/index.js" ] || parts+=(node)
[ -x "$VENV/bin/python" ] && [ -d "$PERF_OUT/py/pt" ] || parts+=(py)
[ -r "$PERF_OUT/keys/server.pem" ] || parts+=(keys)
[ ${#parts[@]} -eq 0 ] || "$perf/setup.sh" "${parts[@]}"

python3 "$here/prepare.py" "$out" "$target/lambda" "$SOM"
export FAKEAWS_FLAGS="--answers $out/answers.json"

results=()
suite() { # ENDPOINT WARM STARTS ROUNDS FUNCTION...
  local lines
  lines=$("$perf/suite.sh" "$@") || { echo "$lines" >&2; exit 1; }
  results+=("$(tail -n 1 <<<"$lines")")
}
measured=()
for name in "${ours[@]}"; do measured+=("$out/$name.sh"); done
suite http "$warm" "$starts" "$rounds" rust-floor "${measured[@]}" node-pt py-pt
suite tls "$warm" "$starts" "$rounds" rust-floor "$out/publish-event.sh" "$out/publish-snapshot.sh" node-pt py-pt

python3 "$here/report.py" "$target/lambda" "${results[@]}"
