//! Profiles: buses by name.

use super::run;
use crate::bus::Home;
use crate::verbs::{told, with_bus};

/// Runs a verb with no other setting than those that it is given.
fn bare(home: &Home, words: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = std::process::Command::new(crate::bus::BINARY);
    command
        .args(words)
        .current_dir(home.folder.path())
        .env_clear()
        .env("HOME", home.folder.path())
        .envs(variables.iter().copied());
    told(&command.output().unwrap())
}

#[test]
fn a_profile_says_which_bus_and_as_whom() {
    let (home, bus) = with_bus(&["--demo"]);
    std::fs::create_dir_all(home.path("cfg/storybus")).unwrap();
    std::fs::write(
        home.path("cfg/storybus/op.secret"),
        bus.text("/operator/client_secret"),
    )
    .unwrap();
    let config = format!(
        "[profiles.here]\nurl = \"http://{}\"\nclient_id = \"{}\"\nclient_secret_file = \"op.secret\"\nworkspace = \"demo\"\n\n[profiles.file]\ncredentials_file = \"{}\"\n\n[profiles.away]\nurl = \"http://127.0.0.1:9\"\nclient_id = \"o1\"\n",
        bus.address(),
        bus.text("/operator/client_id"),
        home.path("kept.json").display(),
    );
    std::fs::write(home.path("cfg/storybus/config.toml"), &config).unwrap();
    let xdg = home.path("cfg");
    let xdg = ("XDG_CONFIG_HOME", xdg.to_str().unwrap());
    let (code, out, err) = bare(&home, &["profiles", "list"], &[xdg]);
    assert!(
        code == 0
            && out.contains("here")
            && out.contains("op.secret")
            && out.contains("STORYBUS_CLIENT_SECRET"),
        "{out}{err}"
    );
    let (_, out, _) = bare(&home, &["profiles", "list", "--json"], &[xdg]);
    let listed: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(listed["profiles"][2]["name"], "here");
    assert!(!out.contains(bus.text("/operator/client_secret")));
    for (profile, variables) in [
        ("here", vec![xdg]),
        ("file", vec![xdg]),
        // A profile goes before the variables, which are about another bus.
        (
            "here",
            vec![
                xdg,
                ("STORYBUS_URL", "http://127.0.0.1:9"),
                ("STORYBUS_CLIENT_ID", "o2"),
                ("STORYBUS_CLIENT_SECRET", "wrong"),
                ("STORYBUS_CREDENTIALS", "/none"),
                ("STORYBUS_WORKSPACE", "none"),
            ],
        ),
    ] {
        let (code, out, err) = bare(&home, &["consumers", "list", "--profile", profile], &variables);
        assert!(
            code == 0 && out.contains("demo consumer"),
            "{profile}: {out}{err}"
        );
    }
    let (code, _, err) = bare(&home, &["status"], &[xdg, ("STORYBUS_PROFILE", "here")]);
    assert!(
        code == 0 && err.contains("other users can read the secret in "),
        "{err}"
    );
    let named = home.path("cfg/storybus/config.toml");
    let named = named.to_str().unwrap();
    let (code, _, err) = bare(&home, &["status", "--profile", "here", "--config", named], &[]);
    assert_eq!(code, 0, "{err}");
    // Flags go before it, and a secret stays with its client.
    let (code, _, err) = bare(
        &home,
        &["status", "--profile", "here", "--client-id", "o9"],
        &[xdg],
    );
    assert!(code == 2 && err.contains("the secret of o9 is missing"), "{err}");
    let (code, _, err) = bare(&home, &["status", "--profile", "none"], &[xdg]);
    assert!(
        code == 2 && err.contains("no profile \"none\"") && err.contains("away, file, here"),
        "{err}"
    );
    // publish and pull know them too.
    let (code, _, err) = bare(&home, &["pull", "--profile", "file"], &[xdg]);
    assert!(code == 0 && err.contains("nothing to receive"), "{err}");
}

#[test]
fn a_file_that_cannot_be_used_is_told_and_no_secret_shown() {
    let home = Home::new();
    std::fs::write(
        home.path("c.toml"),
        "[profiles.x]\nurl = 'http://h'\nclient_secret = 'geheim'\n",
    )
    .unwrap();
    let (code, _, err) = bare(&home, &["profiles", "list", "--config", "c.toml"], &[]);
    assert!(
        code == 2
            && err.contains("c.toml line 3")
            && err.contains("client_secret_file")
            && !err.contains("geheim"),
        "{err}"
    );
    let (code, _, err) = bare(&home, &["status", "--profile", "x", "--config", "none.toml"], &[]);
    assert!(code == 2 && err.contains("there is no none.toml"), "{err}");
    let (code, out, err) = bare(&home, &["profiles", "list"], &[]);
    assert!(
        code == 0 && out.is_empty() && err.contains(".config/storybus/config.toml"),
        "{err}"
    );
    let (code, _, err) = run(&home, &["status", "--profile", "x"]);
    assert!(code == 2, "{err}");
}
