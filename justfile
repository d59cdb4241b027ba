# Recipes are the steps of continuous integration. `just --list` shows them.

set shell := ["bash", "-euo", "pipefail", "-c"]

# What a change must pass before it is proposed
check: fmt clippy deny machete boundaries doc test

# The tests: the README's own command
test:
    cargo test --workspace

# The tests of the build with the fault switch
test-faults:
    cargo test -p storybus-cli --features faults

fmt:
    cargo fmt --all --check

clippy:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Licences, bans and sources; needs no network
deny:
    cargo deny --offline --all-features check licenses bans sources

# The RustSec advisories; needs the network
audit:
    cargo deny --all-features check advisories

# Dependencies that nothing uses
machete:
    cargo machete

# The core pulls in no engine, no runtime, no SDK
boundaries:
    .ci/boundaries

# Our own schema checks against an independent validator over the published schemas, in SOM_DIR
conformance SOM_DIR:
    .ci/som-conformance {{ SOM_DIR }}

# A bus by its own OpenAPI document: thousands of requests, right and wrong
schemathesis:
    cargo build --release -p storybus-cli
    .ci/schemathesis target/release/storybus

# The rule ids of the wire contract's text against the code's table
rules CONTRACT:
    .ci/rules {{ CONTRACT }}

# The wire contract from outside: ACCEPT is the path of accept.py
accept ACCEPT *ARGS:
    cargo build --release -p storybus-cli
    python3 {{ ACCEPT }} --serve target/release/storybus {{ ARGS }}

# The model explorations at length
explore:
    STORYBUS_EXPLORE=deep cargo test --release -p storybus-testkit -- --nocapture

# The functions on AWS killed, frozen and cut off at every call of theirs: `whole`, or `deep` at the times of a deployment
proof LENGTH="whole":
    STORYBUS_PROOF={{ LENGTH }} cargo test --workspace --test publish --test jobs --test race -- --nocapture

# The way from a producer's transaction to a consumer while everything on it fails, at length; a seed draws what an earlier run drew
chaos LENGTH="whole":
    STORYBUS_CHAOS={{ LENGTH }} cargo test -p storybus-cli --test chaos -- --nocapture

# What docs/benchmarks.md reports: JSON and schema, the engine beside SQLite itself, then the whole bus over HTTP
bench MESSAGES="1000000":
    cargo build --release -p storybus-cli
    cargo run --release -p storybus-json --example bench_json
    cargo run --release -p storybus-som --example bench_som
    mkdir -p target/bench
    cargo run --release -p storybus-sqlite --example bench_engine -- --dir target/bench/engine --messages {{ MESSAGES }} --stories --body 4000
    cargo run --release -p storybus-sqlite --example bench_archive -- size
    cargo run --release -p storybus-sqlite --example bench_archive -- cost
    cargo run --release -p storybus-sqlite --example bench_archive -- history
    cargo run --release -p storybus-sqlite --example bench_archive -- retention
    cargo run --release -p storybus-cli --example load -- --serve target/release/storybus --connections 16
    cargo run --release -p storybus-cli --example load -- --serve target/release/storybus --connections 16 --messages 50000 --replay --no-pull

# What docs/benchmarks.md reports of the sender: relays between an outbox and the bus, with the bars; takes a quarter of an hour and 10 GB
bench-sender *ARGS:
    cargo build --release -p storybus-cli
    cargo run --release -p storybus-cli --example bench_sender -- --storybus target/release/storybus {{ ARGS }}

# What docs/benchmarks.md reports of the functions on AWS, in ten minutes: PERF is the folder of the harness and of what to compare with
bench-lambda PERF *ARGS:
    bench/lambda/run.sh {{ PERF }} {{ ARGS }}

# The bus of template.yaml on this machine, on an emulator of AWS; the last line is its credentials file
local-aws *ARGS:
    local-aws/up {{ ARGS }}

# Stops it
local-aws-down:
    local-aws/down

# The template: linters, and rules of our own about access, encryption and names
template:
    .ci/template

# The bus on this machine, with something to try it with
demo:
    cargo run --release -p storybus-cli -- serve --demo
