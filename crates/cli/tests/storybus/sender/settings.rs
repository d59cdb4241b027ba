//! Which settings count, and what is never shown.

use super::{QUICK, bare, consumed, states};
use crate::client::snapshot;
use crate::verbs::{told, with_bus, write};

#[test]
fn a_flag_goes_before_a_variable() {
    let (home, bus) = with_bus(&["--demo"]);
    write(&home, "1.json", &snapshot("s", 1));
    let base = format!("http://{}", bus.address());
    let send = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = bare(&home, &["send", "1.json", "--max-attempts", "1"]);
        told(
            &command
                .args(QUICK)
                .args(words)
                .envs(variables.iter().copied())
                .output()
                .unwrap(),
        )
    };
    let id = bus.text("/producer/client_id").to_owned();
    let secret = bus.text("/producer/client_secret").to_owned();
    std::fs::write(home.path("secret"), format!("{secret}\n")).unwrap();
    let (code, _, err) = send(&[], &[]);
    assert!(code == 2 && err.contains("which bus?"), "{err}");
    let (code, _, err) = send(&["--url", &base, "--client-id", &id], &[]);
    assert!(code == 2 && err.contains("the secret of"), "{err}");
    let variables = [
        ("STORYBUS_URL", "http://127.0.0.1:1/v1/"),
        ("STORYBUS_CLIENT_ID", "pnobody"),
        ("STORYBUS_CLIENT_SECRET", "wrong"),
        ("STORYBUS_OUTBOX", "of-variable.db"),
    ];
    let flags = [
        "--url",
        &base,
        "--client-id",
        &id,
        "--client-secret-file",
        "secret",
        "--outbox",
        "sqlite:of-flag.db",
    ];
    let (code, out, err) = send(&flags, &variables);
    assert_eq!(code, 0, "{out}{err}");
    assert!(home.path("of-flag.db").exists() && !home.path("of-variable.db").exists());
    let variables = [
        ("STORYBUS_URL", base.as_str()),
        ("STORYBUS_CLIENT_ID", &id),
        ("STORYBUS_CLIENT_SECRET", &secret),
        ("STORYBUS_OUTBOX", "of-variable.db"),
    ];
    let (code, out, err) = send(&[], &variables);
    assert_eq!(code, 0, "{out}{err}");
    assert!(home.path("of-variable.db").exists() && !home.path("storybus-outbox.db").exists());
    let (code, out, err) = send(&["--credentials-file", "kept.json"], &[]);
    assert_eq!((code, states(&home).len()), (0, 1), "{out}{err}");
    // A credentials file as a flag goes before variables that are about another bus.
    write(&home, "1.json", &snapshot("s", 2));
    let variables = [
        ("STORYBUS_URL", "http://127.0.0.1:1/v1/"),
        ("STORYBUS_CLIENT_ID", "pnobody"),
    ];
    let (code, out, err) = send(&["--credentials-file", "kept.json"], &variables);
    assert_eq!((code, states(&home).len()), (0, 2), "{out}{err}");
    let (code, _, err) = send(&[], &variables);
    assert!(
        code == 2
            && err.contains("the secret of pnobody is missing (the client id is from STORYBUS_CLIENT_ID)"),
        "{err}"
    );
    assert_eq!(consumed(&home, &bus).len(), 2);
}

#[test]
fn a_password_is_warned_of_on_the_command_line_and_never_shown() {
    let (home, _bus) = with_bus(&["--demo"]);
    write(&home, "1.json", &snapshot("s", 1));
    let address = "postgres://u:hunter2@127.0.0.1:1/db";
    for verb in [
        &["send", "1.json", "--credentials-file", "kept.json"][..],
        &["outbox", "list"],
    ] {
        let by_flag = bare(&home, verb).args(["--outbox", address]).output().unwrap();
        let (code, out, err) = told(&by_flag);
        assert!(
            code == 1 && err.contains("other users of this machine can see the password"),
            "{err}"
        );
        assert!(
            err.contains("cannot be reached") && !format!("{out}{err}").contains("hunter2"),
            "{err}"
        );
        let by_variable = bare(&home, verb)
            .env("STORYBUS_OUTBOX", address)
            .output()
            .unwrap();
        let (code, out, err) = told(&by_variable);
        assert!(code == 1 && !err.contains("other users"), "{err}");
        assert!(!format!("{out}{err}").contains("hunter2"), "{err}");
    }
    for verb in ["send", "outbox", "relay"] {
        let help = bare(&home, &[verb, "--help"])
            .env("STORYBUS_OUTBOX", address)
            .output()
            .unwrap();
        let (code, out, _) = told(&help);
        assert!(
            code == 0 && out.contains("STORYBUS_OUTBOX") && !out.contains("hunter2"),
            "{out}"
        );
        for flag in ["--outbox", "storybus-outbox.db"] {
            assert!(out.contains(flag), "{verb} --help does not tell of {flag}");
        }
    }
    for verb in ["send", "relay"] {
        let (_, out, _) = told(&bare(&home, &[verb, "--help"]).output().unwrap());
        for flag in [
            "--max-attempts",
            "--base-delay-ms",
            "--max-delay-ms",
            "--timeout-ms",
            "--url",
            "--profile",
        ] {
            assert!(out.contains(flag), "{verb} --help does not tell of {flag}");
        }
        for default in [
            "[default: 5]",
            "[default: 500]",
            "[default: 30000]",
            "[default: 10000]",
        ] {
            assert!(out.contains(default), "{verb} --help does not tell of {default}");
        }
    }
}
