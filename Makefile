# How `sam build` builds the functions: all of them by one cargo build, which every target after the first finds done.
#
#   STORYBUS_ARCHITECTURE  arm64 (as the template's own default) or x86_64
#   STORYBUS_PROFILE       a profile of Cargo.toml
#   STORYBUS_CARGO         `plain`: for this very machine, with its own linker, as the local stack wants it.
#                          Otherwise cargo-lambda builds for Lambda's machines, on any of ours.
#   STORYBUS_SELECTION     with `plain`, what cargo is asked to build instead of the functions alone. `--workspace --bins --test NAME`
#                          has the features of `cargo test --workspace`, so that after it nothing is built twice.

STORYBUS_ARCHITECTURE ?= arm64
STORYBUS_PROFILE ?= lambda
STORYBUS_SELECTION ?= $(PACKAGES)
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)

# A new instance does not spend its first milliseconds on a second source of entropy: docs/adr/0009-functions-without-jitter-entropy.md.
ifeq ($(STORYBUS_PROFILE),lambda)
export AWS_LC_SYS_NO_JITTER_ENTROPY = 1
endif

PACKAGES = $(patsubst functions/%/Cargo.toml,-p storybus-fn-%,$(wildcard functions/*/Cargo.toml))

build-PublishFunction: NAME = publish
build-PullFunction: NAME = pull
build-TokenFunction: NAME = token
build-AdminFunction: NAME = admin
build-ReplayFunction: NAME = replay
build-RedriveFunction: NAME = redrive
build-ArchiveFunction: NAME = archive
build-DeadLettersFunction: NAME = dead-letters
build-ActivityFunction: NAME = activity
build-SetupFunction: NAME = setup

ifeq ($(STORYBUS_CARGO),plain)
build-%Function:
	cargo build --locked --profile $(STORYBUS_PROFILE) $(STORYBUS_SELECTION)
	strip -o "$(ARTIFACTS_DIR)/bootstrap" "$(TARGET_DIR)/$(patsubst dev,debug,$(STORYBUS_PROFILE))/$(NAME)"
else
build-%Function:
	cargo lambda build --locked --profile $(STORYBUS_PROFILE) --target $(if $(filter arm64,$(STORYBUS_ARCHITECTURE)),aarch64,x86_64)-unknown-linux-gnu $(PACKAGES)
	cp "$(TARGET_DIR)/lambda/$(NAME)/bootstrap" "$(ARTIFACTS_DIR)/bootstrap"
endif
